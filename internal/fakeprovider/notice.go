package fakeprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"jobledger/internal/webhook"
)

// Running is the provider's word for a job that has not ended.
const Running = "running"

// Notice is what a provider sends to the callback.
type Notice struct {
	Job     string `json:"job"`
	Attempt int64  `json:"attempt"`
	ID      string `json:"id"` // the provider's own
	Outcome string `json:"outcome"`
}

// Reply is how a callback was answered.
type Reply struct {
	Status int
	Body   []byte
}

// Sign sets the key that callbacks are signed with from now on, as Standard Webhooks are.
func (p *Provider) Sign(key webhook.Key) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.key = &key
}

// CallBack reports the outcome of a job to its order's callback.
func (p *Provider) CallBack(ctx context.Context, id, outcome string) error {
	r, err := p.Send(ctx, id, outcome)
	if err == nil && r.Status/100 != 2 {
		err = fmt.Errorf("call back: the answer was %d", r.Status)
	}
	return err
}

// Send is CallBack for those who look at the answer. Its error is that there was none.
func (p *Provider) Send(ctx context.Context, id, outcome string) (Reply, error) {
	o, found := p.order(id)
	if !found {
		return Reply{}, errors.New("call back: there is no job " + id)
	}
	body, err := json.Marshal(Notice{Job: o.Job, Attempt: o.Attempt, ID: id, Outcome: outcome})
	if err != nil {
		return Reply{}, fmt.Errorf("call back: %w", err)
	}
	header, err := p.signature(body)
	if err != nil {
		return Reply{}, fmt.Errorf("call back: %w", err)
	}
	return Post(ctx, o.Callback, header, body)
}

// signature gives the headers of a callback.
func (p *Provider) signature(body []byte) (http.Header, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.key == nil {
		return http.Header{}, nil
	}
	p.sent++
	return webhook.Sign([]webhook.Key{*p.key}, "msg-"+strconv.Itoa(p.sent), time.Now(), body)
}

// Post sends any body with any headers to a callback, as somebody does who is not the provider.
func Post(ctx context.Context, callback string, header http.Header, body []byte) (Reply, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, callback, bytes.NewReader(body))
	if err != nil {
		return Reply{}, fmt.Errorf("call back: %w", err)
	}
	request.Header = header.Clone()
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Reply{}, fmt.Errorf("call back: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, bodyMax))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return Reply{}, fmt.Errorf("call back: %w", err)
	}
	return Reply{response.StatusCode, text}, nil
}
