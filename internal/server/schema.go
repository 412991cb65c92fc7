package server

import (
	"maps"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"jobledger/ledger"
)

const schemaPrefix = "#/components/schemas/"

// words are the closed lists, as schemas: those of the ledger's types that JSON shows otherwise than Go.
var words = map[reflect.Type]huma.Schema{
	reflect.TypeFor[ledger.Time](): {Type: huma.TypeString, Format: "date-time"},
	reflect.TypeFor[ledger.Hash](): {Type: huma.TypeString, Pattern: "^[0-9a-f]{64}$"},
	reflect.TypeFor[ledger.JSON](): {Type: huma.TypeObject, AdditionalProperties: true},
	reflect.TypeFor[ledger.Kind](): enum(ledger.KindGrant, ledger.KindHold, ledger.KindConsume,
		ledger.KindRelease, ledger.KindCharge, ledger.KindRefund, ledger.KindExpire, ledger.KindRevoke),
	reflect.TypeFor[ledger.Mode]():    enum(ledger.ModeHold, ledger.ModeCharge),
	reflect.TypeFor[ledger.Status]():  enum(statuses()...),
	reflect.TypeFor[ledger.Outcome](): enum(ledger.Outcomes...),
	reflect.TypeFor[ledger.Source]():  enum(ledger.Callback, ledger.Poll, ledger.Operator, ledger.Sweeper),
	reflect.TypeFor[ledger.Submission](): enum(ledger.SubmissionNone, ledger.SubmissionSubmitting,
		ledger.SubmissionAccepted, ledger.SubmissionRejected, ledger.SubmissionUncertain, ledger.SubmissionUnknown),
	reflect.TypeFor[ledger.Verdict](): enum(ledger.Won, ledger.Duplicate, ledger.Conflict, ledger.Stale,
		ledger.Refused),
	reflect.TypeFor[ledger.DeliveryStatus](): enum(ledger.DeliveryPending, ledger.DeliveryDelivered,
		ledger.DeliveryDead),
	reflect.TypeFor[ledger.Code](): enum(codes()...),
}

func statuses() []ledger.Status {
	list := []ledger.Status{ledger.Pending, ledger.Processing}
	for _, o := range ledger.Outcomes {
		list = append(list, ledger.Status(o))
	}
	return list
}

func codes() (list []ledger.Code) {
	for _, info := range ledger.Codes {
		list = append(list, info.Code)
	}
	return list
}

func enum[T ~string](values ...T) huma.Schema {
	s := huma.Schema{Type: huma.TypeString}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

// wordsOf stands for a type of the ledger while the description is made.
type wordsOf[T any] struct{}

// Schema gives the schema of the type that it stands for.
func (wordsOf[T]) Schema(huma.Registry) *huma.Schema {
	s := words[reflect.TypeFor[T]()]
	return &s
}

func stand[T any](r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[T](), reflect.TypeFor[wordsOf[T]]())
}

// newRegistry makes a registry of schemas that knows the ledger's types.
func newRegistry() huma.Registry {
	r := huma.NewMapRegistry(schemaPrefix, huma.DefaultSchemaNamer)
	stand[ledger.Time](r)
	stand[ledger.Hash](r)
	stand[ledger.JSON](r)
	stand[ledger.Kind](r)
	stand[ledger.Mode](r)
	stand[ledger.Status](r)
	stand[ledger.Outcome](r)
	stand[ledger.Source](r)
	stand[ledger.Submission](r)
	stand[ledger.Verdict](r)
	stand[ledger.DeliveryStatus](r)
	stand[ledger.Code](r)
	return r
}

// Schema describes a whole number of credits. The tags of a field narrow or widen it.
func (number) Schema(huma.Registry) *huma.Schema {
	low, high := 1.0, float64(ledger.AmountMax)
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &low, Maximum: &high}
}

// Schema describes any JSON object.
func (object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: true,
		Description: "kept as it is, and compared byte by byte; at most 4096 bytes",
	}
}

// Schema describes a time.
func (moment) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Description: "RFC 3339, or a span from now such as 90m, 72h or 30d",
	}
}

// Schema describes a boolean.
func (flag) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean} }

// markNulls marks the members that may be null: those that are pointers and always there. The library
// knows that of its own types only, not of those that another stands for.
func markNulls(r huma.Registry) {
	for name, s := range maps.All(r.Map()) {
		t := r.TypeFromRef(schemaPrefix + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(t) {
			member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			property := s.Properties[member]
			if property != nil && property.Ref == "" && f.Type.Kind() == reflect.Pointer && options == "" {
				property.Nullable = true
			}
		}
	}
}
