// Package httpcall makes calls to addresses that somebody else has chosen: a provider's status address,
// a receiver's endpoint. Each call is bounded in time and size, follows no redirect, uses no proxy, and
// reaches no private address unless that is allowed.
package httpcall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Options are the bounds of a client.
type Options struct {
	Timeout      time.Duration // of a whole call, the reading of the answer included; it must be above 0
	BodyMax      int64         // bytes that are kept of an answer; 0 keeps none
	AllowPrivate bool          // calls may reach private, loopback and link-local addresses
	AllowHTTP    bool          // calls may be without TLS; to this machine they may if it may be reached at all
}

// Client makes guarded calls. It is safe for concurrent use; a slow host does not hold up the calls to
// another.
type Client struct {
	options Options
	http    *http.Client
}

// Answer is what a host answered.
type Answer struct {
	Status    int
	Header    http.Header
	Body      []byte // at most BodyMax bytes
	Truncated bool   // there was more
}

// New makes a client. It panics if the options have no timeout: a call that never ends is a mistake in
// the program.
func New(o Options) *Client {
	if o.Timeout <= 0 || o.BodyMax < 0 {
		panic("httpcall: New needs a timeout, and a bound that is not negative")
	}
	dialer := &net.Dialer{Timeout: o.Timeout, KeepAlive: 30 * time.Second, Control: o.control}
	return &Client{options: o, http: &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			// There is no Proxy: it would make the connection, and the guard would see its address only.
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // a few bytes could unpack to more than the bound
			MaxIdleConns:           64,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        30 * time.Second,
			TLSHandshakeTimeout:    o.Timeout,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}}
}

// Close closes the connections that are kept for the next call.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do makes a call and reads the answer, whatever its status. An error is one line that says what went
// wrong, and not where: after it nobody knows whether the host has acted, unless [Refused] says that it
// was not reached.
func (c *Client) Do(ctx context.Context, request *http.Request) (Answer, error) {
	if err := c.options.checkURL(request.URL); err != nil {
		return Answer{}, err
	}
	response, err := c.http.Do(request.WithContext(ctx))
	if err != nil {
		return Answer{}, short(err)
	}
	a := Answer{Status: response.StatusCode, Header: response.Header}
	a.Body, err = io.ReadAll(io.LimitReader(response.Body, c.options.BodyMax+1))
	if int64(len(a.Body)) > c.options.BodyMax {
		a.Body, a.Truncated = a.Body[:c.options.BodyMax], true
	}
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return Answer{}, fmt.Errorf("read the answer: %w", short(err))
	}
	return a, nil
}

// short takes away the address that the standard library puts before its errors: it may hold a token.
func short(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		if e.Timeout() {
			return fmt.Errorf("no answer in time: %w", e.Err)
		}
		return e.Err
	}
	return err
}
