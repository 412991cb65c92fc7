package poll_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"jobledger/internal/poll"
)

// Of each provider that the file does not name and that has accepted jobs the log warns once, also of one
// whose jobs come later; of the others it says nothing, asked or not.
func TestUnnamedProviders(t *testing.T) {
	each(t, func(s *stage) {
		s.set = s.providers(entry("acme", s.fake.URL+"/jobs/{id}"), `{"name":"mute","scheme":"hmac-sha256",
			"signature":{"header":"X-Sign","encoding":"hex","timestamp":"X-Time","content":"{header:X-Time}:{body}"},
			"secret_file":"token","body":{"id":"/id","status":"/status"},"outcomes":{"done":"completed"}}`)
		s.submitted("named", "acme")
		s.submitted("called back", "mute")
		for _, job := range []string{"lost 1", "lost 2"} {
			s.submitted(job, "acne")
		}
		read, write := io.Pipe()
		log := slog.New(slog.NewJSONHandler(write, nil))
		p, err := poll.New(s.Ledger, s.set, poll.Options{
			AllowPrivate: true, Log: log, Every: 10 * time.Millisecond, Look: 10 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
		go func() {
			p.Run(ctx)
			write.Close()
		}()
		type line struct {
			Level, Provider string
			Jobs            int64
		}
		var got []line
		for d := json.NewDecoder(read); ; {
			var l line
			if err := d.Decode(&l); err != nil {
				break
			}
			switch got = append(got, l); len(got) {
			case 1:
				s.wait("named")
				s.submitted("lost later", "acne") // the name was told
				s.submitted("lost elsewhere", "zeta")
			case 2:
				time.AfterFunc(100*time.Millisecond, end) // ten looks more
			}
		}
		end()
		if want := []line{{"WARN", "acne", 2}, {"WARN", "zeta", 1}}; !reflect.DeepEqual(got, want) {
			t.Errorf("the log says %v, want %v", got, want)
		}
		s.stands("named", "completed 7 poll")
		s.stands("lost 1", "processing")
	})
}
