//go:build !linux

package db

import "syscall"

// boundUnreceived leaves the bound to the system.
func boundUnreceived(string, string, syscall.RawConn) error { return nil }
