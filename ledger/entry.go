package ledger

import (
	"context"

	"jobledger/db"
)

// Entry is one line of the journal: an amount that moved between two buckets of one owner.
type Entry struct {
	ID             string    `db:"id" json:"id"`
	EventKey       string    `db:"event_key" json:"event_key"`
	Owner          string    `db:"owner" json:"owner"`
	Seq            int64     `db:"seq" json:"seq"` // dense per owner, from 1
	Kind           Kind      `db:"kind" json:"kind"`
	Amount         int64     `db:"amount" json:"amount"`
	Job            *string   `db:"job_id" json:"job"`
	AvailableAfter int64     `db:"available_after" json:"available_after"`
	HeldAfter      int64     `db:"held_after" json:"held_after"`
	UsedAfter      int64     `db:"used_after" json:"used_after"`
	ExpiredAfter   int64     `db:"expired_after" json:"expired_after"`
	Reason         string    `db:"reason" json:"reason"`
	Metadata       JSON      `db:"metadata" json:"metadata"`
	OccurredAt     Time      `db:"occurred_at" json:"occurred_at"`
	RecordedAt     Time      `db:"recorded_at" json:"recorded_at"`
	Hash           Hash      `db:"hash" json:"hash"`
	Postings       []Posting `db:"-" json:"postings"`
}

const entryColumns = `id, event_key, owner, seq, kind, amount, job_id, available_after, held_after,
	used_after, expired_after, reason, metadata, occurred_at, recorded_at, hash`

// EntryFilter selects entries. With Owner, they come in the order of the owner's journal; with Job,
// in the order of the job's owner; else by id, which follows the clock of the machine.
type EntryFilter struct {
	Owner string // empty: of all owners
	Job   string // empty: of all jobs and of none
	After string // the id of the last entry of the page before; empty: from the start
	Limit int    // 1 to PageMax
}

// Entries lists the journal. The pages of all owners are for reading what is there, not for following what
// comes: where several write at once, an entry can be committed after another with a higher id, and who
// asks for what comes after that one never sees it. One owner's journal has no such gaps.
//
// Errors: INVALID; NOT_FOUND for an unknown owner, job or After.
func (l *Ledger) Entries(ctx context.Context, f EntryFilter) ([]Entry, error) {
	if err := firstError(
		checkPage(f.Limit), checkAfter(f.After), checkOptionalID("owner", f.Owner), checkOptionalID("job", f.Job),
	); err != nil {
		return nil, err
	}
	return read(ctx, l, func(tx *db.Tx) ([]Entry, error) { return entries(tx, f) })
}

func checkPage(limit int) error {
	if limit < 1 || limit > PageMax {
		return InvalidField("limit", "%d is out of range; it takes 1 to %d", limit, PageMax)
	}
	return nil
}

func entries(tx *db.Tx, f EntryFilter) ([]Entry, error) {
	if err := f.checkExists(tx); err != nil {
		return nil, err
	}
	list := []Entry{}
	query, args := f.query()
	if err := tx.Select(&list, query, args...); err != nil {
		return nil, err
	}
	return list, addPostings(tx, list)
}

// query picks the one query whose index serves the filter.
func (f *EntryFilter) query() (query string, args []any) {
	const afterSeq = `seq > COALESCE((SELECT seq FROM entries WHERE id = ?), 0)`
	switch {
	case f.Job != "":
		args := jobKeys(f.Job)
		return jobEntriesQuery + `SELECT ` + entryColumns + ` FROM story
			WHERE (? = '' OR owner = ?) AND ` + afterSeq + ` ORDER BY seq LIMIT ?`,
			append(args, f.Owner, f.Owner, f.After, f.Limit)
	case f.Owner != "":
		return `SELECT ` + entryColumns + ` FROM entries
			WHERE owner = ? AND ` + afterSeq + ` ORDER BY seq LIMIT ?`,
			[]any{f.Owner, f.After, f.Limit}
	}
	return `SELECT ` + entryColumns + ` FROM entries WHERE id > ? ORDER BY id LIMIT ?`, []any{f.After, f.Limit}
}

// jobEntriesQuery gives a job's entries by their keys, and the expiries that its release or refund
// brought about by the keys of its lots: so the journal needs no index by job. Its arguments are
// those of jobKeys.
const jobEntriesQuery = `
WITH own AS (
  SELECT ` + entryColumns + ` FROM entries
  WHERE event_key IN (?, ?, ?, ?, ?) OR event_key > ? AND event_key < ? AND job_id = ?
), story AS (
  SELECT ` + entryColumns + ` FROM own
  UNION
  SELECT ` + expiryColumns + `
  FROM own
  CROSS JOIN postings p -- in this order, and by the key: SQLite would read all entries for a few
  CROSS JOIN entries x
  WHERE p.entry_id = own.id AND COALESCE(x.job_id, '') = own.job_id
    AND x.event_key > 'lot-expire:' || p.lot_id || ':' AND x.event_key < 'lot-expire:' || p.lot_id || ';'
)
`

const expiryColumns = `x.id, x.event_key, x.owner, x.seq, x.kind, x.amount, x.job_id, x.available_after,
	x.held_after, x.used_after, x.expired_after, x.reason, x.metadata, x.occurred_at, x.recorded_at, x.hash`

// jobKeys are the event keys that a job's entries can have: five, and a range in which they must be the
// job's.
func jobKeys(job string) []any {
	var keys []any
	for _, kind := range []Kind{KindHold, KindCharge, KindConsume, KindRelease, KindRefund} {
		keys = append(keys, jobKey(kind, job))
	}
	after, before := legacyRange(job)
	return append(keys, after, before, job)
}

// checkExists tells a wrong name from an empty list.
func (f *EntryFilter) checkExists(tx *db.Tx) error {
	for _, c := range []struct {
		what, value, query string
		args               []any
	}{
		{"owner", f.Owner, `SELECT 1 FROM balances WHERE owner = ?`, nil},
		{"job", f.Job, `SELECT 1 FROM jobs WHERE id = ?`, nil},
		{"such entry", f.After, `SELECT 1 FROM entries WHERE id = ? AND (? = '' OR owner = ?)
			AND (? = '' OR owner = (SELECT owner FROM jobs WHERE id = ?))`, []any{f.Owner, f.Owner, f.Job, f.Job}},
	} {
		if c.value == "" {
			continue
		}
		var one int
		if found, err := tx.Get(&one, c.query, append([]any{c.value}, c.args...)...); err != nil || !found {
			return firstError(err, fail(NotFound, "there is no %s %q", c.what, c.value))
		}
	}
	return nil
}

func addPostings(tx *db.Tx, list []Entry) error {
	for i := range list {
		list[i].Postings = []Posting{}
		const query = `SELECT lot_id, amount FROM postings WHERE entry_id = ? ORDER BY lot_id`
		if err := tx.Select(&list[i].Postings, query, list[i].ID); err != nil {
			return err
		}
	}
	return nil
}

// findEntry gives the entry with an event key, or nil.
func findEntry(tx *db.Tx, key string) (*Entry, error) {
	e := new(Entry)
	found, err := tx.Get(e, `SELECT `+entryColumns+` FROM entries WHERE event_key = ?`, key)
	if err != nil || !found {
		return nil, err
	}
	return e, nil
}
