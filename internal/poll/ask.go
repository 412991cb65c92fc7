package poll

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"jobledger/internal/providers"
	"jobledger/ledger"
)

// ask makes one call. Only a provider that says so itself, in an answer that is whole and about this job,
// has ended a job; all else is an error, which says nothing of the job. delay is how long to wait before it
// is asked for again.
func (a *asker) ask(
	ctx context.Context, task *ledger.PollTask,
) (said *providers.Said, delay time.Duration, err error) {
	poll := a.provider.Poll
	delay = poll.Wait(task.Tries)
	request, err := poll.Request(ctx, task.UpstreamID)
	if err != nil {
		return nil, delay, err
	}
	answer, err := a.client.Do(ctx, request)
	if err != nil {
		return nil, delay, err
	}
	if answer.Status/100 != 2 {
		wish := retryAfter(answer.Header, time.Now())
		return nil, max(delay, min(wish, poll.Most())), fmt.Errorf("the answer has status %d", answer.Status)
	}
	if answer.Truncated {
		return nil, delay, fmt.Errorf("the answer has more than %d bytes", answerMax)
	}
	s, err := poll.Read(answer.Body)
	if err == nil {
		err = about(&s, task)
	}
	if err != nil {
		return nil, delay, err
	}
	return &s, delay, nil
}

// about refuses an answer that names another job than the one that was asked for.
func about(s *providers.Said, task *ledger.PollTask) error {
	switch {
	case s.UpstreamID != "" && s.UpstreamID != task.UpstreamID:
		return fmt.Errorf("the answer is about %.80q, not %.80q", s.UpstreamID, task.UpstreamID)
	case s.Job != "" && s.Job != task.Job:
		return fmt.Errorf("the answer is about job %.80q", s.Job)
	case s.Attempt != 0 && s.Attempt != task.Attempt:
		return fmt.Errorf("the answer is about attempt %d, not %d", s.Attempt, task.Attempt)
	}
	return nil
}

// retryAfter reads how long a provider wishes not to be asked: seconds, or a date. 0: it says nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now)
	}
	return 0
}

// lineMax bounds an error that is remembered, in bytes.
const lineMax = 500

// line makes an error one line that every engine can keep; empty for none.
func line(err error) string {
	if err == nil {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), ""))
	return strings.ToValidUTF8(text[:min(len(text), lineMax)], "")
}
