package ledger

import "jobledger/db"

// importedReason is the reason of what an import brings, where the books give none.
const importedReason = "imported"

// byImport is the claim of a settlement that an import brings.
var byImport = &claim{query: byReport.query, args: byReport.args, refusal: byReport.refusal, importing: true}

// balanceKey and lotKey name the grants that open imported books.
func balanceKey(owner string) string { return "grant:import:balance:" + owner }

func lotKey(ref string) string { return "grant:import:lot:" + ref }

// metadata keeps the figure of the books with the opening grant, so that a repetition can be compared.
func (b *BookBalance) metadata() JSON {
	return mustJSON(struct {
		Available int64 `json:"available"`
	}{b.Available})
}

// writeBalance opens an owner's books with one grant, of as much as the jobs take at most, lets the
// jobs run through it, and revokes what they leave above the books' figure.
func (i *importer) writeBalance(o *OwnerBooks, p plan) error {
	if p.grant > 0 {
		a, err := lockAccount(i.tx, o.Owner)
		if err != nil {
			return err
		}
		if _, err := move(i.tx, a, movement{
			kind: KindGrant, key: balanceKey(o.Owner), into: []Lot{{Amount: p.grant}},
			reason: importedReason, metadata: o.Balance.metadata(),
		}); err != nil {
			return err
		}
		i.r.Credits += p.grant
	}
	i.row(&i.r.Imported)
	err := i.eachJob(o, func(j *BookJob, e *ending) error {
		if e.mode == "" {
			e.mode = ModeCharge
		}
		return i.writeJob(j, e, allocate)
	})
	if err != nil {
		return err
	}
	a, err := lockAccount(i.tx, o.Owner)
	if err == nil && p.excess > 0 {
		err = i.revokeExcess(a, p.excess)
	}
	if err == nil && a.Available != o.Balance.Available && i.refused() == 0 {
		err = fail(Inconsistent, "%q would have %d credits, not %d", o.Owner, a.Available, o.Balance.Available)
	}
	return err
}

func (i *importer) revokeExcess(a *account, excess int64) error {
	from, err := allocate(i.tx, a, excess)
	if err != nil {
		return err
	}
	_, err = move(i.tx, a, movement{
		kind: KindRevoke, key: "revoke:import:" + a.Owner, from: from,
		reason: "spent outside the imported books",
	})
	return err
}

// writeJob brings one job to its end: it pays, gets back what the books returned, and settles.
func (i *importer) writeJob(
	j *BookJob, e *ending, pay func(*db.Tx, *account, int64) ([]Posting, error),
) error {
	job := j.job(e, now(i.tx))
	free, err := i.checkTaken(j)
	if err != nil || !free {
		return err
	}
	a, err := lockAccount(i.tx, j.Owner)
	if err != nil {
		return err
	}
	from, err := pay(i.tx, a, j.Cost)
	if CodeOf(err) == InsufficientCredits {
		i.r.Refuse(j.Place, err)
		return nil
	}
	if err != nil {
		return err
	}
	if err := i.insert(&job, j); err != nil {
		return err
	}
	kind := KindHold
	if job.Mode == ModeCharge {
		kind = KindCharge
	}
	_, err = move(i.tx, a, movement{kind: kind, key: jobKey(kind, job.ID), job: &job, from: from})
	if err != nil {
		return err
	}
	i.row(&i.r.Imported)
	for _, r := range e.refunds {
		if job.Mode == ModeCharge {
			if err := refundLegacy(i.tx, a, &job, r.Ref, r.Amount); err != nil {
				return err
			}
		}
		i.row(&i.r.Imported)
	}
	return i.settle(j, e)
}

// settle settles a job as any report does.
func (i *importer) settle(j *BookJob, e *ending) error {
	if !e.settled {
		return nil
	}
	r := Report{Job: j.ID, Outcome: Outcome(j.Status), Source: Operator, Reason: j.Reason}
	if j.Status == Status(Completed) {
		r.Cost = &e.cost
	}
	if r.Reason == "" {
		r.Reason = importedReason
	}
	s, refusal, err := settle(i.tx, byImport, r)
	if err == nil && refusal == nil && !s.Won {
		err = fail(Inconsistent, "job %q was settled while it was imported", j.ID)
	}
	return firstError(err, refusal)
}

// job is the job as it is written before it is settled.
func (j *BookJob) job(e *ending, at Time) Job {
	job := Job{
		ID: j.ID, Owner: j.Owner, Cost: j.Cost, Mode: e.mode, Status: j.Status, Submission: j.submission(),
		Reason: j.Reason, Metadata: j.metadata(e.refunds), CreatedAt: at, UpdatedAt: at,
	}
	if j.CreatedAt != nil {
		job.CreatedAt = *j.CreatedAt
	}
	if job.Submission != SubmissionNone {
		job.Attempt = 1
	}
	if e.settled {
		job.Status = Processing
	}
	return job
}

// insert writes the job and, unless it was never submitted, its one attempt. What the books know of the
// attempt is its first answer, so that nobody changes it later without the audit finding the change.
func (i *importer) insert(job *Job, j *BookJob) error {
	_, err := i.tx.Exec(`
		INSERT INTO jobs (`+jobColumns+`, imported)
		VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, NULL, ?, ?, ?, ?, 1)`,
		job.ID, job.Owner, job.Cost, job.Mode, job.Status, job.Attempt, job.Submission, job.Reason, job.Metadata,
		job.CreatedAt, job.UpdatedAt)
	if err != nil || job.Attempt == 0 {
		return err
	}
	on := Attempt{
		Job: job.ID, Attempt: 1, Provider: j.Provider, Submission: job.Submission, MarkedAt: job.CreatedAt,
	}
	if j.handle() {
		on.UpstreamID = &j.UpstreamID
	}
	on.Evidence = j.evidence()
	if !answered(job.Submission) {
		return insertAttempt(i.tx, &on)
	}
	on.ResolvedAt = &job.CreatedAt
	if err := insertAttempt(i.tx, &on); err != nil {
		return err
	}
	_, err = i.tx.Exec(`
		INSERT INTO answers (`+answerColumns+`)
		VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?)`,
		on.Job, on.Attempt, on.Submission, on.Provider, on.UpstreamID, on.Evidence, on.Operator, on.ResolvedAt)
	return err
}

// answered tells whether a submission is what an answer said; the others are what is known without one.
func answered(s Submission) bool {
	return s == SubmissionAccepted || s == SubmissionRejected || s == SubmissionUncertain
}

// checkTaken refuses a job whose id, or whose handles, are another's.
func (i *importer) checkTaken(j *BookJob) (free bool, err error) {
	first, err := findJob(i.tx, j.ID)
	if err != nil {
		return false, err
	}
	if first != nil {
		i.r.Refuse(j.Place, fail(NotAllowed, "job %q is in the ledger already, of owner %q", j.ID, first.Owner))
		return false, nil
	}
	if !j.handle() {
		return true, nil
	}
	var other string
	found, err := i.tx.Get(&other, `SELECT job_id FROM attempts WHERE provider = ? AND upstream_id = ?`,
		j.Provider, j.UpstreamID)
	if err == nil && found {
		i.r.Refuse(j.Place, fail(NotAllowed, "upstream id %q of provider %q belongs to job %q",
			j.UpstreamID, j.Provider, other))
	}
	return !found, err
}
