package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jobledger/internal/racelab/scratch"
	"jobledger/ledger"
)

// ownPrefix begins the names of all owners in a ledger of bench's own.
const ownPrefix = "bench-"

// place is where the ledger is, in one database or several.
type place struct {
	dsns   []string
	folder string // of the files; empty: it is on a server
	remove func() error
}

// place makes the ledger, or finds it.
func (o *Options) place(ctx context.Context) (p place, err error) {
	first := o.DSN
	p.remove = func() error { return nil }
	switch {
	case first == "":
		made, err := scratch.Make(ctx, "")
		if err != nil {
			return p, err
		}
		first, p.remove = made.DSN, made.Remove
	case scratch.IsServer(first) && o.Shards > 1:
		return p, ledger.InvalidField("shards", "are files: name one, or leave --db out")
	case scratch.IsServer(first) && o.RiskPowerLoss:
		return p, ledger.InvalidField("durability", "of a server is its own setting, synchronous_commit")
	}
	p.dsns = []string{first}
	for n := 2; n <= o.Shards; n++ {
		p.dsns = append(p.dsns, fmt.Sprintf("%s.%d", first, n))
	}
	if !scratch.IsServer(first) {
		p.folder = filepath.Dir(first)
	}
	for _, dsn := range p.dsns {
		if _, err := ledger.Create(ctx, dsn, ledger.Options{}); err != nil {
			return p, errors.Join(err, p.remove())
		}
	}
	return p, nil
}

// bytes is the size of the files; 0 if there are none.
func (p *place) bytes() (sum int64) {
	if p.folder == "" {
		return 0
	}
	for _, dsn := range p.dsns {
		for _, name := range []string{dsn, dsn + "-wal"} {
			if info, err := os.Stat(name); err == nil {
				sum += info.Size()
			}
		}
	}
	return sum
}

// fleet is the open ledgers of a place. Each owner is in one of them.
type fleet []*ledger.Ledger

func openFleet(ctx context.Context, dsns []string, o ledger.Options) (f fleet, err error) {
	for _, dsn := range dsns {
		l, err := ledger.Open(ctx, dsn, o)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f = append(f, l)
	}
	return f, nil
}

// of is the ledger that an owner is in.
func (f fleet) of(owner string) *ledger.Ledger {
	h := fnv.New32a()
	_, _ = h.Write([]byte(owner)) // never fails
	return f[h.Sum32()%uint32(len(f))]
}

func (f fleet) close() (err error) {
	for _, l := range f {
		err = errors.Join(err, l.Close())
	}
	return err
}

// own refuses ledgers that hold owners of others.
func (f fleet) own(ctx context.Context) error {
	const after = ownPrefix + "\U0010FFFF" // all of its own names
	for _, l := range f {
		first, err1 := l.Balances(ctx, "", 1)
		last, err2 := l.Balances(ctx, after, 1)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		for _, b := range append(first, last...) {
			if !strings.HasPrefix(b.Owner, ownPrefix) {
				return ledger.InvalidField("db", "it holds the owner %q, and what is measured stays in a journal "+
					"for ever: name a database that is not there yet or was made by bench, or leave --db out", b.Owner)
			}
		}
	}
	return nil
}

// audit audits all of them and gives the time that it took.
func (f fleet) audit(ctx context.Context) (seconds float64, err error) {
	began := time.Now()
	for _, l := range f {
		r, err := l.Audit(ctx, ledger.AuditParams{})
		if err != nil {
			return 0, err
		}
		for _, c := range r.Checks {
			if !c.OK {
				return 0, &ledger.Error{Code: ledger.Inconsistent, Message: fmt.Sprintf(
					"what was measured is wrong: the audit's check %s found %v", c.Name, c.Violations[0])}
			}
		}
	}
	return time.Since(began).Seconds(), nil
}
