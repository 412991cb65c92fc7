package books

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// write puts a file into a new folder and gives its name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, file string, o Options) (*Source, error) {
	t.Helper()
	s, err := Open(t.Context(), file, strings.NewReader(""), o)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, err
}

// told is what a source says of itself: "rows duplicates" and then what it refuses.
func (s *Source) told() string {
	list := []string{fmt.Sprint(s.Rows, " ", s.Duplicates)}
	for _, f := range s.Refused.Refused {
		list = append(list, f.Place.String()+": "+f.Reason)
	}
	return strings.Join(list, "; ")
}

// rows gives all rows, sorted as an import gets them.
func (s *Source) rows(t *testing.T) (list []string) {
	t.Helper()
	b := s.Books()
	for o, err := range b.Owners {
		if err != nil {
			t.Fatal(err)
		}
		if o.Balance != nil {
			list = append(list, fmt.Sprint("balance ", o.Owner, " ", o.Balance.Available))
		}
		for _, l := range o.Lots {
			text := fmt.Sprint("lot ", o.Owner, " ", l.Ref, " ", l.Available, l.Held, l.Used, l.Expired, l.Priority)
			if l.ExpiresAt != nil {
				text += " " + l.ExpiresAt.String()
			}
			list = append(list, text)
		}
		for j, err := range o.Jobs {
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprint("job ", j.Owner, " ", j.ID, " ", j.Cost, " ", j.Mode, " ", j.Status, " ", j.Submission)
			for _, r := range j.Refunds {
				text += fmt.Sprint(" +", r.Ref, " ", r.Owner, " ", r.Amount)
			}
			list = append(list, text)
		}
	}
	for r, err := range b.Strays {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint("stray ", r.Ref, " ", r.Job))
	}
	return list
}

// B132: each form of a file is read, or refused with the line and the reason.
func TestB132Forms(t *testing.T) {
	const head = "type,owner,available\n"
	for name, c := range map[string]struct{ text, want string }{
		"plain":                    {head + "balance,ann,5\n", "1 0"},
		"BOM":                      {"\ufeff" + head + "balance,ann,5\n", "1 0"},
		"CRLF":                     {"type,owner,available\r\nbalance,ann,5\r\n", "1 0"},
		"no final newline":         {head + "balance,ann,5", "1 0"},
		"columns in another order": {"available, owner ,type\n5,ann,balance\n", "1 0"},
		"blank lines":              {head + "\n\nbalance,ann,5\n\n", "1 0"},
		"UTF-16 with BOM":          {"\xff\xfet\x00y\x00", "file: is not UTF-8"},
		"UTF-16 without ASCII":     {"\xff\xfe\x2d\x4e\x87\x65", "file: is not UTF-8"},
		"UTF-16, big, with BOM":    {"\xfe\xff\x00t\x00y", "file: is not UTF-8"},
		"UTF-16 without BOM":       {"t\x00y\x00p\x00e\x00", "file: is not UTF-8"},
		"CR only": {"type,owner,available\rbalance,ann,5\r",
			"header: the lines end with CR alone"},
		"empty":  {"", "file: is empty"},
		"spaces": {" \n", "file: is empty"},
		"quoted newline": {head + "balance,\"a\nnn\",5\nbalance,\"bob\",6\n",
			`2 0; line 2: owner: .*control character`},
		"quoted newline in reason": {"type,id,owner,cost,status,reason\njob,j,ann,5,failed,\"one\ntwo\"\n", "1 0"},
		"line after quoted newline": {"type,id,owner,cost,status,reason\njob,j,ann,5,failed,\"one\ntwo\"\n" +
			"job,k,ann,0,failed,\n",
			"2 0; line 4: cost: "},
		"duplicate row": {head + "balance,ann,5\nbalance,ann,5\n", "2 1"},
		"contradicting row": {head + "balance,ann,5\nbalance,ann,6\n",
			`2 0; line 3: balance: "ann" contradicts line 2`},
		"missing column": {"type,owner\nbalance,ann\n", `1 0; line 2: available: "" is not an amount`},
		"missing type": {"owner,available\nann,5\n",
			"header: has no column type; it takes type, owner, available"},
		"extra column": {"type,owner,available,colour\nbalance,ann,5,red\n",
			`header: "colour" is not one of type, owner`},
		"column twice": {"type,owner,owner\n", `header: names "owner" twice`},
		"value too much": {head + "balance,ann,5,6\n",
			"1 0; line 2: line: has 4 values, and the header 3"},
		"value too few": {head + "balance,ann\n", "1 0; line 2: line: has 2 values, and the header 3"},
		"an unknown type": {head + "gift,ann,5\n",
			`1 0; line 2: type: "gift" is not one of balance, lot, job, refund`},
		"a field of another type": {"type,owner,available,cost\nbalance,ann,5,7\n",
			`1 0; line 2: cost: a balance has no such field`},
		"1,000": {head + "balance,ann,\"1,000\"\n",
			`1 0; line 2: available: "1,000" is not an amount`},
		"1,000 without quotes": {head + "balance,ann,1,000\n", `1 0; line 2: line: has 4 values`},
		"+5":                   {head + "balance,ann,+5\n", `1 0; line 2: available: "\+5" is not an amount`},
		"full-width five":      {head + "balance,ann,５\n", `1 0; line 2: available: "５" is not an amount`},
		"5.0":                  {head + "balance,ann,5.0\n", `1 0; line 2: available: `},
		"2^53":                 {head + "balance,ann,9007199254740992\n", `1 0; line 2: available: `},
		"invalid UTF-8":        {head + "balance,a\xff,5\n", `1 0; line 2: owner: is not valid UTF-8`},
		"an open quote":        {head + "balance,\"ann,5\n", `1 0; line 2: line: is not CSV`},
		"good rows after bad ones": {head + "balance,ann,x\nbalance,bob,5\nbalance,cid,x\n",
			"3 0; line 2: .*; line 4: "},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := open(t, write(t, "books.csv", c.text), Options{})
			got := fmt.Sprint(err)
			if err == nil {
				got = s.told()
			}
			if !regexp.MustCompile(`\A(?s:`+c.want+`)`).MatchString(got) || (c.want[1:] == " 0" && got != c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestJSONL(t *testing.T) {
	const (
		ann = `{"type":"balance","owner":"ann","available":`
		job = `{"type":"job","id":"j","owner":"ann","cost":5,"status":`
		lot = `{"type":"lot","owner":"ann","available":5,`
	)
	for text, want := range map[string]string{
		"\ufeff" + ann + "5}\r\n\n": "1 0",
		ann + `"5","x":null}`:       "1 0",
		ann + `5.0}`:                `1 0; line 1: available: "5.0" is not an amount`,
		ann + `1e3}`:                `1 0; line 1: available: "1e3" is not an amount`,
		ann + `-5}`:                 `1 0; line 1: available: "-5" is not an amount`,
		ann + `true}`:               "1 0; line 1: available: is neither",
		`{"type":"balance","owner":"\ud800","available":5}`:  "1 0; line 1: owner: is not valid",
		strings.Replace(ann, "ann", "a\xff", 1) + "5}":       "1 0; line 1: line: is not valid",
		`{"type":"balance","owner":"a\u0000","available":5}`: "1 0; line 1: owner: .*control",
		`[1]`:                              "1 0; line 1: line: is not a JSON object",
		`null`:                             "1 0; line 1: line: is not a JSON object",
		strings.Repeat("x", jsonLineMax+1): "0 0; line 1: line: has more than",
		job + `"failed","created_at":"yesterday"}`:            "1 0; line 1: created_at: ",
		job + `"failed","created_at":"1969-01-01T00:00:00Z"}`: "1 0; line 1: created_at: is before 1970",
		job + `"exploded"}`:                                   "1 0; line 1: status: ",
		job + `"failed","submission":"rejected"}`:             "1 0; line 1: evidence: ",
		job + `"failed","submission":"none","provider":"p"}`:  "1 0; line 1: submission: ",
		job + `"failed","settled_cost":3}`:                    "1 0; line 1: settled_cost: ",
		job + `"completed","settled_cost":6}`:                 "1 0; line 1: settled_cost: ",
		lot + `"ref":"l","used":1,"amount":5}`:                "1 0; line 1: amount: 5 is not",
		lot + `"ref":"` + strings.Repeat("r", 250) + `"}`:     "1 0; line 1: ref: ",
		lot + `"ref":"l","effective_at":"2030-01-01T00:00:00Z","expires_at":"2030-01-01T00:00:00Z"}`: "" +
			"1 0; line 1: effective_at: .*not before",
		`{"type":"lot","owner":"ann","ref":"l"}`:              "1 0; line 1: amount: 0 is out of range",
		`{"type":"refund","ref":"r","job":"j","owner":"ann"}`: "1 0; line 1: amount: ",
		`{"type":"refund","ref":"r","job":"j","amount":5}`:    "1 0; line 1: owner: ",
	} {
		s, err := open(t, write(t, "books.jsonl", text), Options{})
		if err != nil {
			t.Errorf("%.80s: %v", text, err)
			continue
		}
		got := s.told()
		if !regexp.MustCompile(`\A`+want).MatchString(got) || want == "1 0" && got != want {
			t.Errorf("%.80s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// folder writes files of CSV, "name: header / row / row".
func folder(t *testing.T, files ...string) string {
	t.Helper()
	path := t.TempDir()
	for _, file := range files {
		name, text, _ := strings.Cut(file, ": ")
		text = strings.ReplaceAll(text, " / ", "\n")
		if err := os.WriteFile(filepath.Join(path, name+".csv"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

var mapped = map[string]struct{ tables, rows []string }{
	"seed1": {[]string{
		"balances: owner,credits / demo,7 / idle,0",
		"jobs: id,owner,charged_cost,status,prompt / b,demo,7,failed,a song / a,demo,3,processing,",
		"refunds: event_key,owner,amount / job-refund:b,demo,7 / bonus,demo,1",
	}, []string{
		"balance demo 7", "job demo b 7 charge failed  +job-refund:b demo 7", "job demo a 3 charge processing ",
		"balance idle 0", "stray bonus ",
	}},
	"seed2": {[]string{
		"credit: id,user_id,total,used,remaining,held,status,priority,end_at / " +
			"1,ann,410,205,205,205,active,2,2030-01-01 00:00:00 / 2,ann,9,1,8,0,expired,, / 3,ann,4,4,0,0,depleted,0,",
		"generation: id,user_id,model_id,credits_cost,status / g1,ann,m,205,succeeded / " +
			"g2,ann,m,205,completing / " +
			"g3,ann,m,5,timeout / g4,ann,m,5,failed",
		"credit_transaction: id,generation_id,type,amount / t1,g1,consume,205 / t2,g3,refund,5 / ,g4,refund,",
	}, []string{
		"lot ann 1 0 205 205 0 2 2030-01-01T00:00:00.000000Z", "lot ann 2 0 0 1 8 0", "lot ann 3 0 0 4 0 0",
		"job ann g1 205  completed ", "job ann g2 205  processing ", "job ann g3 5  timed_out  +t2  5",
		"job ann g4 5  failed  +refund:g4:1  0",
	}},
	"seed3": {[]string{
		"balances: userId,balance / u,9",
		"jobs: id,userId,creditsReserved,creditsActual,status,submissionOutcome,errorCode,errorMessage / " +
			"a,u,7,,failed,rejected,E1,no such model / b,u,7,,queued,,UPSTREAM_SUBMISSION_UNCERTAIN,timeout / " +
			"c,u,7,0,canceled,,, / d,u,7,5,completed,accepted,,",
		"transactions: id,userId,type,amount,remainingAmount,jobId / " +
			"job-refund:c,u,REFUND,7,2, / x,u,PURCHASE,50,50, / part,u,REFUND,3,3,a",
	}, []string{
		"balance u 9", "job u a 7 charge failed rejected +part u 3", "job u b 7 charge pending uncertain",
		"job u c 7 charge canceled  +job-refund:c u 7", "job u d 7 charge completed accepted",
	}},
}

// TestMappings reads the tables of the known schemas from folders and from databases alike.
func TestMappings(t *testing.T) {
	for name, c := range mapped {
		for form, file := range map[string]string{"folder": folder(t, c.tables...), "database": database(t,
			c.tables...)} {
			s, err := open(t, file, Options{Map: name})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Refused.Err(); err != nil {
				t.Errorf("%s, %s: %v", name, form, err)
			}
			if got, want := strings.Join(s.rows(t), "\n"), strings.Join(c.rows, "\n"); got != want {
				t.Errorf("%s, %s:\n%s\nwant\n%s", name, form, got, want)
			}
		}
	}
}

// TestMappingRefusals names what is wrong with a table, or with a row of it.
func TestMappingRefusals(t *testing.T) {
	first, second := mapped["seed1"].tables, mapped["seed2"].tables
	for name, c := range map[string]struct{ schema, file, want string }{
		"a table is missing": {"seed1", folder(t, first[0], first[1]), `file: cannot open .*refunds.csv`},
		"and in a database":  {"seed1", database(t, first[0], first[1]), `file: .* has no table refunds`},
		"a column is missing": {"seed1", database(t, "balances: owner / demo"),
			`balances: has no column credits; it takes owner, credits`},
		"no database": {"seed1", write(t, "x.db", strings.Repeat("no database", 100)),
			`file: cannot read .* as a SQLite database`},
		"no file": {"seed1", filepath.Join(t.TempDir(), "x"), `file: cannot open`},
		"figures disagree": {"seed2", folder(t, strings.Replace(second[0], "1,ann,410", "1,ann,411", 1), second[1],
			second[2]),
			`9 0; credit line 2: total: 411 is not used 205 \+ remaining 205`},
		"an unknown status": {"seed2", database(t, second[0], strings.Replace(second[1], "timeout", "paused", 1),
			second[2]),
			`9 0; generation line 3: status: "paused" is unknown`},
		"credits left in what is revoked": {"seed2", folder(t, strings.Replace(second[0], "expired", "revoked", 1),
			second[1], second[2]),
			`9 0; credit line 3: status: "revoked" is not active or expired, and the row has 8`},
		"a number with a fraction": {"seed1", database(t, "balances: owner,credits / demo,7.0", first[1], first[2]),
			`5 0; balances line 1: available: "7.0" is not an amount`},
	} {
		s, err := open(t, c.file, Options{Map: c.schema})
		got := fmt.Sprint(err)
		if err == nil {
			got = s.told()
		}
		if !regexp.MustCompile(`\A` + c.want).MatchString(got) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// inUse measures the memory once the goroutines that the standard library starts for each query are gone:
// they end by themselves, when the machine lets them.
func inUse(m *runtime.MemStats) {
	for began := time.Now(); runtime.NumGoroutine() > 10 && time.Since(began) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	runtime.GC()
	runtime.GC() // what had a finalizer, or was in a pool
	runtime.ReadMemStats(m)
}

// TestManyRows: the memory does not grow with the rows, and an end of the context ends the reading.
func TestManyRows(t *testing.T) {
	line := func(i int) string {
		return fmt.Sprintf(`{"type":"balance","owner":"owner-%d","available":5}`+"\n",
			i)
	}
	grown := func(rows int) (bytes int64) {
		var text strings.Builder
		for i := range rows {
			text.WriteString(line(i))
		}
		s, err := open(t, write(t, "many.jsonl", text.String()), Options{})
		if err != nil || s.Rows != int64(rows) {
			t.Fatal(s, err)
		}
		text.Reset()
		var before, now runtime.MemStats
		inUse(&before)
		n := 0
		for _, err := range s.Books().Owners {
			if n++; err != nil {
				t.Fatal(err)
			}
			if n%(rows/4) == 0 {
				inUse(&now)
				bytes = max(bytes, int64(now.HeapAlloc)-int64(before.HeapAlloc))
			}
		}
		if n != rows {
			t.Fatalf("%d rows of %d", n, rows)
		}
		return bytes
	}
	if few, many := grown(2_000), grown(20_000); many > few+1_000_000 {
		t.Errorf("2,000 rows need %d bytes, 20,000 rows %d", few, many)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, write(t, "x.jsonl", line(1)), nil, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestMappedBooksAreSound brings the tables of each known schema into a ledger: the figures are theirs
// and the audit holds.
func TestMappedBooksAreSound(t *testing.T) {
	for name, want := range map[string]string{
		"seed1": "demo 7 0 3 0, idle 0 0 0 0", "seed2": "ann 0 205 210 8", "seed3": "u 9 0 16 0",
	} {
		dbtest.Each(t, func(t *testing.T, dsn string) {
			l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			s, err := open(t, database(t, mapped[name].tables...), Options{Map: name})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := l.Import(t.Context(), s.Books(), ledger.ImportParams{}); err != nil || r.Imported == 0 {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
			balances, err := l.Balances(t.Context(), "", 10)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range balances {
				got = append(got, fmt.Sprint(b.Owner, " ", b.Available, b.Held, b.Used, b.Expired))
			}
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("%s: %s, want %s", name, text, want)
			}
			if r, err := l.Audit(t.Context(), ledger.AuditParams{}); err != nil || !r.OK {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		})
	}
}
