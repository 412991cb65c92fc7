package ledger

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"jobledger/db"
)

// fold is what the journal says is in the four buckets: available, held, used, expired.
type fold [4]int64

var bucketNames = [4]string{"available", "held", "used", "expired"}

// The places of the buckets in a fold; outside is where granted credits come from.
const (
	inAvailable = iota
	inHeld
	inUsed
	inExpired
	outside = -1
)

// flow is the two buckets of a kind of entry.
type flow struct{ from, to int }

var flows = map[Kind]flow{
	KindGrant:   {outside, inAvailable},
	KindHold:    {inAvailable, inHeld},
	KindConsume: {inHeld, inUsed},
	KindRelease: {inHeld, inAvailable},
	KindCharge:  {inAvailable, inUsed},
	KindRefund:  {inUsed, inAvailable},
	KindExpire:  {inAvailable, inExpired},
	KindRevoke:  {inAvailable, inExpired},
}

// lost is the sum of numbers that do not fit. No stored amount equals it, and nothing added to it
// makes it fit again.
const lost = math.MinInt64

func plus(a, b int64) int64 {
	if a == lost || b == lost || (b > 0 && a > math.MaxInt64-b) || (b < 0 && a < math.MinInt64+1-b) {
		return lost
	}
	return a + b
}

func (f *fold) add(bucket int, n int64) {
	if bucket != outside {
		f[bucket] = plus(f[bucket], n)
	}
}

// differences words how found differs from what was expected; empty if it does not.
func (f fold) differences(found fold) string {
	var list []string
	for i, name := range bucketNames {
		if f[i] != found[i] {
			list = append(list, fmt.Sprintf("%s is %d, expected %s", name, found[i], number(f[i])))
		}
	}
	return strings.Join(list, "; ")
}

func number(n int64) string {
	if n == lost {
		return "more than any amount"
	}
	return strconv.FormatInt(n, 10)
}

// journalRow is a posting with its entry, its lot and the entry's job. Lot, LotEntry and JobOwner tell
// whether the posting, its lot and the job are there.
type journalRow struct {
	Entry
	Lot         *string `db:"lot_id"`
	Part        int64   `db:"part"`
	LotOwner    *string `db:"lot_owner"`
	LotEntry    *string `db:"lot_entry"`
	Priority    int64   `db:"priority"`
	EffectiveAt *Time   `db:"effective_at"`
	ExpiresAt   *Time   `db:"expires_at"`
	JobOwner    *string `db:"job_owner"`
	JobStatus   Status  `db:"job_status"`
	JobCost     int64   `db:"job_cost"`
	JobDeadline *Time   `db:"job_deadline"`
	JobMetadata JSON    `db:"job_metadata"`
	JobCreated  Time    `db:"job_created"`
}

// journalQuery reads the whole journal in the order of the chains, so that no sorting is needed;
// journalSinceQuery reads one owner's from behind an entry on.
var (
	journalQuery      = journalRows + journalOrder
	journalSinceQuery = journalRows + `WHERE e.owner = ? AND e.seq > ?` + journalOrder
)

var journalRows = `
SELECT ` + qualified("e", entryColumns) + `,
       p.lot_id, COALESCE(p.amount, 0) AS part, l.owner AS lot_owner, l.entry_id AS lot_entry,
       COALESCE(l.priority, 0) AS priority, l.effective_at, l.expires_at, j.owner AS job_owner,
       COALESCE(j.status, '') AS job_status, COALESCE(j.cost, 0) AS job_cost, j.deadline AS job_deadline,
       COALESCE(j.metadata, '') AS job_metadata, COALESCE(j.created_at, 0) AS job_created
FROM entries e
LEFT JOIN postings p ON p.entry_id = e.id
LEFT JOIN lots l ON l.id = p.lot_id
LEFT JOIN jobs j ON j.id = e.job_id
`

const journalOrder = `
ORDER BY e.owner, e.seq, p.lot_id`

// qualified puts a table alias before each of a list of columns.
func qualified(alias, columns string) string {
	list := strings.Split(columns, ",")
	for i := range list {
		list[i] = alias + "." + strings.TrimSpace(list[i])
	}
	return strings.Join(list, ", ")
}

// chain is where the audit of one owner's journal stands.
type chain struct {
	owner string
	seq   int64
	after fold
	hash  Hash
}

// auditJournal follows each owner's chain of entries from its start.
func (a *auditor) auditJournal() error {
	return a.follow(new(chain), journalQuery)
}

// follow audits the entries that a query gives, from where a chain stands.
func (a *auditor) follow(c *chain, query string, args ...any) error {
	var rows []journalRow // of one entry
	err := db.Each(a.tx, func(r *journalRow) (bool, error) {
		if len(rows) > 0 && rows[0].ID != r.ID {
			a.auditEntry(c, rows)
			rows = rows[:0]
		}
		rows = append(rows, *r)
		return true, nil
	}, query, args...)
	if err == nil && len(rows) > 0 {
		a.auditEntry(c, rows)
	}
	return err
}

// auditEntry checks an entry against the one before it, and goes on from what it says, so that each
// fault is found once.
func (a *auditor) auditEntry(c *chain, rows []journalRow) {
	e := &rows[0].Entry
	if c.owner != e.Owner {
		*c = chain{owner: e.Owner, hash: chainStart}
	}
	if e.Seq != c.seq+1 {
		a.broken(checkSequence, e.row(), "seq is %d, expected %d", e.Seq, c.seq+1)
	}
	if flow, ok := flows[e.Kind]; ok {
		c.after.add(flow.from, -e.Amount)
		c.after.add(flow.to, e.Amount)
	}
	after := fold{e.AvailableAfter, e.HeldAfter, e.UsedAfter, e.ExpiredAfter}
	if d := c.after.differences(after); d != "" {
		a.broken(checkRunning, e.row(), "after the %s of %d, %s", e.Kind, e.Amount, d)
	}
	if hash := hashOf(c.hash, rows); !bytes.Equal(hash, e.Hash) {
		a.broken(checkHashes, e.row(), "hash is %x, expected %x", []byte(e.Hash), []byte(hash))
	}
	c.seq, c.after, c.hash = e.Seq, after, e.Hash
	a.auditPostings(rows)
	a.auditKey(rows)
	a.auditOrphan(&rows[0])
}

func (e *Entry) row() Violation {
	v := Violation{"owner": e.Owner, "entry": e.ID}
	if e.Job != nil {
		v["job"] = *e.Job
	}
	return v
}

// hashOf is the hash that an entry must have.
func hashOf(previous Hash, rows []journalRow) Hash {
	e := rows[0].Entry
	var issued []Lot
	for i := range rows {
		r := &rows[i]
		if r.Lot != nil {
			e.Postings = append(e.Postings, Posting{*r.Lot, r.Part})
		}
		if r.issues() {
			issued = append(issued, Lot{
				ID: *r.Lot, Priority: r.Priority, EffectiveAt: r.EffectiveAt, ExpiresAt: r.ExpiresAt,
			})
		}
	}
	var job *Job
	if r := &rows[0]; r.JobOwner != nil {
		job = &Job{Cost: r.JobCost, Deadline: r.JobDeadline, Metadata: r.JobMetadata, CreatedAt: r.JobCreated}
	}
	return digest(previous, &e, issued, job)
}

// issues tells whether the posting puts credits into a lot that its entry made.
func (r *journalRow) issues() bool { return r.LotEntry != nil && *r.LotEntry == r.ID }

// auditPostings adds up what lots gave to an entry and what they got from it.
func (a *auditor) auditPostings(rows []journalRow) {
	e := &rows[0].Entry
	var given, issued int64
	for i := range rows {
		r := &rows[i]
		if r.Lot == nil {
			continue
		}
		if r.issues() {
			issued = plus(issued, r.Part)
		} else {
			given = plus(given, r.Part)
		}
		if r.LotOwner != nil && *r.LotOwner != e.Owner {
			v := e.row()
			v["lot"] = *r.Lot
			a.broken(checkPostings, v, "the lot is of owner %q, expected %q", *r.LotOwner, e.Owner)
		}
	}
	wantGiven, wantIssued := e.Amount, int64(0)
	if e.Kind == KindGrant {
		wantGiven, wantIssued = 0, e.Amount
	} else if e.Kind == KindRefund {
		wantIssued = e.Amount
	}
	if given != wantGiven || issued != wantIssued {
		a.broken(checkPostings, e.row(), "lots gave %s and got %s as new, expected %d and %d for a %s of %d",
			number(given), number(issued), wantGiven, wantIssued, e.Kind, e.Amount)
	}
}

// auditKey compares an entry's key with what its kind, job and lot make of it.
func (a *auditor) auditKey(rows []journalRow) {
	e := &rows[0].Entry
	var want string
	ok := false
	switch e.Kind {
	case KindGrant, KindRevoke:
		want = string(e.Kind) + ":{key}, and no job"
		ok = e.Job == nil && strings.HasPrefix(e.EventKey, string(e.Kind)+":")
	case KindExpire:
		want = "lot-expire:{lot}:{n}, of one lot"
		if len(rows) == 1 && rows[0].Lot != nil {
			want = "lot-expire:" + *rows[0].Lot + ":"
			ok = numbered(e.EventKey, want)
		}
	default:
		want = "a job"
		if e.Job != nil {
			want = "job-" + string(e.Kind) + ":" + *e.Job
			ok = e.EventKey == want ||
				e.Kind == KindRefund && strings.HasPrefix(e.EventKey, "legacy-refund:"+*e.Job+":")
		}
	}
	if !ok {
		a.broken(checkKeys, e.row(), "event_key is %q, expected %s", e.EventKey, want)
	}
}

// auditOrphan finds entries of a job that is missing or another owner's, and settlements of a job
// that is open.
func (a *auditor) auditOrphan(r *journalRow) {
	switch {
	case r.Job == nil:
	case r.JobOwner == nil:
		a.broken(checkOrphans, r.row(), "a %s of %d for job %q, which does not exist", r.Kind, r.Amount, *r.Job)
	case *r.JobOwner != r.Owner:
		a.broken(checkOrphans, r.row(), "a %s of %d for job %q, which is of owner %q, expected %q",
			r.Kind, r.Amount, *r.Job, *r.JobOwner, r.Owner)
	case r.JobStatus.Open() && r.Kind != KindHold && r.Kind != KindCharge:
		a.broken(checkOrphans, r.row(), "a %s of %d for job %q, which is %s, expected a settled job",
			r.Kind, r.Amount, *r.Job, r.JobStatus)
	}
}
