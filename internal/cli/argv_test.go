package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func testApp() *cli.App { return newApp(Program{Stdout: io.Discard, Stderr: io.Discard}) }

// words splits a line as a shell does that knows only single quotes.
func words(line string) (list []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list = append(list, part)
		} else {
			list = append(list, strings.Fields(part)...)
		}
	}
	return list
}

func TestFlagsStandAnywhere(t *testing.T) {
	const grant = "jobledger --db=x grant --key=k -- alice 5"
	for _, c := range []struct{ line, want string }{
		{"--db x grant --key k alice 5", grant},
		{"--db=x grant alice 5 --key=k", grant},
		{"--key k --db x grant alice 5", grant},
		{"grant alice --key k 5 --db x", grant},
		{"grant --db x --key k -- alice 5", grant},
		{"grant alice -5 --key k", "jobledger grant --key=k -- alice -5"},
		{"grant alice -.5 --key -1", "jobledger grant --key=-1 -- alice -.5"},
		{"grant --key k -- --json -h", "jobledger grant --key=k -- --json -h"},
		{"grant --key=--json a 1", "jobledger grant --key=--json -- a 1"},
		{"grant --key= a 1", "jobledger grant --key= -- a 1"},
		{"grant --key=a=b a 1", "jobledger grant --key=a=b -- a 1"},
		{"balance - --at -1h", "jobledger balance --at=-1h -- -"},
		{"--json job show j1", "jobledger --json=true job show -- j1"},
		{"job --owner o create --cost 7 j1 --json", "jobledger --json=true job create --owner=o --cost=7 -- j1"},
		{"balance --json=false help", "jobledger --json=false balance -- help"},
	} {
		line, err := parseArgs(testApp(), words(c.line))
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
		} else if got := strings.Join(line.argv(), " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.line, got, c.want)
		}
	}
}

func TestHelpStandsAnywhere(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"--help", ""},
		{"-h grant", "grant "},
		{"grant alice --bogus 5 -h", "grant "},
		{"job create --help j1", "job create "},
		{"job -h", "job "},
		{"help grant", "grant "},
		{"help job create", "job create "},
		{"help", ""},
	} {
		line, err := parseArgs(testApp(), words(c.line))
		if err != nil || !line.help || line.names() != c.want {
			t.Errorf("%s: got %+v, %v", c.line, line, err)
		}
	}
	if line, err := parseArgs(testApp(), words("help exit-codes")); err != nil || line.help {
		t.Errorf("help exit-codes: got %+v, %v", line, err)
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, c := range []struct{ line, field, want string }{
		{"", "", "no command given: see jobledger --help"},
		{"-- grant", "", "no command given: see jobledger --help"},
		{"grnat alice 5", "", `unknown command "grnat": did you mean grant?`},
		{"bogus", "", `unknown command "bogus"`},
		{"help bogus", "", `unknown command "bogus"`},
		{"bogus --help", "", `unknown command "bogus"`},
		{"race-chidl", "", `unknown command "race-chidl"`},
		{"job", "", "job needs a command: create, submit, accepted, rejected, uncertain, show, list, explain, " +
			"cancel, settle"},
		{"job shwo j1", "", `unknown command "job shwo": did you mean show?`},
		{"grant alice 5 --kye k", "kye", "unknown flag --kye: did you mean --key?"},
		{"--bogus 5 grant", "bogus", "unknown flag --bogus"},
		{"grant -json", "json", "unknown flag -json: did you mean --json?"},
		{"balance --key k", "key", "unknown flag --key for balance"},
		{"balance --lot 5", "lot", "unknown flag --lot for balance: did you mean --lots?"},
		{"grant alice 5 --key", "key", "flag --key needs a value"},
		{"grant alice 5 --key --json", "key", "flag --key needs a value"},
		{"grant alice 5 --key -- k", "key", "flag --key needs a value"},
		{"grant --json=maybe alice 5 --key k", "json", "flag --json takes no value"},
		{"grant alice 5 --key a --key=b", "key", "flag --key is given twice"},
		{"--json balance --json", "json", "flag --json is given twice"},
		{"grant", "owner", "missing argument OWNER: jobledger grant OWNER AMOUNT"},
		{"grant alice --key k", "amount", "missing argument AMOUNT: jobledger grant OWNER AMOUNT"},
		{"balance a b", "", `too many arguments: "b" is not one of jobledger balance [OWNER]`},
		{"job list j1", "", `too many arguments: "j1" is not one of jobledger job list`},
		{"grant alice 5", "key", "grant needs the flag --key"},
		{"job create j1 --owner o", "cost", "job create needs the flag --cost"},
	} {
		_, err := parseArgs(testApp(), words(c.line))
		e, ok := err.(*ledger.Error)
		if !ok || e.Code != ledger.Invalid || e.Field != c.field || e.Message != c.want {
			t.Errorf("%s:\n got %+v\nwant %q of field %q", c.line, err, c.want, c.field)
		}
	}
}

func TestWantsJSON(t *testing.T) {
	for line, want := range map[string]bool{
		"balance --json": true, "--json=true x": true, "--json=maybe": true, "--bogus --json": true,
		"balance": false, "--json=false": false, "balance -- --json": false, "--key=--json": false,
	} {
		if got := wantsJSON(words(line)); got != want {
			t.Errorf("%s: got %v", line, got)
		}
	}
}

func TestSuggestions(t *testing.T) {
	known := []string{"grant", "balance", "show", "schema", "audit"}
	for wrong, want := range map[string]string{
		"grnat": "grant", "grants": "grant", "balence": "balance", "blance": "balance", "shwo": "show",
		"aduit": "audit", "shema": "schema",
		"bogus": "", "gr": "", "xx": "", "showing": "", "granola": "", "": "",
	} {
		if want != "" {
			want = ": did you mean " + want + "?"
		}
		if got := didYouMean(wrong, known); got != want {
			t.Errorf("%q: got %q, want %q", wrong, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "xbc", 1}, {"abc", "c", 2}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != c.want {
			t.Errorf("distance %q %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestCommandTree holds what the parser and the help rely on: an example opens each help and is a
// right command line; a flag takes a value everywhere or nowhere.
func TestCommandTree(t *testing.T) {
	app := testApp()
	arity := map[string]bool{}
	var visit func(path []*cli.Command)
	visit = func(path []*cli.Command) {
		c := path[len(path)-1]
		for _, f := range c.Flags {
			name := f.Names()[0]
			if known, ok := arity[name]; ok && known != takesValue(f) {
				t.Errorf("%s: --%s takes a value in one command and not in another", c.Name, name)
			}
			arity[name] = takesValue(f)
			if len(f.Names()) > 1 {
				t.Errorf("%s: --%s has two names", c.Name, name)
			}
		}
		for _, sub := range c.Subcommands {
			visit(append(slices.Clone(path), sub))
		}
		if c.Hidden {
			return
		}
		if !strings.HasPrefix(helpText(app, path), "Example:\n  jobledger "+path[0].Name) {
			t.Errorf("%s: the help does not open with an example", c.Name)
		}
		for example := range strings.Lines(strings.ReplaceAll(c.UsageText, " \\\n ", "")) {
			if _, err := parseArgs(app, words(example)[1:]); err != nil {
				t.Errorf("%s: %v", example, err)
			}
		}
	}
	for _, c := range app.Commands {
		visit([]*cli.Command{c})
	}
	for example := range strings.Lines(appExample) {
		if _, err := parseArgs(app, words(example)[1:]); err != nil {
			t.Errorf("%s: %v", example, err)
		}
	}
}
