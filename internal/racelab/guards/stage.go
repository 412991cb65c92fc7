package guards

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"jobledger/internal/racelab/scratch"
	"jobledger/ledger"
)

// stage is a scratch ledger on which a scene plays.
type stage struct {
	place     scratch.Place
	tampering *tampering
	plain     *ledger.Ledger // for what comes before and after: only the schema lacks something
	tampered  []*ledger.Ledger

	money   []string // what is wrong with the credits
	answers []string // what is wrong with what somebody was told
}

// newStage makes a ledger of which guards are gone, and grants an owner some credits.
func newStage(ctx context.Context, server string, t *tampering) (*stage, error) {
	place, err := scratch.Make(ctx, server)
	if err != nil {
		return nil, err
	}
	s := &stage{place: place, tampering: t}
	if err := s.setUp(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) setUp(ctx context.Context) (err error) {
	before := ledger.Options{Wrap: s.tampering.around(false)}
	if _, err := ledger.Create(ctx, s.place.DSN, before); err != nil {
		return err
	}
	if err := s.execute(ctx, scratch.Mark); err != nil {
		return err
	}
	if s.plain, err = ledger.Open(ctx, s.place.DSN, before); err != nil {
		return err
	}
	_, err = s.plain.Grant(ctx, ledger.GrantParams{Owner: owner, Amount: granted, Key: "lab"})
	return err
}

func (s *stage) close() error {
	var errs []error
	for _, l := range append(slices.Clone(s.tampered), s.plain) {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(append(errs, s.place.Remove())...)
}

// open opens the ledger some times, as that many programs would, each without the guards.
func (s *stage) open(ctx context.Context, n int) ([]*ledger.Ledger, error) {
	for range n {
		l, err := ledger.Open(ctx, s.place.DSN, ledger.Options{Wrap: s.tampering.around(true)})
		if err != nil {
			return nil, err
		}
		s.tampered = append(s.tampered, l)
	}
	return s.tampered, nil
}

// execute runs statements on the scratch database, beside the product.
func (s *stage) execute(ctx context.Context, statements string) error {
	pool, err := sql.Open(s.place.Driver, s.place.DSN)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, statements)
	return errors.Join(err, pool.Close())
}

// freeze keeps how the balances and lots are now. A program without the locked read goes by these.
func (s *stage) freeze(ctx context.Context) error {
	return s.execute(ctx, `
CREATE TABLE stale_balances AS SELECT * FROM balances;
CREATE TABLE stale_lots AS SELECT * FROM lots;`)
}

// hold creates a job, with all guards in place.
func (s *stage) hold(ctx context.Context, job string, cost int64) error {
	_, err := s.plain.CreateJob(ctx, ledger.JobParams{ID: job, Owner: owner, Cost: cost, Mode: ledger.ModeHold})
	return err
}

// broke notes that credits are wrong, or were promised wrongly.
func (s *stage) broke(format string, args ...any) {
	s.money = append(s.money, fmt.Sprintf(format, args...))
}

// wrong notes an answer that is not the one to give, and does no harm to credits.
func (s *stage) wrong(format string, args ...any) {
	s.answers = append(s.answers, fmt.Sprintf(format, args...))
}

// answered notes an error where there must be none.
func (s *stage) answered(who string, err error) {
	if err != nil {
		s.wrong("%s was answered %s", who, codeOf(err))
	}
}

// holds checks the owner's buckets, of which nothing is used, and the audit.
func (s *stage) holds(ctx context.Context, available, held int64) error {
	return s.spent(ctx, available, held, 0)
}

// spent checks the owner's buckets and the audit.
func (s *stage) spent(ctx context.Context, available, held, used int64) error {
	b, err := s.plain.Balance(ctx, ledger.BalanceParams{Owner: owner})
	if err != nil {
		return err
	}
	if b.Available != available || b.Held != held || b.Used != used {
		s.broke("the balance is %d available, %d held, %d used; right are %d, %d, %d",
			b.Available, b.Held, b.Used, available, held, used)
	}
	report, err := s.plain.Audit(ctx, ledger.AuditParams{})
	if err != nil {
		return err
	}
	for _, c := range report.Checks {
		if !c.OK {
			s.broke("the audit finds: %s", c.Name)
		}
	}
	return nil
}

// codeOf gives the code of an answer.
func codeOf(err error) string {
	if err == nil {
		return "OK"
	}
	return string(ledger.CodeOf(err))
}
