package httpcall_test

import (
	"strings"
	"testing"
	"time"

	"jobledger/internal/httpcall"
)

func TestCheckURL(t *testing.T) {
	private := httpcall.Options{AllowPrivate: true}
	plain := httpcall.Options{AllowHTTP: true}
	for _, c := range []struct {
		url     string
		options httpcall.Options
		want    string // empty: it may be called
	}{
		{"https://example.com/a?b=c", httpcall.Options{}, ""},
		{"https://93.184.216.34:8443/", httpcall.Options{}, ""},
		{"https://[2606:2800:220:1::1]/", httpcall.Options{}, ""},
		{"http://example.com/", httpcall.Options{}, "without TLS"},
		{"http://example.com/", private, "without TLS"},
		{"http://10.0.0.1/", private, "without TLS"},
		{"http://example.com/", plain, ""},
		{"http://127.0.0.1:1/", private, ""},
		{"http://[::1]:1/", private, ""},
		{"http://LOCALHOST/", private, ""},
		{"http://localhost.example.com/", private, "without TLS"},
		{"http://127.0.0.1/", httpcall.Options{}, "without TLS"},
		{"http://127.0.0.1/", plain, "127.0.0.1 is a private address"},
		{"https://169.254.169.254/latest", httpcall.Options{}, "is a private address"},
		{"https://169.254.169.254/latest", private, ""},
		{"https://0.0.0.0/", private, "no host's address"},
		{"https://224.0.0.1/", private, "no host's address"},
		{"https://255.255.255.255/", private, "no host's address"},
		{"https://[::]/", private, "no host's address"},
		{"https://user:pw@example.com/", httpcall.Options{}, "user name"},
		{"https://example.com/#a", httpcall.Options{}, "fragment"},
		{"https:example.com", httpcall.Options{}, "names a host"},
		{"https:///path", httpcall.Options{}, "names a host"},
		{"/path", httpcall.Options{}, "names a host"},
		{"", httpcall.Options{}, "names a host"},
		{"ftp://example.com/", plain, "names a host"},
		{"file:///etc/passwd", plain, "names a host"},
		{"https://exa mple.com/", plain, "not an address"},
		{"https://example.com/" + strings.Repeat("a", 2048), plain, "at most 2048"},
	} {
		err := httpcall.CheckURL(c.url, c.options)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s with %+v: got %v, want %q", c.url, c.options, err, c.want)
		}
		if err != nil && !httpcall.Refused(err) {
			t.Errorf("%.60s: the error is not the guard's: %v", c.url, err)
		}
	}
}

// Every form of an address that is not on the internet at large is refused, also inside another.
func TestPrivateAddresses(t *testing.T) {
	o := httpcall.Options{Timeout: time.Second}
	for _, host := range []string{
		"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "127.0.0.1", "127.255.255.254", "169.254.1.1",
		"0.1.2.3", "100.64.0.1", "100.127.255.255", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1",
		"203.0.113.1", "240.0.0.1", "[::1]", "[fe80::1]", "[fc00::1]", "[fd12::1]", "[fec0::1]", "[2001:db8::1]",
		"[::ffff:10.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]",
		"[2002:a00:1::1]", "[::7f00:1]", "[2001::1]", "[100::1]", "[3fff::1]",
	} {
		if _, err := call(t, o, "https://"+host+"/"); !httpcall.Refused(err) {
			t.Errorf("%s: got %v", host, err)
		}
		if err := httpcall.CheckURL("https://"+host+"/", httpcall.Options{AllowPrivate: true}); err != nil {
			t.Errorf("%s, allowed: got %v", host, err)
		}
	}
	for _, host := range []string{
		"172.32.0.1", "100.128.0.1", "11.0.0.1", "198.20.0.1", "[2600::1]", "[2002:808:808::]",
	} {
		if err := httpcall.CheckURL("https://"+host+"/", o); err != nil {
			t.Errorf("%s: got %v", host, err)
		}
	}
}
