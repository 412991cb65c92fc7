package ledger

import (
	"errors"
	"fmt"
)

// ImportReport says what an import did, or would have done.
type ImportReport struct {
	Imported      int64             `json:"imported"` // rows that were written
	Replayed      int64             `json:"replayed"` // rows that were there already
	Refused       []Refusal         `json:"refused"`  // the first 100
	RefusedMore   int64             `json:"refused_more,omitempty"`
	Unmatched     []UnmatchedRefund `json:"unmatched_refunds"` // the first 100
	UnmatchedMore int64             `json:"unmatched_refunds_more,omitempty"`
	Owners        int64             `json:"owners"`
	Jobs          int64             `json:"jobs"`
	Refunds       int64             `json:"refunds"`
	Credits       int64             `json:"credits"` // granted by the entries that were written
}

// Refusal is a row that cannot be imported, and so keeps its whole file out.
type Refusal struct {
	Place
	Field  string `json:"field,omitempty"` // the field at fault, if one alone is
	Reason string `json:"reason"`
}

// UnmatchedRefund is a refund that was not counted, because it is not one of a job of the same owner.
type UnmatchedRefund struct {
	Place
	Ref    string `json:"ref"`
	Job    string `json:"job"`
	Owner  string `json:"owner"`
	Amount int64  `json:"amount"`
	Reason string `json:"reason"`
}

// Refuse adds a refusal to the report.
func (r *ImportReport) Refuse(at Place, err error) {
	if len(r.Refused) == listMaxImport {
		r.RefusedMore++
		return
	}
	refusal := Refusal{Place: at, Reason: err.Error()}
	if e, ok := errors.AsType[*Error](err); ok {
		refusal.Field = e.Field
	}
	r.Refused = append(r.Refused, refusal)
}

// Add adds the refusals of another report.
func (r *ImportReport) Add(other *ImportReport) {
	for _, f := range other.Refused {
		if len(r.Refused) == listMaxImport {
			r.RefusedMore++
			continue
		}
		r.Refused = append(r.Refused, f)
	}
	r.RefusedMore += other.RefusedMore
}

// Err is the error of an import that refused rows; nil if it refused none.
func (r *ImportReport) Err() error {
	n := int64(len(r.Refused)) + r.RefusedMore
	if n == 0 {
		return nil
	}
	first := r.Refused[0]
	e := fail(Invalid, "%s: %s: nothing was imported", first.Place, first.Reason)
	e.Field = first.Field
	if n > 1 {
		e.Message = fmt.Sprintf("%s: %s; and %d more rows are refused: nothing was imported",
			first.Place, first.Reason, n-1)
	}
	return e
}
