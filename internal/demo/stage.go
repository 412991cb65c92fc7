package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"jobledger/internal/fakeprovider"
	"jobledger/internal/providers"
	"jobledger/internal/server"
	"jobledger/internal/service"
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

// setUp starts all that takes part. stop ends what was started, also after an error.
func (d *director) setUp(ctx context.Context) (stop func() error, err error) {
	var ends []func() error
	stop = func() error {
		var errs []error
		for i := len(ends) - 1; i >= 0; i-- {
			errs = append(errs, ends[i]())
		}
		return errors.Join(errs...)
	}
	eventSecret := webhook.NewSecret()
	if d.receiver, err = startReceiver(eventSecret); err != nil {
		return stop, err
	}
	ends = append(ends, d.receiver.close)
	if d.provider, err = fakeprovider.Start(); err != nil {
		return stop, err
	}
	ends = append(ends, d.provider.Close)
	d.orders = &fakeprovider.Client{URL: d.provider.URL, HTTP: newClient()}
	set, err := d.writeProviders()
	if err != nil {
		return stop, err
	}
	if _, err := ledger.Create(ctx, d.result.Database, ledger.Options{}); err != nil {
		return stop, err
	}
	l, err := ledger.Open(ctx, d.result.Database, ledger.Options{})
	if err != nil {
		return stop, err
	}
	ends = append(ends, l.Close)
	token, err := l.CreateToken(ctx, "demo", ledger.ScopeOperator)
	if err != nil {
		return stop, err
	}
	log, err := os.OpenFile(filepath.Join(d.options.Dir, "server.log"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return stop, err
	}
	ends = append(ends, log.Close)
	url, end, err := d.serve(l, service.Options{
		Poll: true, Deliver: true, AllowPrivate: true,
		Server: server.Options{Log: slog.New(slog.NewJSONHandler(log, nil)), NeedToken: true, Providers: set},
	})
	if err != nil {
		return stop, err
	}
	ends = append(ends, end)
	d.app = &client{url: url, token: token.Secret, http: newClient()}
	var added ledger.EndpointResult
	return stop, d.app.post(ctx, "/v1/endpoints", map[string]any{
		"url": d.receiver.url, "secret": eventSecret,
	}, &added)
}

// serve starts the server on a port of its own.
func (d *director) serve(l *ledger.Ledger, o service.Options) (url string, end func() error, err error) {
	s, err := service.New(l, o)
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("start the server: %w", err)
	}
	// It must outlive a demo that is broken off: what was begun is finished.
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener) }()
	return "http://" + listener.Addr().String(), func() error {
		cancel()
		return <-ended
	}, nil
}

// writeProviders writes the providers file and the secret of the one provider, as an operator would.
func (d *director) writeProviders() (*providers.Set, error) {
	secret := webhook.NewSecret()
	keys, err := webhook.ParseKeys(webhook.Standard, secret)
	if err != nil {
		return nil, err
	}
	d.key = keys[0]
	d.provider.Sign(d.key)
	file, err := json.MarshalIndent(map[string]any{"providers": []any{map[string]any{
		"name": provider, "scheme": webhook.Standard, "secret_file": provider + ".secret",
		"body":     map[string]string{"id": "/id", "status": "/outcome", "job": "/job", "attempt": "/attempt"},
		"outcomes": map[string]string{"completed": "completed", "failed": "failed"},
		"poll": map[string]any{
			"url": d.provider.URL + "/jobs/{id}", "least": "1s", "most": "5s",
			"body": map[string]string{"id": "/id", "status": "/outcome"},
		},
	}}}, "", "  ")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.options.Dir, "providers.json")
	for name, text := range map[string][]byte{
		path: file, filepath.Join(d.options.Dir, provider+".secret"): []byte(secret + "\n"),
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return nil, err
		}
	}
	return providers.Load(path)
}
