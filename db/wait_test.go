package db_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// Handles that all want the lock again and again take turns. Chance would nearly always give it to the one
// that just gave it up: the others try now and then only.
func TestTurns(t *testing.T) {
	const handles, callers, commits = 3, 8, 240
	path := dbtest.SQLite(t)
	open(t, path, db.Options{})
	var mutex sync.Mutex
	var order []int // of the handles, commit by commit
	enough := func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return len(order) >= commits
	}
	var writing sync.WaitGroup
	for h := range handles {
		d := reopen(t, path, db.Options{Intercept: func(when db.When, query string) error {
			if when == db.After && query == "COMMIT" {
				mutex.Lock()
				defer mutex.Unlock()
				order = append(order, h)
			}
			return nil
		}})
		for c := range callers {
			writing.Go(func() {
				for i := 0; !enough(); i++ {
					err := d.Write(t.Context(), func(tx *db.Tx) error {
						time.Sleep(200 * time.Microsecond) // an operation does more than this one
						return mark(fmt.Sprint(h, c, i), nil)(tx)
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	writing.Wait()
	turns := 0
	for i := range order {
		if i > 0 && order[i] != order[i-1] {
			turns++
		}
	}
	t.Logf("%d turns in %d commits", turns, len(order))
	if turns < commits/4 {
		t.Errorf("%d turns in %d commits", turns, len(order))
	}
}
