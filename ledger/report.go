package ledger

import "jobledger/db"

// ReportRow is a report as it was kept: one row per distinct report and verdict.
type ReportRow struct {
	Job        string  `db:"job_id" json:"job"`
	Attempt    int64   `db:"attempt" json:"attempt"` // 0: it named none
	Source     Source  `db:"source" json:"source"`
	Outcome    Outcome `db:"outcome" json:"outcome"`
	UpstreamID string  `db:"upstream_id" json:"upstream_id"` // empty: it named none
	Verdict    Verdict `db:"verdict" json:"verdict"`
	Count      int64   `db:"count" json:"count"`
	FirstAt    Time    `db:"first_at" json:"first_at"`
	LastAt     Time    `db:"last_at" json:"last_at"`
	Detail     string  `db:"detail" json:"detail"` // the reason that the first of them gave
}

// insertWon keeps the report that settles a job. There can be no other.
func insertWon(tx *db.Tx, r *Report) error {
	_, err := tx.Exec(`
		INSERT INTO reports (job_id, attempt, source, outcome, upstream_id, verdict, count, first_at,
		                     last_at, detail)
		VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?)`,
		r.Job, r.Attempt, r.Source, r.Outcome, r.UpstreamID, Won, now(tx), now(tx), r.Reason)
	return err
}

// insertReport keeps a report that did not win, or counts it if it is known. first tells which.
func insertReport(tx *db.Tx, r *Report, v Verdict) (first bool, err error) {
	var count int64
	_, err = tx.Get(&count, `
		INSERT INTO reports (job_id, attempt, source, outcome, upstream_id, verdict, count, first_at,
		                     last_at, detail)
		VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?)
		ON CONFLICT (job_id, source, outcome, verdict, attempt, upstream_id)
		DO UPDATE SET count = reports.count + 1, last_at = excluded.last_at
		RETURNING count`,
		r.Job, r.Attempt, r.Source, r.Outcome, r.UpstreamID, v, now(tx), now(tx), r.Reason)
	return count == 1, err
}
