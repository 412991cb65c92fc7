package ledger_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/ledger"
)

var errInjected = errors.New("injected")

// fault is something that goes wrong at one statement.
type fault struct {
	name        string
	side        db.When
	panics      bool
	cancels     bool
	andRollback bool // the rollback of the operation fails too
}

// The order matters to the short test, which takes two that are four places apart: one of them always
// applies.
var faults = []fault{
	{name: "error before", side: db.Before},
	{name: "error after", side: db.After},
	{name: "error before and rollback fails", side: db.Before, andRollback: true},
	{name: "error after and rollback fails", side: db.After, andRollback: true},
	{name: "panic after", side: db.After, panics: true},
	{name: "cancel before", side: db.Before, cancels: true},
	{name: "cancel after", side: db.After, cancels: true},
	{name: "panic before", side: db.Before, panics: true},
}

// The statements of the transaction itself. A panic in them would be the engine's own, not an operation's.
func isControl(query string) bool {
	return slices.ContainsFunc(
		[]string{"BEGIN", "SELECT MAX(version)", "SAVEPOINT", "RELEASE", "ROLLBACK", "COMMIT"},
		func(prefix string) bool { return strings.HasPrefix(query, prefix) })
}

// injector watches a batch of three operations, numbers the statements that serve the second, and
// lets one of them go wrong.
type injector struct {
	mutex      sync.Mutex
	armed      bool // the transaction after the next commit is the batch
	watching   bool
	alone      bool     // each operation is a transaction of its own
	begun      int      // operations
	statements []string // of the second operation, and of the transaction
	answered   []bool   // whether the statement had an After; one that finds no row has none
	current    bool     // the statement under way is the last of these
	fault      *fault
	target     int // index in statements
	cancel     context.CancelFunc
	left       chan bool // closed when the second operation's caller has its answer
	fired      bool
	rolledBack bool // the second failure, that of the rollback, has happened
}

func (j *injector) intercept(when db.When, query string) error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if !j.watching {
		j.watching = j.armed && when == db.After && query == "COMMIT" // the batch is the next transaction
		return nil
	}
	if when == db.Before {
		j.note(query)
	} else if j.current {
		j.answered[len(j.answered)-1] = true
	}
	if when == db.After && query == "COMMIT" && !j.alone {
		j.armed, j.watching = false, false
	}
	if j.fault == nil {
		return nil
	}
	return j.inject(when, query)
}

func (j *injector) inject(when db.When, query string) error {
	if j.fired && j.fault.andRollback && !j.rolledBack && strings.HasPrefix(query, "ROLLBACK") {
		j.rolledBack = true
		return errInjected
	}
	if j.fired || !j.current || len(j.statements)-1 != j.target || when != j.fault.side {
		return nil
	}
	j.fired = true
	switch {
	case j.fault.cancels:
		j.cancel()
		<-j.left // so that it is certain whether the writer or the caller was first
		return nil
	case j.fault.panics:
		panic("injected")
	}
	return errInjected
}

func (j *injector) note(query string) {
	begins := "SAVEPOINT operation"
	if j.alone {
		begins = "BEGIN"
	}
	if strings.HasPrefix(query, begins) {
		j.begun++
	}
	ofBatch := !j.alone && isControl(query) && !strings.Contains(query, "operation") // not about one savepoint
	j.current = !j.fired && (ofBatch || j.begun == 2)
	if j.current {
		j.statements, j.answered = append(j.statements, query), append(j.answered, false)
	}
}

// queued is a context that tells when its operation waits in the queue: Write asks for Done once to
// queue it, and again to wait for the answer.
type queued struct {
	context.Context
	mutex sync.Mutex
	asked int
	there chan bool
}

func (q *queued) Done() <-chan struct{} {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.asked++; q.asked == 2 {
		close(q.there)
	}
	return q.Context.Done()
}

// trial is one database, one handle on it, and the injector between them.
type trial struct {
	*testing.T
	injector
	d   *db.DB
	l   *ledger.Ledger
	dsn string
}

func newTrial(t *testing.T, from *filled, f *fault, target int) *trial {
	t.Helper()
	r := &trial{T: t, dsn: from.copy(t)}
	r.fault, r.target = f, target
	var err error
	r.d, err = db.Open(t.Context(), r.dsn, db.Options{
		Clock: func() time.Time { return faultTime }, Intercept: r.intercept, Writers: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.l, r.alone = ledger.New(r.d), r.d.Engine() == "postgres"
	return r
}

// operation is a write operation of a ledger.
type operation = func(context.Context, *ledger.Ledger) error

// The neighbours that share a commit with the operation under test, on either side of it.
var neighbourBefore, neighbourAfter operation = faultGrant("before"), faultGrant("after")

// batch runs operations in one transaction, or one after the other, in order, and gives their answers
// once the writer has finished with them. The second gets a context that the injector can cancel.
func (r *trial) batch(operations ...operation) (errs []error) {
	r.Helper()
	held, end := make(chan bool), make(chan bool)
	holder := make(chan error, 1)
	go func() {
		holder <- r.d.Write(context.Background(), func(*db.Tx) error {
			close(held)
			<-end
			return nil
		})
	}()
	<-held
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.mutex.Lock()
	r.armed, r.cancel, r.left = true, cancel, make(chan bool)
	r.mutex.Unlock()
	answers := make([]chan error, len(operations))
	for i, o := range operations {
		q := &queued{Context: context.Background(), there: make(chan bool)}
		if i == 1 {
			q.Context = ctx
		}
		answers[i] = make(chan error, 1)
		go func() {
			err := o(q, r.l)
			if i == 1 {
				close(r.left)
			}
			answers[i] <- err
		}()
		select {
		case <-q.there:
		case err := <-answers[i]:
			r.Fatalf("operation %d did not come to the database: %v", i, err)
		}
	}
	close(end)
	errs = append(errs, <-holder)
	for _, a := range answers {
		errs = append(errs, <-a)
	}
	// A caller that left does not wait for the writer: this does.
	errs = append(errs, r.d.Write(context.Background(), func(*db.Tx) error { return nil }))
	if err := errors.Join(errs[0], errs[len(errs)-1]); err != nil {
		r.Fatal(err)
	}
	r.mutex.Lock()
	r.armed, r.watching = false, false
	r.mutex.Unlock()
	return errs[1 : len(errs)-1]
}

// close ends the trial early, so that thousands do not stay open until the test ends.
func (r *trial) close() {
	err := r.d.Close()
	if !r.alone {
		err = errors.Join(err, os.Remove(r.dsn))
	}
	if err != nil {
		r.Error(err)
	}
}
