package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/internal/providers"
	"jobledger/ledger"
)

func callbackCommand() *cli.Command {
	return family("callback", "jobledger callback verify rep --providers p.json --headers h.txt --body b.json",
		"check what providers send", callbackVerifyCommand())
}

func callbackVerifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		ArgsUsage: "PROVIDER",
		UsageText: "jobledger callback verify rep --providers p.json --headers h.txt --body b.json\n" +
			"jobledger callback verify rep --providers p.json --headers h.txt \\\n" +
			"  --body b.json --at 2026-01-01T00:00:00Z",
		Usage: "say whether a provider's callback would be taken, and what it says",
		Description: "Looks at the files only: nothing is opened, sent or changed. The headers stand in their " +
			"file as they came, one \"Name: value\" a line; the body must be byte for byte what came. What " +
			"is refused exits with " + fmt.Sprint(ledger.Unauthenticated.Info().Exit) + " and says why.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "providers", Required: true, Usage: "the `FILE` of the providers"},
			&cli.StringFlag{Name: "headers", Required: true, Usage: "the `FILE` with the headers"},
			&cli.StringFlag{Name: "body", Required: true, Usage: "the `FILE` with the body"},
			&cli.StringFlag{Name: "at", Usage: "as if it had come at this `TIME` (RFC 3339), not now"},
		},
		Action: runCallbackVerify,
	}
}

// callbackAnswer is what the check of a callback says.
type callbackAnswer struct {
	Provider string         `json:"provider"`
	Says     providers.Said `json:"says"`
}

func runCallbackVerify(c *cli.Context) error {
	set, err := providers.Load(c.String("providers"))
	if err != nil {
		return err
	}
	name := c.Args().First()
	p := set.Find(name)
	if p == nil {
		return usage("provider", "provider: %q is not in the file", name)
	}
	at := time.Now()
	if c.IsSet("at") {
		if at, err = time.Parse(time.RFC3339, c.String("at")); err != nil {
			return usage("at", "at: %q is not a time (2026-12-31T00:00:00Z)", c.String("at"))
		}
	}
	header, err := readHeaders(c.String("headers"))
	if err != nil {
		return err
	}
	body, err := os.ReadFile(c.String("body"))
	if err != nil {
		return usage("body", "body: %v", err)
	}
	if err := p.Verify(header, body, at); err != nil {
		return &ledger.Error{Code: ledger.Unauthenticated, Message: err.Error()}
	}
	said, err := p.Read(body)
	if err != nil {
		return err
	}
	return show(c, callbackAnswer{p.Name, said}, func(w io.Writer) { printCallback(w, p, &said) })
}

// readHeaders reads a file of headers. A first line that is a request's, and a last one that is empty,
// may be there or not.
func readHeaders(path string) (http.Header, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("headers", "headers: %v", err)
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if bytes.HasPrefix(first, []byte("POST ")) || bytes.HasPrefix(first, []byte("HTTP/")) {
		text = rest
	}
	in := textproto.NewReader(bufio.NewReader(bytes.NewReader(text)))
	h, err := in.ReadMIMEHeader()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, usage("headers", "headers: %s is not a list of Name: value: %v", path, err)
	}
	return http.Header(h), nil
}

// printCallback says what a callback that would be taken says, and what it would do.
func printCallback(w io.Writer, p *providers.Provider, said *providers.Said) {
	fmt.Fprintf(w, "taken: %s signed this\n", p.Name)
	t := newTable("what", "value")
	for _, row := range [][2]string{
		{"upstream id", said.UpstreamID}, {"job", said.Job}, {"status", said.Word},
		{"outcome", string(said.Outcome)},
	} {
		if row[1] != "" {
			t.AppendRow([]any{row[0], printable(row[1])})
		}
	}
	if said.Attempt > 0 {
		t.AppendRow([]any{"attempt", said.Attempt})
	}
	if said.Cost != nil {
		t.AppendRow([]any{"cost", *said.Cost})
	}
	printTable(w, t)
	switch {
	case said.Outcome == "":
		fmt.Fprintln(w, "the status is no end in the file: the job counts as running, and nothing changes")
	case p.Authority == providers.PollOnly:
		fmt.Fprintln(w, "it would not settle the job, but have the provider polled at once: the authority is poll")
	default:
		fmt.Fprintf(w, "it would settle the job as %s, if the job is open\n", said.Outcome)
	}
}
