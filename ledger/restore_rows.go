package ledger

import "jobledger/db"

// The statements of a restore, the only ones beside those of move that write the journal and the lots:
// they put back what move once wrote. Each leaves a row that is there alone. The same... functions give
// the row that has the key.

func insertBalance(tx *db.Tx, b *exportBalance) (rows int64, err error) {
	return tx.Exec(`
		INSERT INTO balances (owner, available, held, used, expired, seq, head)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (owner) DO NOTHING`,
		b.Owner, b.Available, b.Held, b.Used, b.Expired, b.Seq, []byte(b.Head))
}

func sameBalance(tx *db.Tx, b *exportBalance) (*exportBalance, error) {
	there := exportBalance{Type: b.Type}
	found, err := tx.Row(`SELECT owner, available, held, used, expired, seq, head FROM balances WHERE owner = ?`,
		[]any{b.Owner}, &there.Owner, &there.Available, &there.Held, &there.Used, &there.Expired, &there.Seq,
		(*[]byte)(&there.Head))
	return orNil(&there, found, err)
}

func restoreJob(tx *db.Tx, j *exportJob) (rows int64, err error) {
	return tx.Exec(`
		INSERT INTO jobs (`+jobColumns+`, imported)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`,
		j.ID, j.Owner, j.Cost, j.Mode, j.Status, j.Attempt, j.Submission, j.SettledCost, j.SettledSource,
		j.SettledAttempt, j.SettledAt, j.Deadline, j.Reason, j.Metadata, j.CreatedAt, j.UpdatedAt, j.Imported)
}

func sameJob(tx *db.Tx, j *exportJob) (*exportJob, error) {
	there := exportJob{Type: j.Type}
	found, err := tx.Get(&there, `SELECT `+jobColumns+`, imported FROM jobs WHERE id = ?`, j.ID)
	return orNil(&there, found, err)
}

func restoreAttempt(tx *db.Tx, a *exportAttempt) (rows int64, err error) {
	return tx.Exec(`
		INSERT INTO attempts (`+attemptColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (job_id, attempt) DO NOTHING`,
		a.Job, a.Attempt.Attempt, a.Provider, a.UpstreamID, a.Submission, a.Evidence, a.Operator, a.MarkedAt,
		a.ResolvedAt)
}

func sameAttempt(tx *db.Tx, a *exportAttempt) (*exportAttempt, error) {
	there, err := findAttempt(tx, a.Job, a.Attempt.Attempt)
	if err != nil || there == nil {
		return nil, err
	}
	return &exportAttempt{a.Type, *there}, nil
}

func restoreAnswer(tx *db.Tx, a *exportAnswer) (rows int64, err error) {
	return tx.Exec(`
		INSERT INTO answers (`+answerColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (job_id, attempt, n) DO NOTHING`,
		a.Job, a.Attempt, a.N, a.Submission, a.Provider, a.UpstreamID, a.Evidence, a.Operator, a.RecordedAt)
}

func sameAnswer(tx *db.Tx, a *exportAnswer) (*exportAnswer, error) {
	there := exportAnswer{Type: a.Type}
	found, err := tx.Get(&there.Answer, `
		SELECT `+answerColumns+` FROM answers WHERE job_id = ? AND attempt = ? AND n = ?`, a.Job, a.Attempt, a.N)
	return orNil(&there, found, err)
}

func restoreReport(tx *db.Tx, r *exportReport) (rows int64, err error) {
	return tx.Exec(`
		INSERT INTO reports (`+reportColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (job_id, source, outcome, verdict, attempt, upstream_id) DO NOTHING`,
		r.Job, r.Attempt, r.Source, r.Outcome, r.UpstreamID, r.Verdict, r.Count, r.FirstAt, r.LastAt, r.Detail)
}

func sameReport(tx *db.Tx, r *exportReport) (*exportReport, error) {
	there := exportReport{Type: r.Type}
	found, err := tx.Get(&there.ReportRow, `
		SELECT `+reportColumns+` FROM reports
		WHERE job_id = ? AND source = ? AND outcome = ? AND verdict = ? AND attempt = ? AND upstream_id = ?`,
		r.Job, r.Source, r.Outcome, r.Verdict, r.Attempt, r.UpstreamID)
	return orNil(&there, found, err)
}

func restoreEvent(tx *db.Tx, v *exportEvent) (rows int64, err error) {
	return tx.Exec(`
		INSERT INTO events (`+eventColumns+`)
		VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`,
		v.ID, v.Event, v.Job, v.Owner, v.Payload, v.CreatedAt)
}

func sameEvent(tx *db.Tx, v *exportEvent) (*exportEvent, error) {
	there := exportEvent{Type: v.Type}
	found, err := tx.Row(`SELECT `+eventColumns+` FROM events WHERE id = ?`,
		[]any{v.ID}, &there.ID, &there.Event, &there.Job, &there.Owner, &there.Payload, &there.CreatedAt)
	return orNil(&there, found, err)
}

// restoreEntry writes an entry, the lots that it made, as they became, and its postings.
func restoreEntry(tx *db.Tx, e *exportEntry) (rows int64, err error) {
	rows, err = tx.Exec(`
		INSERT INTO entries (`+entryColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`,
		e.ID, e.EventKey, e.Owner, e.Seq, e.Kind, e.Amount, e.Job, e.AvailableAfter, e.HeldAfter, e.UsedAfter,
		e.ExpiredAfter, e.Reason, e.Metadata, e.OccurredAt, e.RecordedAt, []byte(e.Hash))
	if err != nil || rows != 1 {
		return rows, err
	}
	for i := range e.Lots {
		l := &e.Lots[i]
		if _, err := tx.Exec(`
			INSERT INTO lots (`+lotColumns+`)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			l.ID, l.Owner, l.Entry, l.Available, l.Held, l.Used, l.Expired, l.Amount, l.Priority,
			l.EffectiveAt, l.ExpiresAt); err != nil {
			return 0, err
		}
	}
	for _, p := range e.Postings {
		const insert = `INSERT INTO postings (entry_id, lot_id, amount) VALUES (?, ?, ?)`
		if _, err := tx.Exec(insert, e.ID, p.Lot, p.Amount); err != nil {
			return 0, err
		}
	}
	return rows, nil
}

func sameEntry(tx *db.Tx, e *exportEntry) (*exportEntry, error) {
	list := make([]Entry, 1)
	found, err := tx.Get(&list[0], `SELECT `+entryColumns+` FROM entries WHERE id = ?`, e.ID)
	if err != nil || !found {
		return nil, err
	}
	if err := addPostings(tx, list); err != nil {
		return nil, err
	}
	there := exportEntry{Type: e.Type, Entry: list[0], Lots: []Lot{}}
	err = tx.Select(&there.Lots, `
		SELECT `+lotColumns+` FROM lots WHERE entry_id = ? AND owner = ? ORDER BY id`, e.ID, e.Owner)
	return &there, err
}

func orNil[T any](row *T, found bool, err error) (*T, error) {
	if err != nil || !found {
		return nil, err
	}
	return row, nil
}
