package ledger

import (
	"cmp"
	"slices"

	"jobledger/db"
)

// shelf is the lots of one owner while jobs are imported that they paid for. Each job takes from the
// figure that it ends up in, so that in the end each lot has the figures of the books.
type shelf struct {
	lots  []shelved
	spare int64 // held credits that no job surely explains
}

// shelved is a lot and what of it no job has explained yet; the four add up to what is available of it
// at the moment.
type shelved struct {
	*BookLot
	id      string
	used    int64
	held    int64
	free    int64 // stays available, or expires wherever it is
	expired int64 // expires in this lot
	rest    int64 // of the job at work
}

func (s *shelved) now() int64 { return s.used + s.held + s.free + s.expired }

// metadata keeps the figures of the books with the lot's grant, so that a repetition can be compared.
func (l *BookLot) metadata() JSON {
	return mustJSON(struct {
		Available int64 `json:"available"`
		Held      int64 `json:"held"`
		Used      int64 `json:"used"`
		Expired   int64 `json:"expired"`
	}{l.Available, l.Held, l.Used, l.Expired})
}

// writeLots opens an owner's books with a grant for each lot, lets the jobs run through them, and makes
// up for the used and held credits that no job explains. What expired, expires last.
func (i *importer) writeLots(o *OwnerBooks, p plan) error {
	s := &shelf{spare: p.held}
	for l := range o.Lots {
		s.lots = append(s.lots, shelved{BookLot: &o.Lots[l]})
	}
	slices.SortStableFunc(s.lots, func(a, b shelved) int {
		x, y := Lot{ExpiresAt: a.ExpiresAt}, Lot{ExpiresAt: b.ExpiresAt}
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(x.expiry(), y.expiry()))
	})
	for l := range s.lots {
		if err := i.openLot(&s.lots[l]); err != nil {
			return err
		}
	}
	// Jobs that got all of their cost back come first: whenever they were, the credits were there.
	for _, first := range []bool{true, false} {
		err := i.eachJob(o, func(j *BookJob, e *ending) error {
			if (e.back == j.Cost) != first {
				return nil
			}
			e.mode = s.mode(j, e)
			return i.writeJob(j, e, func(_ *db.Tx, _ *account, cost int64) ([]Posting, error) {
				return s.pay(j, e, cost)
			})
		})
		if err != nil || i.refused() > 0 {
			return err
		}
	}
	for l := range s.lots {
		if err := i.makeUp(&s.lots[l]); err != nil {
			return err
		}
	}
	return i.expireShelf(o.Owner, s)
}

func (i *importer) openLot(s *shelved) error {
	lot := Lot{Amount: s.amount(), Priority: s.Priority, EffectiveAt: s.EffectiveAt, ExpiresAt: s.ExpiresAt}
	s.used, s.held, s.free, s.expired = s.Used, s.Held, s.Available, s.Expired
	if lot.lapsed(now(i.tx)) {
		s.free, s.expired = s.free+s.expired, 0 // all of it expires in the end, in whatever lot it is
	}
	first, err := findEntry(i.tx, lotKey(s.Ref))
	if err != nil {
		return err
	}
	if first != nil {
		i.r.Refuse(s.Place, fail(NotAllowed, "lot %q is in the ledger already, of owner %q", s.Ref, first.Owner))
		return nil
	}
	a, err := lockAccount(i.tx, s.Owner)
	if err != nil {
		return err
	}
	m := movement{
		kind: KindGrant, key: lotKey(s.Ref), into: []Lot{lot}, reason: importedReason,
		metadata: s.BookLot.metadata(),
	}
	if a.balance().Granted()+lot.Amount > AmountMax {
		i.r.Refuse(s.Place, InvalidField("amount", "the lots of %q come to more than %d", s.Owner, AmountMax))
		return nil
	}
	if _, err := move(i.tx, a, m); err != nil {
		return err
	}
	s.id = m.into[0].ID
	i.r.Credits += lot.Amount
	i.row(&i.r.Imported)
	return nil
}

// mode is that of the job or, if the books do not say, the one that the lots' figures explain: what was
// not paid back is held if there are held credits to spare, and used if not.
func (s *shelf) mode(j *BookJob, e *ending) Mode {
	switch {
	case e.mode != "":
	case j.Status.Open() || e.settled:
		return ModeHold
	case e.returned > 0 || s.spare < j.Cost:
		return ModeCharge
	default:
		s.spare -= j.Cost
		return ModeHold
	}
	return e.mode
}

// pay picks the lots that pay for a job. What it costs in the end comes from the figure where it ends
// up. What comes back from a hold can have been any credits. What comes back from a charge goes to new
// lots: it comes from credits that are available in the end. Both lie behind what the job costs, in
// spending order, because that is how a settlement splits. Errors: INSUFFICIENT_CREDITS.
func (s *shelf) pay(j *BookJob, e *ending, cost int64) ([]Posting, error) {
	lasting := cost - e.back
	short, behind := lasting, 0
	for l := range s.lots {
		lot := &s.lots[l]
		figure := &lot.used
		if e.mode == ModeHold && !e.settled {
			figure = &lot.held
		}
		lot.rest = min(*figure, short)
		*figure -= lot.rest
		if short -= lot.rest; lot.rest > 0 {
			behind = l
		}
	}
	back := e.back
	var from []Posting
	for l := range s.lots {
		lot := &s.lots[l]
		amount := lot.rest
		if l >= behind {
			amount += lot.lend(&back, e.mode == ModeCharge)
		}
		if amount > 0 {
			from = append(from, Posting{lot.id, amount})
		}
	}
	if short+back > 0 {
		return nil, insufficientLots(j, e, short+back)
	}
	return from, nil
}

// lend gives as much of what comes back as the lot has; a charge takes it away.
func (s *shelved) lend(back *int64, away bool) int64 {
	n := min(s.now(), *back)
	if away {
		n = min(s.free, *back)
		s.free -= n
	}
	*back -= n
	return n
}

func insufficientLots(j *BookJob, e *ending, short int64) error {
	where := "used"
	if e.mode == ModeHold && !e.settled {
		where = "held"
	}
	return fail(InsufficientCredits, "job %q: the lots of %q do not explain its cost: %d of %d are not among "+
		"the %s credits, or were never there", j.ID, j.Owner, short, j.Cost, where)
}

// makeUp stands in for the jobs that used or hold what is left of a lot's figures.
func (i *importer) makeUp(s *shelved) error {
	for _, c := range []struct {
		prefix string
		amount int64
		status Status
		mode   Mode
	}{
		{usedPrefix, s.used, Status(Completed), ModeCharge},
		{heldPrefix, s.held, Processing, ModeHold},
	} {
		if c.amount == 0 {
			continue
		}
		j := &BookJob{
			Place: s.Place, ID: c.prefix + s.Ref, Owner: s.Owner, Cost: c.amount, Status: c.status,
			Reason: "stands for what no job in the imported books explains",
		}
		e := &ending{mode: c.mode, settled: !c.status.Open(), cost: c.amount}
		counted := i.r.Imported
		err := i.writeJob(j, e, func(*db.Tx, *account, int64) ([]Posting, error) {
			return []Posting{{s.id, c.amount}}, nil
		})
		if i.r.Imported = counted; err != nil { // it is no row
			return err
		}
	}
	return nil
}

// expireShelf expires what the books have as expired, and what is left in lots that have lapsed.
func (i *importer) expireShelf(owner string, s *shelf) error {
	a, err := lockAccount(i.tx, owner)
	if err != nil {
		return err
	}
	for l := range s.lots {
		lot := &s.lots[l]
		if lot.expired == 0 {
			continue
		}
		if _, err := move(i.tx, a, movement{
			kind: KindExpire, key: "lot-expire:" + lot.id + ":1", reason: importedReason,
			from: []Posting{{lot.id, lot.expired}},
		}); err != nil {
			return err
		}
	}
	_, err = expireDue(i.tx, a, everyLot)
	return err
}
