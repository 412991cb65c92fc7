package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"jobledger/ledger"
)

// record is what is noted of one request while it is answered.
type record struct {
	id      string
	token   string   // the name of the token that it came with
	problem *problem // that it was answered with
}

type recordKey struct{}

func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

func requestID(ctx context.Context) string { return recordOf(ctx).id }

// note keeps the problem that a request is answered with, for the log.
func note(ctx context.Context, p *problem) { recordOf(ctx).problem = p }

// requestIDMax bounds an id that a client gives its request, in bytes.
const requestIDMax = 128

// identify gives a request the id that its client gave it in X-Request-ID, if that can stand in a log as
// it is, else a new one.
func identify(r *http.Request) string {
	id := r.Header.Get("X-Request-ID")
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("-_.:", c)
	}
	if id == "" || len(id) > requestIDMax || strings.ContainsFunc(id, func(c rune) bool { return !plain(c) }) {
		return rand.Text()
	}
	return id
}

// response notes what is sent.
type response struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader notes the status.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// observe is around everything: it names the request, measures it, logs it, and turns a panic into an
// answer. What the ledger had begun for it goes on by itself.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		began := time.Now()
		noted := &record{id: identify(r)}
		w := &response{ResponseWriter: out}
		r = r.WithContext(context.WithValue(r.Context(), recordKey{}, noted))
		setHeaders(w.Header(), noted.id)
		defer func() {
			value := recover()
			if value != nil && value != http.ErrAbortHandler {
				s.recovered(w, r, value)
			}
			s.metrics.observe(r, w.status, time.Since(began))
			s.log(r, w, noted, time.Since(began))
			if value != nil && w.status != http.StatusInternalServerError {
				panic(http.ErrAbortHandler) // half an answer is out: the client must see that it is cut
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// setHeaders sets what every answer has. Nothing here is for a browser to run, frame or keep.
func setHeaders(h http.Header, id string) {
	h.Set("X-Request-ID", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
}

func (s *Server) recovered(w *response, r *http.Request, value any) {
	err := fmt.Errorf("panic: %v", value)
	s.options.Log.LogAttrs(r.Context(), slog.LevelError, "panic",
		slog.String("request_id", requestID(r.Context())), slog.Any("value", value),
		slog.String("stack", string(debug.Stack())))
	if w.status == 0 {
		newProblem(err).send(w, r)
	}
}

// log writes the line of a request. Neither its headers nor its query nor its body are in it.
func (s *Server) log(r *http.Request, w *response, noted *record, took time.Duration) {
	attributes := []slog.Attr{
		slog.String("request_id", noted.id), slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.Duration("took", took),
		slog.String("remote", r.RemoteAddr),
	}
	if noted.token != "" {
		attributes = append(attributes, slog.String("token", noted.token))
	}
	level := slog.LevelInfo
	if p := noted.problem; p != nil {
		attributes = append(attributes, slog.String("code", string(p.Code)), slog.String("detail", p.Detail))
		if p.cause != nil && p.cause.Error() != p.Detail {
			attributes = append(attributes, slog.String("cause", p.cause.Error()))
		}
	}
	if w.status >= http.StatusInternalServerError && w.status != http.StatusServiceUnavailable {
		level = slog.LevelError
	}
	s.options.Log.LogAttrs(r.Context(), level, "request", attributes...)
}

// admit takes a request in, or refuses it at once if there are as many as may be. Those who ask how the
// server is are always answered; a callback comes in when it is known who sent it.
func (s *Server) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if aboutHealth(r.URL.Path) || strings.HasPrefix(r.URL.Path, callbackPath) {
			next.ServeHTTP(w, r)
			return
		}
		leave, err := s.enter(s.slots)
		if err != nil {
			newProblem(err).send(w, r)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}

// enter takes one of the slots, until leave is called, or refuses at once if there is none left.
func (s *Server) enter(slots chan struct{}) (leave func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	default:
		s.metrics.refused.Inc()
		return nil, &ledger.Error{
			Code:    ledger.Busy,
			Message: fmt.Sprintf("the server answers %d such requests at once, and has as many", cap(slots)),
		}
	}
}

// serveMux hands a request to its operation. What has none gets a problem, where the library has a text.
func (s *Server) serveMux(w http.ResponseWriter, r *http.Request) {
	handler, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	allowed := probe{header: http.Header{}}
	handler.ServeHTTP(&allowed, r)
	p := newProblem(&ledger.Error{Code: ledger.NotFound, Message: "there is nothing at this path; see /docs"})
	if allow := allowed.header.Get("Allow"); allow != "" {
		p = refuse(http.StatusMethodNotAllowed, ledger.Invalid, r.Method+" is not possible here, only "+allow)
		p.header.Set("Allow", allow)
	}
	p.send(w, r)
}

// probe is an answer that is only looked at.
type probe struct{ header http.Header }

// Header gives the headers.
func (p *probe) Header() http.Header { return p.header }

// Write drops the body.
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader drops the status.
func (p *probe) WriteHeader(int) {}
