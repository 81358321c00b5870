// Package engine runs one subscription: it reads, hands to handlers, settles, keeps the lease, and sweeps for its group.
//
//	                                   ┌ handler goroutines ┐
//	reader (main + retry) → dispatcher ┤   (concurrency)    ├→ settler (batches: ack, fail, bury, release)
//	                    bounded buffer └────────────────────┘
//	ticker: lease, pause, what is due → promoter, reclaimer, compactor, janitor
package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// Errors that the engine gives as causes and results; package xstreamq exports them under the same text.
var (
	ErrLeaseExpired   = errors.New("lease expired")
	ErrHandlerTimeout = errors.New("handler timeout")
	ErrShutdown       = errors.New("shutting down")
	ErrDrainTimeout   = errors.New("handlers still running after the drain timeout")
	ErrGroupRemoved   = errors.New("group was removed")
	ErrFormat         = errors.New("stored by a newer version")
	ErrUnsupported    = errors.New("server too old")
	ErrStopped        = errors.New("the subscription was stopped")
	ErrAuth           = errors.New("server refused the login or a command")
)

// NoVisibility is the lease of a subscription without a visibility timeout: a heartbeat older than this is a dead owner.
const NoVisibility = time.Minute

// maxCuts is how many shutdowns may cut a message's handler before it is dead.
const maxCuts = 100

// stale is how long an entry may wait in the buffer before another worker shall have it.
const stale = time.Second

// suspectAt is the number of leases lost in a row from which on a message runs alone.
const suspectAt = 2

// Config is one subscription.
type Config struct {
	Redis          redis.UniversalClient
	Keys           keys.Group
	ConsumerPrefix string
	Version        string

	From   string // position of a new group
	Retain string // ms, "forever" or "" = leave it

	Visibility     time.Duration
	HandlerTimeout time.Duration // 0 = none
	Interval       time.Duration // between sweeps
	MaxRetries     int           // -1 = for ever
	MaxLost        int
	MaxParked      int // 0 = no cap
	Concurrency    int // 0 = deliveries are handed over by Receive alone
	Batch          int // most deliveries that one run of the handler is given
	BatchWait      time.Duration
	Gate           *Gate // caps handlers over many subscriptions; nil = no cap
	Prefetch       int
	DedupeTTL      time.Duration // 0 = off
	ExpireAfter    time.Duration // 0 = never
	SuspectFirst   time.Duration // delay of a suspect, doubled with each lost lease
	SuspectMost    time.Duration

	// Backoff is how long the given attempt's failure waits.
	Backoff func(attempt int, err error) time.Duration
	// Handle runs the handler, for one delivery, or for a batch of up to Batch, and leaves what it says in each one's Verdict.
	// It must not panic.
	Handle func(ctx context.Context, runs []*Run)
	Watch  Watch
	Log    *slog.Logger
}

// Verdict is what a handler's run comes to.
type Verdict struct {
	Verb   string        // lua.Ack, Fail, Snooze, Bury
	Delay  time.Duration // Snooze; Fail: instead of the backoff when Given
	Given  bool
	Err    error
	Reason string // Bury
	Counts bool   // Bury: it is a failed attempt
	Own    bool   // Fail: of this delivery by itself, not of the batch that it was handed over in
}

// Watch sees what happens; nil fields are skipped. Calls come from the engine's own goroutines.
type Watch struct {
	Ended      func(r *Run, e End)
	Buried     func(ctx context.Context, deadID string)
	LeaseLost  func(r *Run)
	Reclaimed  func(n int)
	Remade     func(position string)
	Connection func(up bool, err error)
	Paused     func(paused bool, reason string)
	Compacted  func(removed int64)
}

// End is how a delivery ended.
type End struct {
	Outcome string // acked, failed, rejected, dead, snoozed, released, lost, skipped
	Err     error
	Took    time.Duration // of the handler; 0 when it did not run
}

// Outcomes of a delivery.
const (
	Acked    = "acked"
	Failed   = "failed"
	Rejected = "rejected"
	Dead     = "dead"
	Snoozed  = "snoozed"
	Released = "released"
	LostIt   = "lost"
	Skipped  = "skipped"
)
