package commit

import (
	"math/rand/v2"
	"time"
)

// Backoff is how long to wait after the given failed try (0 = the first): 50 ms, doubled up to 2 s, half of it random.
func Backoff(try int) time.Duration {
	d := min(50*time.Millisecond<<min(try, 10), 2*time.Second)
	return d/2 + rand.N(d/2) //nolint:gosec // jitter
}
