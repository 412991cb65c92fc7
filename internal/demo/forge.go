package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"jobledger/internal/fakeprovider"
	"jobledger/internal/webhook"
)

// forgery is how somebody who is not the provider tries to end a job.
type forgery string

// The forgeries. All of them say the opposite of the truth.
const (
	unsigned forgery = "unsigned"  // with no signature at all
	otherKey forgery = "other key" // signed with a key that the forger made
	altered  forgery = "altered"   // the signature of a genuine message over another body
	outdated forgery = "outdated"  // a message as the provider signed it an hour ago
)

var forgeries = []forgery{unsigned, otherKey, altered, outdated}

// forge calls back as a forger does, and gives the status of the answer.
func (d *director) forge(ctx context.Context, p *plan, notice fakeprovider.Notice) (status int, err error) {
	genuine, err := json.Marshal(notice)
	if err != nil {
		return 0, err
	}
	notice.Outcome = string(opposite(p.outcome))
	lie, err := json.Marshal(notice)
	if err != nil {
		return 0, err
	}
	header := http.Header{}
	message := "msg-forged-" + p.id
	switch p.forgery {
	case otherKey:
		keys, wrong := webhook.ParseKeys(webhook.Standard, webhook.NewSecret())
		if wrong != nil {
			return 0, wrong
		}
		header, err = webhook.Sign(keys, message, time.Now(), lie)
	case altered:
		header, err = webhook.Sign([]webhook.Key{d.key}, message, time.Now(), genuine)
	case outdated:
		header, err = webhook.Sign([]webhook.Key{d.key}, message, time.Now().Add(-time.Hour), lie)
	}
	if err != nil {
		return 0, fmt.Errorf("forge: %w", err)
	}
	reply, err := fakeprovider.Post(ctx, d.callback(), header, lie)
	return reply.Status, err
}
