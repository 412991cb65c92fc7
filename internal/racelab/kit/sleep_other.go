//go:build !linux

package kit

import "time"

// sleep is time.Sleep, which is precise here.
func sleep(span time.Duration) { time.Sleep(span) }
