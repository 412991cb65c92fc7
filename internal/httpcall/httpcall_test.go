package httpcall_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/internal/httpcall"
)

var local = httpcall.Options{Timeout: 5 * time.Second, BodyMax: 100, AllowPrivate: true}

var proxied atomic.Bool

// TestMain names a proxy before the standard library looks for one, which it does once; and no name is
// looked up on another machine.
func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		proxied.Store(true)
	}))
	if err := os.Setenv("HTTP_PROXY", proxy.URL); err != nil {
		panic(err)
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true}
	net.DefaultResolver.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no resolver")
	}
	os.Exit(m.Run())
}

// call makes a GET with a client of these options.
func call(t *testing.T, o httpcall.Options, url string) (httpcall.Answer, error) {
	t.Helper()
	c := httpcall.New(o)
	t.Cleanup(c.Close)
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Do(t.Context(), request)
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestBody(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.URL.Path == "/endless" && r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 1<<10))
		}
		w.Header().Set("X-Accept", r.Header.Get("Accept-Encoding"))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(strings.Repeat("x", len(r.URL.Path))))
	})
	for n, want := range map[int]bool{1: false, 100: false, 101: true, 100_000: true} {
		a, err := call(t, local, url+"/"+strings.Repeat("a", n-1))
		if err != nil || a.Status != http.StatusTeapot || a.Truncated != want || len(a.Body) != min(n, 100) ||
			a.Header.Get("X-Accept") != "" {
			t.Errorf("%d bytes: got %d, %d bytes, %v, %v", n, a.Status, len(a.Body), a.Truncated, err)
		}
	}
	if a, err := call(t, local, url+"/endless"); err != nil || !a.Truncated || len(a.Body) != 100 {
		t.Errorf("endless: got %d, %d bytes, %v, %v", a.Status, len(a.Body), a.Truncated, err)
	}
}

// A redirect is an answer like any other: what it points to is not called.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Bool
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		followed.Store(followed.Load() || r.URL.Path == "/there")
		http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
	})
	a, err := call(t, local, url)
	if err != nil || a.Status != http.StatusTemporaryRedirect || a.Header.Get("Location") != "/there" ||
		followed.Load() {
		t.Errorf("got %+v, %v", a, err)
	}
}

// A host that hangs, before its answer or within it, is given up in time, and so is one at the caller's
// wish.
func TestHang(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
	o := local
	o.Timeout = 50 * time.Millisecond
	for _, path := range []string{"/", "/body"} {
		_, err := call(t, o, url+path)
		if err == nil || httpcall.Refused(err) || strings.Contains(err.Error(), url) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	c := httpcall.New(httpcall.Options{Timeout: time.Hour, AllowPrivate: true})
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(ctx, request); err == nil {
		t.Error("the caller left, and there is an answer")
	}
}

// The guard sees the address that is connected to, whatever the name was, and stops before a connection.
func TestGuardBeforeTheConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	connected := make(chan struct{}, 1)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			connected <- struct{}{}
			_ = c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	public := httpcall.Options{Timeout: 5 * time.Second, AllowHTTP: true}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		if _, err := call(t, public, "http://"+host+":"+port); !httpcall.Refused(err) {
			t.Errorf("%s: got %v", host, err)
		}
	}
	select {
	case <-connected:
		t.Error("a connection was made")
	case <-time.After(20 * time.Millisecond):
	}
	_, err = call(t, local, "http://localhost:"+port+"/secret")
	if err == nil || httpcall.Refused(err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("allowed: got %v", err)
	}
}

// A proxy that the environment names is not used: it would be what the guard sees.
func TestNoProxy(t *testing.T) {
	o := httpcall.Options{Timeout: 5 * time.Second, AllowHTTP: true, AllowPrivate: true}
	if _, err := call(t, o, "http://name.invalid/"); err == nil || proxied.Load() {
		t.Errorf("got %v", err)
	}
}

func TestNewNeedsBounds(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a client without a timeout")
		}
	}()
	httpcall.New(httpcall.Options{})
}
