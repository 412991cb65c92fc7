package ledger

// replay compares the rows of an owner who is in the ledger with what is there.
func (i *importer) replay(o *OwnerBooks, p plan) error {
	if o.Balance != nil {
		if err := i.replayBalance(o, p); err != nil {
			return err
		}
	}
	for l := range o.Lots {
		if err := i.replayLot(&o.Lots[l]); err != nil {
			return err
		}
	}
	return i.eachJob(o, func(j *BookJob, e *ending) error {
		job, err := findJob(i.tx, j.ID)
		switch {
		case err != nil:
			return err
		case job == nil:
			i.r.Refuse(j.Place, notFrom(o.Owner, "job", j.ID))
		case job.Owner != j.Owner || job.Metadata != j.metadata(e.refunds):
			i.r.Refuse(j.Place, fail(IdempotencyMismatch, "job %q is in the ledger with other content", j.ID))
		default:
			i.row(&i.r.Replayed)
			for range e.refunds {
				i.row(&i.r.Replayed)
			}
		}
		return nil
	})
}

// notFrom refuses a row of an owner who is in the ledger, but not from these books.
func notFrom(owner, what, id string) error {
	return fail(NotAllowed, "owner %q is in the ledger already, and %s %q is not", owner, what, id)
}

func (i *importer) replayBalance(o *OwnerBooks, p plan) error {
	e, err := findEntry(i.tx, balanceKey(o.Owner))
	switch {
	case err != nil:
		return err
	case e == nil && p.grant > 0:
		i.r.Refuse(o.Balance.Place,
			fail(NotAllowed, "owner %q is in the ledger already, and not from these books", o.Owner))
	case e != nil && e.Metadata != o.Balance.metadata():
		i.r.Refuse(o.Balance.Place, mismatch("the imported balance of "+o.Owner, []string{"available"}))
	case e != nil && e.Amount != p.grant:
		i.r.Refuse(o.Balance.Place,
			fail(IdempotencyMismatch, "the balance of %q was imported with other jobs", o.Owner))
	default:
		i.row(&i.r.Replayed)
	}
	return nil
}

func (i *importer) replayLot(l *BookLot) error {
	e, err := findEntry(i.tx, lotKey(l.Ref))
	if err != nil {
		return err
	}
	if e == nil {
		i.r.Refuse(l.Place, notFrom(l.Owner, "lot", l.Ref))
		return nil
	}
	var lot Lot
	if _, err := i.tx.Get(&lot, `SELECT `+lotColumns+` FROM lots WHERE entry_id = ? AND owner = ?`,
		e.ID, e.Owner); err != nil {
		return err
	}
	fields := differing(
		field{"owner", l.Owner == e.Owner},
		field{"figures", l.metadata() == e.Metadata},
		field{"priority", l.Priority == lot.Priority},
		field{"effective_at", equal(l.EffectiveAt, lot.EffectiveAt)},
		field{"expires_at", equal(l.ExpiresAt, lot.ExpiresAt)},
	)
	if fields != nil {
		i.r.Refuse(l.Place, mismatch("lot "+l.Ref, fields))
		return nil
	}
	i.row(&i.r.Replayed)
	return nil
}
