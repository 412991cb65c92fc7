package db

import (
	"strings"
	"syscall"
)

// userTimeout is TCP_USER_TIMEOUT: how long what was sent may stay unreceived, in milliseconds.
const userTimeout = 18

// boundUnreceived sets the bound of a connection before it is made.
func boundUnreceived(network, _ string, c syscall.RawConn) (err error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	set := func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(unreceivedMax.Milliseconds()))
	}
	if controlled := c.Control(set); controlled != nil {
		return controlled
	}
	return err
}
