package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/internal/providers"
	"jobledger/internal/service"
	"jobledger/ledger"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name: "serve",
		UsageText: "jobledger serve\n" +
			"jobledger serve --providers providers.json --poll --deliver\n" +
			"jobledger serve --addr 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem",
		Usage: "answer requests over HTTP",
		Description: "The nouns and verbs of the commands stand under /v1, with the same fields; /docs explains " +
			"them, /metrics counts. At / people see the state of the ledger, and the lab. While no token was ever " +
			"made, the server answers programs on this machine; from the first token on, only those who have one " +
			"(token create).\n\n" +
			"An address that others can reach is refused without a token, and without a certificate unless " +
			"--behind-proxy says that TLS ends elsewhere. The log, on stderr, has a line of JSON for each request " +
			"and nothing secret. SIGTERM and Ctrl-C finish what was accepted.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "addr", Value: "127.0.0.1:8080", Usage: "listen at `HOST:PORT`; 0: any free port"},
			&cli.StringFlag{Name: "tls-cert", Usage: "the `FILE` of the certificate, with those above it"},
			&cli.StringFlag{Name: "tls-key", Usage: "the `FILE` of its key"},
			&cli.StringFlag{Name: "providers", Usage: "take the callbacks of the providers in this `FILE`"},
			&cli.BoolFlag{Name: "poll", Usage: "ask the providers how their jobs are, at their status addresses"},
			&cli.BoolFlag{Name: "deliver", Usage: "send events to their endpoints, as deliver does"},
			&cli.StringFlag{Name: "lab-db", Usage: "the `URL` of a PostgreSQL server, for the lab"},
			&cli.BoolFlag{Name: "behind-proxy", Usage: "what is reached from elsewhere is a proxy, where TLS ends"},
		}, sendingFlags()...),
		Action: runServe,
	}
}

// serving is what serve was asked for.
type serving struct {
	addr    string
	options service.Options
}

func runServe(c *cli.Context) error {
	s, err := servingOf(c)
	if err != nil {
		return err
	}
	_, err = with(c, func(ctx context.Context, l *ledger.Ledger) (struct{}, error) {
		return struct{}{}, s.run(ctx, c, l)
	})
	return err
}

// servingOf reads the arguments and refuses what would be open to others.
func servingOf(c *cli.Context) (*serving, error) {
	s := &serving{addr: c.String("addr"), options: service.Options{
		Poll: c.Bool("poll"), Deliver: c.Bool("deliver"),
		AllowPrivate: c.Bool("allow-private"), AllowHTTP: c.Bool("allow-http"),
	}}
	o := &s.options.Server
	o.Log = slog.New(slog.NewJSONHandler(c.App.ErrWriter, nil))
	o.CertFile, o.KeyFile, o.LabServer = c.String("tls-cert"), c.String("tls-key"), c.String("lab-db")
	if err := s.readProviders(c); err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(s.addr)
	proxy, encrypted := c.Bool("behind-proxy"), o.CertFile != ""
	switch {
	case err != nil:
		return nil, usage("addr", "addr: %q is not HOST:PORT", s.addr)
	case encrypted != (o.KeyFile != ""):
		return nil, usage("tls-cert", "tls-cert: --tls-cert and --tls-key go together")
	case !loopback(host) && !encrypted && !proxy:
		return nil, usage("addr", "addr: others can reach %s: give --tls-cert and --tls-key, or say "+
			"--behind-proxy if TLS ends elsewhere", s.addr)
	}
	if encrypted {
		if _, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err != nil {
			return nil, usage("tls-cert", "tls-cert: %v", err)
		}
	}
	o.NeedToken = !loopback(host) || proxy
	return s, nil
}

// readProviders reads the file of the providers, if there is one.
func (s *serving) readProviders(c *cli.Context) (err error) {
	switch {
	case c.IsSet("providers"):
		s.options.Server.Providers, err = providers.Load(c.String("providers"))
	case s.options.Poll:
		err = usage("poll", "poll: there are no --providers to ask")
	}
	return err
}

// warn says in the log, in one line, whose jobs this server alone would never settle.
func (s *serving) warn() {
	if s.options.Poll || s.options.Server.Providers == nil {
		return
	}
	var names []string
	for _, p := range s.options.Server.Providers.All() {
		if p.Authority == providers.PollOnly {
			names = append(names, p.Name)
		}
	}
	if len(names) > 0 {
		s.options.Server.Log.Warn("only polls settle these providers' jobs, and this server does not poll (--poll)",
			slog.Any("providers", names))
	}
}

// loopback tells whether an address can be reached from this machine alone. A name is looked up nowhere.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || strings.EqualFold(host, "localhost")
}

// run listens, says where, and serves until the command is told to end.
func (s *serving) run(ctx context.Context, c *cli.Context, l *ledger.Ledger) error {
	list, err := l.Tokens(ctx)
	if err != nil {
		return err
	}
	valid := slices.ContainsFunc(list, func(t ledger.Token) bool { return t.RevokedAt == nil })
	o := &s.options.Server
	if o.NeedToken && !valid {
		return usage("addr", "addr: others can reach %s, and nobody has a token: make one first (token create)",
			s.addr)
	}
	if c.IsSet("lab-db") {
		if err := service.CheckLab(ctx, "lab-db", o.LabServer); err != nil {
			return err
		}
	}
	h, err := service.New(l, s.options)
	if err != nil {
		return err
	}
	s.warn()
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return usage("addr", "addr: %v", err)
	}
	answer := struct {
		URL string `json:"url"`
	}{"http://" + listener.Addr().String()}
	if o.CertFile != "" {
		answer.URL = "https://" + listener.Addr().String()
	}
	if err := show(c, answer, func(w io.Writer) {
		who := "open to programs on this machine, as no token was ever made"
		if o.NeedToken || len(list) > 0 {
			who = "for those who have a token"
		}
		fmt.Fprintf(w, "listening on %s, %s\n", answer.URL, who)
	}); err != nil {
		return errors.Join(err, listener.Close())
	}
	return h.Run(ctx, listener)
}
