package db

import (
	"net"
	"time"
)

// The bounds of a network that swallows what is sent: what the server has not received by then, and a
// server that does not say that it is there, are a lost connection.
const (
	unreceivedMax = 30 * time.Second
	keepAlive     = 15 * time.Second // between questions whether the other side is there
	keepAliveMax  = 2                // of them without an answer
)

// dialer makes the connections to a server.
func dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout: timeout,
		Control: boundUnreceived,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepAlive, Interval: keepAlive, Count: keepAliveMax,
		},
	}
}
