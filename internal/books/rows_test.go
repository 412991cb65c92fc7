package books

import (
	"database/sql"
	"io"
	"regexp"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// TestObjects: an object that two readers could read differently is refused.
func TestObjects(t *testing.T) {
	for text, want := range map[string]string{
		`"owner":"a"`:                      `1 0`,
		`"owner":"a","owner":"a"`:          `1 0; line 1: line: names "owner" twice`,
		`"owner":"a","Owner":"b"`:          `1 0; line 1: line: names "Owner" twice`,
		`"owner":"a","x":null,"x":null`:    `1 0; line 1: line: names "x" twice`,
		`"owner":"a","x` + "\xff\":null":   `1 0; line 1: line: is not valid UTF-8`,
		`"owner":"\ufffd` + "\ufffd\"":     `1 0`,
		`"owner":"\\ud800\ud83d\ude00"`:    `1 0`,
		`"owner":"\ufffd\ud83d"`:           `1 0; line 1: owner: is not valid`,
		`"owner":"` + "\ufffd" + `\ude00"`: `1 0; line 1: owner: is not valid`,
		`"owner":"\ud83d\\ude00"`:          `1 0; line 1: owner: is not valid`,
		`"owner":"a"}{`:                    `1 0; line 1: line: is not a JSON object`,
	} {
		text = `{"type":"balance","available":5,` + text + `}`
		s, err := open(t, write(t, "books.jsonl", text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.told(); !regexp.MustCompile(`\A`+want).MatchString(got) || want == "1 0" && got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestHalfHandleTooLong: the id of a job that has no provider must have room among the evidence.
func TestHalfHandleTooLong(t *testing.T) {
	const job = `{"type":"job","id":"j","owner":"ann","cost":5,"status":"failed","upstream_id":"u","evidence":"`
	s, err := open(t, write(t, "books.jsonl", job+strings.Repeat("e", 1020)+`"}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "1 0; line 1: evidence with the upstream id: has "; !strings.HasPrefix(s.told(), want) {
		t.Errorf("got %s, want %s", s.told(), want)
	}
}

// TestRefundsNameTheirOwner and their amount, unless the schema has neither.
func TestRefundsNameTheirOwner(t *testing.T) {
	first, third := mapped["seed1"].tables, mapped["seed3"].tables
	for _, c := range []struct {
		schema string
		tables []string
		want   string
	}{
		{"seed1", []string{first[0], first[1], "refunds: event_key,owner,amount / job-refund:b,,7"},
			"refunds line .: owner: "},
		{"seed1", []string{first[0], first[1], "refunds: event_key,owner,amount / job-refund:b,demo,"},
			"refunds line .: amount: "},
		{"seed3", []string{third[0], third[1], "transactions: id,userId,type,amount / job-refund:a,,REFUND,7"},
			"transactions line .: owner: "},
		{"seed3", []string{third[0], third[1], "transactions: id,userId,type,amount / job-refund:a,u,REFUND,"},
			"transactions line .: amount: "},
	} {
		for _, file := range []string{folder(t, c.tables...), database(t, c.tables...)} {
			s, err := open(t, file, Options{Map: c.schema})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.told(); !regexp.MustCompile(c.want).MatchString(got) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		}
	}
}

// TestRefundsWithoutID of one generation are as many as there are rows, in the order of the rows whatever
// index the database has.
func TestRefundsWithoutID(t *testing.T) {
	tables := []string{
		"credit: id,user_id,total,used,remaining,held,status / 1,ann,7,1,6,0,active",
		"generation: id,user_id,credits_cost,status,submission,evidence / g,ann,7,failed,rejected,400",
		"credit_transaction: generation_id,type,amount,note,more / g,refund,3,, / g,refund,3,,",
	}
	other := strings.Replace(tables[2], "g,refund,3,, / g,refund,3", "g,refund,4,, / g,refund,2", 1)
	indexed := database(t, tables[0], tables[1], other)
	d, err := sql.Open("sqlite", indexed)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Exec(`CREATE INDEX x ON credit_transaction (amount, type, generation_id)`); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		folder(t, tables...):   "+refund:g:1  3 +refund:g:2  3",
		database(t, tables...): "+refund:g:1  3 +refund:g:2  3",
		indexed:                "+refund:g:1  4 +refund:g:2  2",
	} {
		s, err := open(t, file, Options{Map: "seed2"})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.told() + strings.Join(s.rows(t), ", "); !strings.HasSuffix(got, want) {
			t.Fatalf("got %s, want %s", got, want)
		}
		dbtest.Each(t, func(t *testing.T, dsn string) {
			l := imported(t, dsn, s)
			r, err := l.SettleLegacy(t.Context(), "g")
			if err != nil || r.Returned != 1 || r.Balance.Available != 7 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// imported opens a ledger and imports books that must not be refused.
func imported(t *testing.T, dsn string, s *Source) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if r, err := l.Import(t.Context(), s.Books(), ledger.ImportParams{}); err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return l
}

// TestSettledElsewhere: a job whose books say that it cost nothing was settled there, and is not paid again.
func TestSettledElsewhere(t *testing.T) {
	third := mapped["seed3"].tables
	for _, status := range []string{"failed", "canceled", "timeout"} {
		jobs := "jobs: id,userId,creditsReserved,creditsActual,status,submissionOutcome,errorMessage / " +
			"j,u,7,0," + status + ",rejected,400 / open,u,2,0,queued,,"
		s, err := open(t, folder(t, third[0], jobs, third[2]), Options{Map: "seed3"})
		if err != nil {
			t.Fatal(err)
		}
		dbtest.Each(t, func(t *testing.T, dsn string) {
			l := imported(t, dsn, s)
			r, err := l.SettleLegacy(t.Context(), "j")
			if err != nil || r.Won || r.Balance.Available != 9 || r.Consumed != 0 {
				t.Errorf("%s: %+v, %v", status, r, err)
			}
		})
	}
}

// TestExportWithMark: a byte order mark that an editor put in front of an export is no part of it.
func TestExportWithMark(t *testing.T) {
	const text = `{"type":"export"}` + "\n"
	for _, mark := range []string{"", "\ufeff"} {
		s, err := open(t, write(t, "books.jsonl", mark+text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		export, ok := s.Export()
		if !ok {
			t.Fatal("it is not taken for an export")
		}
		in, err := export()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if got, err := io.ReadAll(in); err != nil || string(got) != text {
			t.Errorf("got %q, %v", got, err)
		}
	}
}
