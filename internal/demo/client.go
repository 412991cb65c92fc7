package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// client asks the server as an app does.
type client struct {
	url   string
	token string
	http  *http.Client
}

// How often, and how long apart, what may be tried again is tried again.
const (
	triesMax = 20
	tryPause = 250 * time.Millisecond
)

// get asks for what is at a path.
func (c *client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, nil, into)
}

// post sends a document to a path.
func (c *client) post(ctx context.Context, path string, document, into any) error {
	return c.do(ctx, http.MethodPost, path, document, into)
}

// do sends a request, and sends it again as long as the server says that this is safe and may help: every
// write has a key of its own.
func (c *client) do(ctx context.Context, method, path string, document, into any) error {
	var body []byte
	if document != nil {
		var err error
		if body, err = json.Marshal(document); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	for try := 1; ; try++ {
		status, text, err := c.once(ctx, method, path, body)
		switch {
		case err != nil:
			return fmt.Errorf("%s %s: %w", method, path, err)
		case status/100 == 2:
			return json.Unmarshal(text, into)
		case status != http.StatusServiceUnavailable || try == triesMax:
			return fmt.Errorf("%s %s: %d %s", method, path, status, text)
		}
		if err := pause(ctx, tryPause); err != nil {
			return err
		}
	}
}

func (c *client) once(
	ctx context.Context, method, path string, body []byte,
) (status int, text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, text, errors.Join(err, response.Body.Close())
}

// all reads every page of a list.
func all[T any](ctx context.Context, c *client, path string) (items []T, err error) {
	for after := ""; ; {
		var page struct {
			Items []T
			Next  string
		}
		query := "?limit=1000"
		if after != "" {
			query += "&after=" + url.QueryEscape(after)
		}
		if err := c.get(ctx, path+query, &page); err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if after = page.Next; after == "" {
			return items, nil
		}
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
