package httpcall

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// refusal is the error of a call that the guard did not let out.
type refusal struct{ why string }

// Error says why.
func (r *refusal) Error() string { return r.why }

// Refused tells whether an error is the guard's: then the host was not reached.
func Refused(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// CheckURL refuses, in one line, an address that a client with these options would not call: one that is
// not an absolute https address (http only as the options allow), has a user or a fragment in it, or
// names a private address as a number. What a name stands for is checked when the call is made.
func CheckURL(text string, o Options) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > 2048 {
		return &refusal{"is not an address of at most 2048 bytes"}
	}
	return o.checkURL(u)
}

func (o *Options) checkURL(u *url.URL) error {
	host := strings.ToLower(u.Hostname())
	address, err := netip.ParseAddr(host)
	literal := err == nil
	local := host == "localhost" || literal && address.Unmap().IsLoopback()
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || host == "" || u.Opaque != "":
		return &refusal{"is not an address that begins with https:// and names a host"}
	case u.User != nil:
		return &refusal{"has a user name in the address"}
	case u.Fragment != "":
		return &refusal{"has a fragment (#) in the address"}
	case u.Scheme == "http" && !o.AllowHTTP && !(o.AllowPrivate && local):
		return &refusal{"is without TLS: it takes https://"}
	case literal:
		return o.checkAddress(address)
	}
	return nil
}

// control runs for each address that a name stands for, before a packet leaves: a name that is looked up
// again may stand for another.
func (o *Options) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusal{fmt.Sprintf("%q is not an address", address)}
	}
	return o.checkAddress(to.Addr())
}

func (o *Options) checkAddress(address netip.Addr) error {
	switch a := unwrap(address); {
	case a.IsUnspecified() || a.IsMulticast() || a == broadcast:
		return &refusal{fmt.Sprintf("%s is no host's address", address)}
	case !o.AllowPrivate && !public(a):
		return &refusal{fmt.Sprintf("%s is a private address", address)}
	}
	return nil
}

var broadcast = netip.MustParseAddr("255.255.255.255")

// unwrap gives the IPv4 address that is inside an IPv6 one, of the kinds that a router or a stack takes
// apart again.
func unwrap(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case compatible.Contains(a) && !a.IsUnspecified() && !a.IsLoopback():
		return netip.AddrFrom4([4]byte(b[12:16]))
	}
	return a
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
)

// public tells whether an address is one on the internet at large.
func public(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	return !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}

// reserved are the ranges that netip does not know for private: of carriers, of tests, of documentation,
// of tunnels, and what was never given out (the special-purpose registries of RFC 6890).
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("5f00::/16"),
	netip.MustParsePrefix("fec0::/10"),
}
