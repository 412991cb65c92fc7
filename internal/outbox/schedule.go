package outbox

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Schedule is how long an event waits before each try: so long after the one before it failed, about. After
// the last one the delivery is dead.
var Schedule = []time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
	14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	retryAfterMax = 24 * time.Hour   // that a receiver can ask for
	throttlePause = 30 * time.Second // for an endpoint that has too much to do and does not say for how long
)

// waits gives how long to wait after a number of tries, and false after the last. The wait is up to a
// tenth longer than planned, so that what failed together does not come back together.
func waits(schedule []time.Duration, tries int64) (wait time.Duration, more bool) {
	if tries >= int64(len(schedule)) {
		return 0, false
	}
	wait = schedule[tries]
	return wait + time.Duration(rand.Float64()*float64(wait)/10), true
}

// pause gives how long an endpoint wants to be left alone after an answer: as Retry-After says, in seconds
// or as a date, or by a status that says no more than that it is too much.
func pause(status int, header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	asked := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		asked = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		asked = at.Sub(now)
	}
	if asked <= 0 && (status == http.StatusTooManyRequests || status == http.StatusBadGateway ||
		status == http.StatusGatewayTimeout) {
		asked = throttlePause
	}
	return min(max(asked, 0), retryAfterMax)
}
