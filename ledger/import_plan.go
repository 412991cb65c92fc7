package ledger

import "fmt"

// plan is what must be known of an owner's books before anything is written.
type plan struct {
	jobs   int64
	grant  int64 // books with a balance: what the opening grant must be
	excess int64 // and what of it is revoked in the end
	held   int64 // books with lots: held credits that no job surely explains
}

// ending is how an imported job ends up.
type ending struct {
	mode     Mode
	refunds  []BookRefund // those of the same owner, with their amounts
	returned int64        // by them
	settled  bool
	cost     int64 // the settled cost
	back     int64 // all that comes back, by refunds and settlement
}

// ended reads a job's end out of the books. Refunds of another owner are never counted.
func (j *BookJob) ended(unmatched func(*BookRefund, string)) (e ending, at Place, err error) {
	e.mode = j.Mode
	for i := range j.Refunds {
		r := j.Refunds[i]
		switch {
		case r.Owner != "" && r.Owner != j.Owner:
			unmatched(&r, fmt.Sprintf("the job is of owner %q", j.Owner))
			continue
		case r.Amount == 0:
			r.Amount = j.Cost
		}
		e.refunds = append(e.refunds, r)
		e.returned += r.Amount
		at = r.Place
		switch {
		case j.Status.Open():
			return e, at, fail(Inconsistent, "job %q is %s and has a refund", j.ID, j.Status)
		case e.returned > j.Cost:
			return e, at, fail(Inconsistent, "job %q cost %d and its refunds are %d", j.ID, j.Cost, e.returned)
		}
	}
	e.back = e.returned
	switch {
	case j.Status.Open():
	case j.Status == Status(Completed):
		e.settled, e.cost = true, j.Cost-e.returned
		if j.SettledCost != nil {
			e.cost = *j.SettledCost
		}
		if e.cost+e.returned > j.Cost {
			return e, at, fail(Inconsistent, "job %q cost %d of %d in the end and its refunds are %d",
				j.ID, e.cost, j.Cost, e.returned)
		}
	default:
		// Books that give it a settled cost, which is 0, had settled it: all of its cost came back.
		e.settled = e.returned == j.Cost || j.SettledCost != nil
	}
	if e.settled {
		e.back = j.Cost - e.cost
	}
	return e, j.Place, j.checkEnd(&e)
}

// checkEnd refuses ends that no entries can express, or from which nothing could go on.
func (j *BookJob) checkEnd(e *ending) error {
	switch {
	case e.settled || j.Status.Open():
	case e.mode == ModeHold && e.returned > 0:
		return fail(Inconsistent, "job %q holds its cost, and a part of a hold cannot be returned", j.ID)
	case j.submission() == SubmissionNone:
		return InvalidField("submission", "is none, and the job is %s and was not paid back: it takes unknown, or "+
			"rejected with the evidence", j.Status)
	}
	return nil
}

// plan reads an owner's books once, refuses what is wrong in them, and sums up the rest.
func (i *importer) plan(o *OwnerBooks) (plan, error) {
	var p plan
	for l := range o.Lots {
		i.check(o.Lots[l].Place, o.Lots[l].Check())
		p.held += o.Lots[l].Held
	}
	switch {
	case o.Balance == nil:
	case len(o.Lots) > 0:
		i.check(o.Balance.Place, fail(Inconsistent, "owner %q has lots too: give one or the other", o.Owner))
	default:
		i.check(o.Balance.Place, o.Balance.Check())
	}
	var out, peak int64 // taken by jobs and not returned yet, and the most that this ever was
	for j, err := range o.Jobs {
		if err := firstError(err, i.ctx.Err()); err != nil {
			return p, err
		}
		i.r.Jobs++
		p.jobs++
		e, ok := i.planJob(o, j)
		if !ok {
			continue
		}
		out += j.Cost
		peak = max(peak, out)
		out -= e.back
		if !e.settled && e.mode != ModeCharge && (j.Mode == ModeHold || j.Status.Open()) {
			p.held -= j.Cost
		}
		if peak > AmountMax {
			i.check(j.Place, InvalidField("cost", "the jobs of %q come to more than %d", o.Owner, AmountMax))
			out, peak = 0, 0
		}
	}
	if o.Balance != nil {
		p.grant = max(peak, o.Balance.Available+out)
		p.excess = p.grant - (o.Balance.Available + out)
		if p.grant > AmountMax {
			i.check(o.Balance.Place, InvalidField("available", "with the jobs of %q it comes to more than %d",
				o.Owner, AmountMax))
		}
	}
	return p, nil
}

func (i *importer) planJob(o *OwnerBooks, j *BookJob) (e ending, ok bool) {
	before := i.refused()
	if i.check(j.Place, j.Check()); i.refused() > before {
		return e, false
	}
	if o.Balance == nil && len(o.Lots) == 0 {
		i.check(j.Place, fail(NotFound, "the books have neither a balance nor lots of owner %q", o.Owner))
		return e, false
	}
	e, at, err := j.ended(i.unmatched)
	i.check(at, err)
	i.r.Refunds += int64(len(e.refunds))
	return e, err == nil
}

func (i *importer) check(at Place, err error) {
	if err != nil {
		i.r.Refuse(at, err)
	}
}

// eachJob runs through an owner's jobs again, once all of them are known to be right.
func (i *importer) eachJob(o *OwnerBooks, fn func(*BookJob, *ending) error) error {
	for j, err := range o.Jobs {
		if err := firstError(err, i.ctx.Err()); err != nil {
			return err
		}
		e, _, err := j.ended(func(*BookRefund, string) {})
		if err := firstError(err, fn(j, &e)); err != nil {
			return err
		}
	}
	return nil
}
