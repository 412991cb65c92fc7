package books

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger"
)

// record is a row as text: the values that it has, by the name of their field.
type record struct {
	ledger.Place
	kind   string
	values map[string]string
	mapped bool // from a mapping: a refund need not name its job
	brief  bool // a refund need not name its owner and amount
	// numbered is what the ref of a row that has none begins with. The number of the row among those that
	// begin the same follows, so that no two of them are taken for one.
	numbered string
	err      error
}

// The kinds of rows.
const (
	balanceKind = "balance"
	lotKind     = "lot"
	jobKind     = "job"
	refundKind  = "refund"
)

var kinds = []string{balanceKind, lotKind, jobKind, refundKind}

// fields are the fields of each kind of row.
var fields = map[string][]string{
	balanceKind: {"owner", "available"},
	lotKind: {"owner", "ref", "amount", "available", "held", "used", "expired", "priority", "effective_at",
		"expires_at"},
	jobKind: {"id", "owner", "cost", "mode", "status", "settled_cost", "submission", "provider", "upstream_id",
		"evidence", "reason", "created_at"},
	refundKind: {"ref", "job", "owner", "amount"},
}

// everyField lists the fields of all kinds, and the one that tells the kind.
func everyField() []string {
	all := []string{"type"}
	for _, kind := range kinds {
		for _, name := range fields[kind] {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// add takes a record as the row that it is, or refuses it. Only errors that are not the row's are
// returned.
func (s *Source) add(ctx context.Context, r *record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.Rows++
	if r.numbered != "" {
		n, err := s.stage.number(r.numbered)
		if err != nil {
			return err
		}
		r.set("ref", r.numbered+strconv.FormatInt(n, 10))
	}
	row, err := r.row()
	if err == nil {
		var known bool
		if known, err = s.stage.add(row); known {
			s.Duplicates++
		}
	}
	if coded, ok := errors.AsType[*ledger.Error](err); ok {
		s.refuse(r.Place, coded)
		return s.stage.taint(r.values["owner"])
	}
	return err
}

func (s *Source) refuse(at ledger.Place, err error) { s.Refused.Refuse(at, err) }

// staged is a row on its way into the stage.
type staged struct {
	ledger.Place
	kind            int // index in kinds
	key, owner, job string
	at              int64
	content         any
}

// row reads the record as a row of its kind, and checks it.
func (r *record) row() (*staged, error) {
	if r.err != nil {
		return nil, r.err
	}
	kind := slices.Index(kinds, r.kind)
	if kind < 0 {
		return nil, ledger.InvalidField("type", "%q is not one of %s", r.kind, strings.Join(kinds, ", "))
	}
	for name := range r.values {
		if !slices.Contains(fields[r.kind], name) {
			return nil, ledger.InvalidField(name, "a %s has no such field; it takes %s", r.kind,
				strings.Join(fields[r.kind], ", "))
		}
	}
	row := &staged{Place: r.Place, kind: kind, owner: r.values["owner"]}
	var check func() error
	switch r.kind {
	case balanceKind:
		b := &ledger.BookBalance{Owner: row.owner, Available: r.count("available", true)}
		row.key, row.content, check = b.Owner, b, b.Check
	case lotKind:
		l := r.lot()
		row.key, row.content, check = l.Ref, l, l.Check
	case jobKind:
		j := r.job()
		if j.CreatedAt != nil {
			row.at = int64(*j.CreatedAt)
		}
		row.key, row.content, check = j.ID, j, j.Check
	case refundKind:
		f := r.refund()
		row.key, row.job, row.content, check = f.Ref, f.Job, f, f.Check
	}
	if r.err != nil {
		return nil, r.err
	}
	return row, check()
}

func (r *record) lot() *ledger.BookLot {
	l := &ledger.BookLot{
		Owner: r.values["owner"], Ref: r.values["ref"],
		Available: r.count("available", false), Held: r.count("held", false), Used: r.count("used", false),
		Expired: r.count("expired", false), Priority: r.count("priority", false),
		EffectiveAt: r.moment("effective_at"), ExpiresAt: r.moment("expires_at"),
	}
	sum := l.Available + l.Held + l.Used + l.Expired
	if n := r.count("amount", false); r.values["amount"] != "" && n != sum {
		r.fail(ledger.InvalidField("amount",
			"%d is not what the lot has: available %d, held %d, used %d, expired %d",
			n, l.Available, l.Held, l.Used, l.Expired))
	}
	return l
}

func (r *record) job() *ledger.BookJob {
	j := &ledger.BookJob{
		ID: r.values["id"], Owner: r.values["owner"], Cost: r.amount("cost"),
		Mode: ledger.Mode(r.values["mode"]), Status: ledger.Status(r.values["status"]),
		Submission: ledger.Submission(r.values["submission"]), Provider: r.values["provider"],
		UpstreamID: r.values["upstream_id"], Evidence: r.values["evidence"], Reason: r.values["reason"],
		CreatedAt: r.moment("created_at"),
	}
	if r.values["settled_cost"] != "" {
		n := r.count("settled_cost", true)
		j.SettledCost = &n
	}
	return j
}

func (r *record) refund() *ledger.BookRefund {
	f := &ledger.BookRefund{Ref: r.values["ref"], Job: r.values["job"], Owner: r.values["owner"]}
	if !r.brief || r.values["amount"] != "" {
		f.Amount = r.amount("amount")
	}
	if !r.mapped {
		r.fail(ledger.CheckID("job", f.Job))
	}
	if !r.brief {
		r.fail(ledger.CheckID("owner", f.Owner))
	}
	return f
}

// fail keeps the first thing wrong with the record.
func (r *record) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *record) amount(name string) int64 {
	n, err := ledger.ParseAmount(name, r.values[name])
	r.fail(err)
	return n
}

// count reads an amount that may be 0, which a row that need not have it may leave out.
func (r *record) count(name string, needed bool) int64 {
	if text := r.values[name]; text == "0" || text == "" && !needed {
		return 0
	}
	return r.amount(name)
}

func (r *record) moment(name string) *ledger.Time {
	text := r.values[name]
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.fail(ledger.InvalidField(name, "%.40q is not a time; it takes one like 2026-12-31T00:00:00Z", text))
	}
	at := ledger.At(t)
	return &at
}
