package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// export gives what a ledger exports.
func (b *workbench) export(l *ledger.Ledger) string {
	b.Helper()
	var out bytes.Buffer
	b.ok(l.Export(b.Context(), &out))
	return out.String()
}

func (b *workbench) restore(l *ledger.Ledger, text string, dry bool) (ledger.ImportReport, error) {
	b.Helper()
	return l.Restore(b.Context(), func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}, ledger.ImportParams{DryRun: dry})
}

// busy leaves something of every kind in the ledger.
func (b *workbench) busy() {
	b.Helper()
	b.imports(balanceRow(2), jobRow("old", 7, "failed", rejected, handles), refundRow("r", "old", 2),
		jobRow("odd <&> \\u2028.", 1, "pending", `"reason":"a \"quoted\" <reason> & more\n\\u2028"`))
	b.settleLegacy("won failed 5 0", "old")
	b.give("g", 100, priority(3), until(48*time.Hour))
	_, err := b.Grant(b.Context(), ledger.GrantParams{
		Owner: "Ω", Amount: 5, Key: "m", Metadata: `{"n": 1e3, "s": "<\u2028>"}`,
	})
	b.ok(err)
	b.give("h", 10, from(time.Hour))
	b.at(time.Second)
	b.ok(b.create("hold", 30, ledger.ModeHold))
	b.ok(b.create("charge", 30, ledger.ModeCharge))
	b.ok(b.create("open", 9, ledger.ModeHold))
	_, err = b.Submit(b.Context(), "open", "p")
	b.ok(err)
	_, err = b.Uncertain(b.Context(), "open", 1, "timeout")
	b.ok(err)
	_, err = b.Accepted(b.Context(), "open", 1, "u2")
	b.ok(err)
	b.settle("won completed 10 20", "hold", ledger.Completed, 20)
	b.settle("won failed 30 0", "charge", ledger.Failed)
	b.settle("conflict failed 30 0", "charge", ledger.Completed)
	b.settle("duplicate failed 30 0", "charge", ledger.Failed)
	b.served()
	_, err = b.Revoke(b.Context(), ledger.RevokeParams{Owner: "demo", Amount: 1, Key: "k", Reason: "r"})
	b.ok(err)
}

// eachPair runs fn with a busy ledger and an empty one, on every engine each.
func eachPair(t *testing.T, fn func(busy, empty *workbench)) {
	t.Helper()
	eachWorkbench(t, func(b *workbench) {
		b.busy()
		dbtest.Each(b.T, func(t *testing.T, dsn string) {
			into := newWorkbench(t, dsn)
			into.micro.Store(b.micro.Load())
			fn(b, into)
			into.audit()
		})
	})
}

// eachRestored runs fn with a workbench on an empty ledger, what a busy one exports, and a handle on
// the empty one.
func eachRestored(t *testing.T, fn func(b *workbench, text string, empty *ledger.Ledger)) {
	t.Helper()
	eachPair(t, func(busy, empty *workbench) { fn(empty, busy.export(busy.Ledger), empty.Ledger) })
}

// TestExportRestoresAll: an export, restored, exports the same bytes; restored again, it changes nothing.
func TestExportRestoresAll(t *testing.T) {
	eachRestored(t, func(b *workbench, text string, empty *ledger.Ledger) {
		dry, err := b.restore(empty, text, true)
		b.ok(err)
		b.same(b.query(`SELECT owner FROM balances`), nil)
		r, err := b.restore(empty, text, false)
		b.ok(err)
		if rows := int64(strings.Count(text,
			"\n")) - 2; r.Imported != rows || dry.Imported != rows || r.Owners != 2 {
			b.Errorf("restored %+v, dry run %+v, want %d rows", r, dry, rows)
		}
		if again := b.export(empty); again != text {
			b.Errorf("exported\n%s\nand then\n%s", text, again)
		}
		b.unchanged(func() {
			again, err := b.restore(empty, text, false)
			b.ok(err)
			if again.Imported != 0 || again.Replayed != r.Imported {
				b.Errorf("restored again: %+v", again)
			}
		})
		b.settle("won completed 0 9", "open", ledger.Completed) // and life goes on
		for _, kind := range []string{"balance", "job", "entry", "attempt", "answer", "report", "event"} {
			if !strings.Contains(text, `{"type":"`+kind+`",`) {
				b.Errorf("the test has no %s", kind)
			}
		}
	})
}

// TestRestoreRefuses an export that was changed, cut or mixed up, and keeps nothing of it.
func TestRestoreRefuses(t *testing.T) {
	digit := regexp.MustCompile(`[0-9]`)
	eachRestored(t, func(b *workbench, text string, empty *ledger.Ledger) {
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		last := len(lines) - 1
		join := func(parts ...[]string) string {
			var all []string
			for _, p := range parts {
				all = append(all, p...)
			}
			return strings.Join(all, "")
		}
		broken := map[string]string{
			"":                join(lines[:last]),
			"twice the end":   join(lines, []string{"\n"}, lines[last:]),
			"half a line":     text[:len(text)/2],
			"another format":  strings.Replace(text, `"format":1`, `"format":2`, 1),
			"another schema":  strings.Replace(text, `"schema_version":`, `"schema_version":9`, 1),
			"an unknown type": join(lines[:3], []string{`{"type":"gift"}` + "\n"}, lines[3:]),
			"a field more":    strings.Replace(text, `{"type":"job",`, `{"type":"job","gift":1,`, 1),
			"swapped":         join(lines[:1], lines[last-1:last], lines[1:last-1], lines[last:]),
		}
		for i, line := range lines[:last] {
			broken["without line "+line] = join(lines[:i], lines[i+1:])
			for n, at := range digit.FindAllStringIndex(line, 40)[1:] {
				if n%b.part() > 0 {
					continue
				}
				changed := line[:at[0]] + string('0'+(line[at[0]]-'0'+1)%10) + line[at[1]:]
				broken["line "+changed] = join(lines[:i], []string{changed}, lines[i+1:])
			}
		}
		for name, text := range broken {
			_, err := b.restore(empty, text, false)
			if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), "line ") {
				b.Errorf("%s: %v", name, err)
			}
		}
		b.same(b.query(`SELECT owner FROM balances`), nil)
		t.Logf("%d broken exports", len(broken))
	})
}

// TestRestoreVerifies: an export that was changed and sealed again is refused at the first entry that does
// not follow from its chain or, where no entry tells, by the tables or the audit.
func TestRestoreVerifies(t *testing.T) {
	sum := regexp.MustCompile(`"sha256":"[0-9a-f]*"`)
	reseal := func(lines []string) string {
		last := len(lines) - 1
		body := strings.Join(lines[:last], "")
		return body + sum.ReplaceAllString(lines[last], fmt.Sprintf(`"sha256":"%x"`, sha256.Sum256([]byte(body))))
	}
	eachRestored(t, func(b *workbench, text string, empty *ledger.Ledger) {
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		tried := 0
		for i, line := range lines {
			for old, change := range map[string]struct{ with, want string }{
				`"type":"entry","id":"0`:   {`"type":"entry","id":"1`, fmt.Sprintf("line %d: entry 1", i+1)},
				`"kind":"hold","amount":3`: {`"kind":"hold","amount":4`, fmt.Sprintf("line %d: entry 0", i+1)},
				`"seq":3,"kind"`:           {`"seq":4,"kind"`, fmt.Sprintf("line %d: entry 0", i+1)},
				`"status":"completed"`:     {`"status":"failed"`, "contradicts the tables"},
				`"owner":"Ω","available":5`: {`"owner":"Ω","available":6`,
					"would not hold together: balances-journal"},
				`"verdict":"conflict","count":1`: {`"verdict":"duplicate","count":1`, "would not hold together: reports"},
			} {
				if changed := strings.Replace(line, old, change.with, 1); changed != line {
					tried++
					all := slices.Clone(lines)
					all[i] = changed
					_, err := b.restore(empty, reseal(all), false)
					if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), change.want) {
						b.Errorf("%s for %s: %v", change.with, old, err)
					}
				}
			}
		}
		duplicate := slices.IndexFunc(lines, func(line string) bool {
			return strings.Contains(line, `"callback","outcome":"failed","upstream_id":"","verdict":"duplicate"`)
		})
		_, err := b.restore(empty, reseal(slices.Delete(slices.Clone(lines), duplicate, duplicate+1)), false)
		if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), "it is incomplete") {
			b.Errorf("without a report: %v", err)
		}
		if tried < 10 {
			b.Errorf("tried only %d changes", tried)
		}
		_, err = b.restore(empty, reseal(lines), true)
		b.ok(err)
	})
}

// TestRestoreIntoUse: owners that are there with other content keep the whole export out; others come in
// beside those that are there.
func TestRestoreIntoUse(t *testing.T) {
	eachRestored(t, func(b *workbench, text string, empty *ledger.Ledger) {
		_, err := b.Grant(b.Context(), ledger.GrantParams{Owner: "neighbour", Amount: 5, Key: "n"})
		b.ok(err)
		_, err = b.restore(empty, text, false)
		b.ok(err)
		b.give("more", 1)
		b.unchanged(func() {
			r, err := b.restore(empty, text, false)
			b.fails(err, ledger.Invalid)
			if len(r.Refused) != 1 || r.Refused[0].Line != 2 {
				b.Errorf("refused %v", r.Refused)
			}
		})
	})
}

type failingWriter struct{ left int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errors.New("the disk is full")
	}
	return len(p), nil
}

// TestExportFails when its output does.
func TestExportFails(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.busy()
		for _, left := range []int{0, 100} {
			err := b.Export(b.Context(), &failingWriter{left})
			b.fails(err, ledger.Internal)
			if !strings.Contains(err.Error(), "the disk is full") {
				b.Errorf("error %v", err)
			}
		}
	})
}
