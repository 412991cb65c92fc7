package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"jobledger/ledger"
)

const (
	streamsMax  = 64               // browsers that follow at the same time
	streamLife  = time.Hour        // then the browser asks again
	liveEvery   = 2 * time.Second  // between two looks for somebody who follows
	silenceMax  = 15 * time.Second // then something is said, so that nobody between hangs up
	messageTime = 5 * time.Second  // to take one message
)

// wantsStream tells whether a browser asks to be told what becomes of a page.
func wantsStream(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream")
}

// stream tells a browser what becomes of the page that it shows: its main part, each time that it has
// changed. It is the same view as the page, made again.
func (p *Page) stream(w http.ResponseWriter, r *http.Request, name string, see viewer) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many browsers follow already", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s := streamer{writer: w, control: http.NewResponseController(w)}
	// The bound for requests would end the stream. A server without bounds has none to move.
	_ = s.control.SetReadDeadline(time.Time{})
	look := time.NewTicker(liveEvery)
	defer look.Stop()
	end := time.NewTimer(streamLife)
	defer end.Stop()
	for {
		if err := p.tell(&s, r, name, see); err != nil {
			return
		}
		select {
		case <-look.C:
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		case <-p.stopping.Done():
			return
		}
	}
}

// tell makes the view again and sends it if it is another one. Its error ends the stream.
func (p *Page) tell(s *streamer, r *http.Request, name string, see viewer) error {
	if _, err := p.who(r); err != nil {
		return errors.Join(err, s.send("gone", err.Error()))
	}
	v, err := p.see(r, see)
	var b bytes.Buffer
	if err == nil {
		err = templates[name].ExecuteTemplate(&b, "main", v)
	}
	switch {
	case r.Context().Err() != nil:
		return r.Context().Err()
	case err != nil && ledger.CodeOf(err) != ledger.Busy:
		return errors.Join(err, s.send("gone", "the page cannot be shown any more"))
	case err != nil:
		return s.send("trouble", err.Error())
	}
	return s.change(b.String())
}

// streamer writes a stream of events.
type streamer struct {
	writer  http.ResponseWriter
	control *http.ResponseController
	last    [sha256.Size]byte // of what was sent
	spoke   time.Time
}

// change sends a page's main part, unless it is what was sent before.
func (s *streamer) change(text string) error {
	sum := sha256.Sum256([]byte(text))
	switch {
	case sum != s.last:
		s.last = sum
		return s.send("main", text)
	case time.Since(s.spoke) > silenceMax:
		return s.send("same", "")
	}
	return nil
}

func (s *streamer) send(event, text string) error {
	data, err := json.Marshal(text)
	if err != nil {
		return err
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(messageTime))
	if _, err := fmt.Fprintf(s.writer, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	s.spoke = time.Now()
	return s.control.Flush()
}
