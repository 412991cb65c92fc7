package kit

import (
	"syscall"
	"time"
)

// sleep is precise to some microseconds. Here the runtime's own timers wait whole milliseconds, in which a
// program can do all that it was asked.
func sleep(span time.Duration) {
	left := syscall.NsecToTimespec(max(0, span.Nanoseconds()))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}
