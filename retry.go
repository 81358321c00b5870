package xstreamq

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/xstreamq/xstreamq/internal/engine"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// Bounds of every delay: 1 ms to 10 years. Backoffs are capped at 30 days.
const (
	minDelay   = time.Millisecond
	maxDelay   = 10 * 365 * 24 * time.Hour
	maxBackoff = 30 * 24 * time.Hour
)

// Backoff says how long attempt n (1 = the first failure) waits before the next. Answers are held between 1 ms and 30 days.
type Backoff interface {
	Delay(attempt int, err error) time.Duration
}

// Exponential is the default backoff. Zero fields take Initial = the visibility timeout, Multiplier 2, Max 5 min, Jitter
// 0.2: up to a fifth is added at random after the cap; a negative Jitter adds none.
type Exponential struct {
	Initial, Max       time.Duration
	Multiplier, Jitter float64
}

// Delay multiplies Initial for each attempt after the first and stops at Max.
func (e Exponential) Delay(attempt int, _ error) time.Duration {
	e = e.withDefaults(defaultVisibility)
	d := float64(e.Initial)
	for range min(attempt-1, 100_000) { // a foreign counter may say a billion
		if d *= e.Multiplier; d >= float64(e.Max) {
			break
		}
	}
	d = min(d, float64(e.Max))
	if e.Jitter > 0 {
		d += d * e.Jitter * rand.Float64() //nolint:gosec // jitter
	}
	return time.Duration(d)
}

func (e Exponential) withDefaults(visibility time.Duration) Exponential {
	if e.Initial <= 0 {
		e.Initial = visibility
	}
	if e.Multiplier < 1 {
		e.Multiplier = 2
	}
	if e.Max <= 0 {
		e.Max = 5 * time.Minute
	}
	e.Max = min(e.Max, maxBackoff)
	if e.Jitter == 0 {
		e.Jitter = 0.2
	}
	return e
}

// BackoffFunc adapts a function.
type BackoffFunc func(attempt int, err error) time.Duration

// Delay calls f.
func (f BackoffFunc) Delay(attempt int, err error) time.Duration { return f(attempt, err) }

// boundBackoff holds a user's backoff to what a queue can wait, and survives its panic.
func boundBackoff(b Backoff) func(int, error) time.Duration {
	return func(attempt int, err error) (d time.Duration) {
		defer func() {
			if recover() != nil {
				d = maxBackoffOnPanic
			}
		}()
		return min(max(b.Delay(attempt, err), minDelay), maxBackoff)
	}
}

// maxBackoffOnPanic is what a failure waits whose Backoff panicked.
const maxBackoffOnPanic = 5 * time.Minute

// outcome is an error by which a handler says what shall become of its message.
type outcome struct {
	verb  string
	delay time.Duration
	err   error
}

func (o *outcome) Error() string {
	switch {
	case o.verb == lua.Snooze:
		return fmt.Sprintf("snoozed for %s", o.delay)
	case o.err != nil:
		return o.err.Error()
	case o.verb == lua.Bury:
		return "rejected"
	}
	return fmt.Sprintf("to be retried after %s", o.delay)
}

func (o *outcome) Unwrap() error { return o.err }

// RetryAfter is a failed attempt that comes back after d (1 ms to 10 years; out of it, the nearest) instead of the backoff.
func RetryAfter(d time.Duration, err error) error {
	return &outcome{verb: lua.Fail, delay: boundDelay(d), err: err}
}

// Snooze puts the message back for d (1 ms to 10 years; out of it, the nearest); no attempt is spent, and there is no cap.
func Snooze(d time.Duration) error { return &outcome{verb: lua.Snooze, delay: boundDelay(d)} }

// Reject dead-letters at once, with the reason "rejected".
func Reject(err error) error { return &outcome{verb: lua.Bury, err: err} }

func boundDelay(d time.Duration) time.Duration { return min(max(d, minDelay), maxDelay) }

// verdict is what a handler's error comes to.
func verdict(err error) engine.Verdict {
	if err == nil {
		return engine.Verdict{Verb: lua.Ack}
	}
	var o *outcome
	if !errors.As(err, &o) {
		return engine.Verdict{Verb: lua.Fail, Err: err}
	}
	switch o.verb {
	case lua.Snooze:
		return engine.Verdict{Verb: lua.Snooze, Delay: o.delay, Err: err}
	case lua.Bury:
		return engine.Verdict{Verb: lua.Bury, Reason: string(ReasonRejected), Counts: true, Err: err}
	}
	return engine.Verdict{Verb: lua.Fail, Delay: o.delay, Given: true, Err: err}
}
