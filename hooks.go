package xstreamq

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// Hooks is the one telemetry seam. Nil fields are skipped; they run on the hot path, a panic in one is logged. What DeadLettered,
// GroupRemade, Connection and Paused do holds nothing up: they run beside it, in the order of what they tell.
// Start hooks return the context that the handler (or the publish) goes on with: tracing needs no middleware.
type Hooks struct {
	// PublishStart may add headers.
	PublishStart func(ctx context.Context, o *Outgoing) context.Context
	// PublishEnd tells what became of a publish.
	PublishEnd func(ctx context.Context, o *Outgoing, p Published, err error)
	// HandleStart runs before middleware and handler.
	HandleStart func(ctx context.Context, d *Delivery) context.Context
	// HandleEnd runs when the delivery is settled, so that the outcome is what happened; took is the handler's time. It is
	// not called for deliveries that were handed back before they started.
	HandleEnd func(ctx context.Context, d *Delivery, o Outcome, err error, took time.Duration)
	// DeadLettered is told each dead letter that this process made, at most once.
	DeadLettered func(ctx context.Context, l DeadLetter)
	// LeaseLost is told each delivery that became another consumer's while it was handled here.
	LeaseLost func(ctx context.Context, d *Delivery)
	// Reclaimed is told how many messages of a dead consumer were taken over.
	Reclaimed func(ctx context.Context, g GroupRef, n int)
	// GroupRemade is told that a group had vanished and was made again.
	GroupRemade func(ctx context.Context, g GroupRef, from Position)
	// Connection is told when the server stops answering a subscription, and when it answers again.
	Connection func(ctx context.Context, up bool, err error)
	// Paused is told when a pause begins and ends here.
	Paused func(ctx context.Context, g GroupRef, paused bool, reason string)
	// Compacted is told how many finished entries were trimmed.
	Compacted func(ctx context.Context, stream string, removed int64)
}

// Outgoing is a message on its way to Redis.
type Outgoing struct {
	Stream   string
	Headers  map[string]string // never nil
	Body     []byte
	DedupeID string
	Due      time.Time // zero = now
}

// Outcome of a delivery.
type Outcome string

// Outcomes of a delivery.
const (
	OutcomeAcked    Outcome = "acked"
	OutcomeFailed   Outcome = "failed"   // to be retried
	OutcomeRejected Outcome = "rejected" // dead: the handler said so
	OutcomeDead     Outcome = "dead"     // for any other reason
	OutcomeSnoozed  Outcome = "snoozed"
	OutcomeReleased Outcome = "released" // handed back, no attempt spent
	OutcomeLost     Outcome = "lost"     // another consumer owns it
	OutcomeSkipped  Outcome = "skipped"  // DedupeTTL
)

// hookSet calls every client hook; a panic in one is logged and goes no further.
type hookSet struct {
	list []Hooks
	log  *slog.Logger
}

func (h hookSet) any() bool { return len(h.list) > 0 }

func (h hookSet) each(name string, f func(Hooks)) {
	for _, x := range h.list {
		guard(h.log, name, func() { f(x) })
	}
}

// guard runs what users gave us outside of handlers.
func guard(log *slog.Logger, name string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("xstreamq: a hook panicked", "hook", name, "panic", v)
		}
	}()
	f()
}

func (h hookSet) publishStart(ctx context.Context, o *Outgoing) context.Context {
	h.each("PublishStart", func(x Hooks) {
		if x.PublishStart != nil {
			ctx = notNil(x.PublishStart(ctx, o), ctx)
		}
	})
	return ctx
}

func (h hookSet) publishEnd(ctx context.Context, o *Outgoing, p Published, err error) {
	h.each("PublishEnd", func(x Hooks) {
		if x.PublishEnd != nil {
			x.PublishEnd(ctx, o, p, err)
		}
	})
}

func (h hookSet) handleStart(ctx context.Context, d *Delivery) context.Context {
	h.each("HandleStart", func(x Hooks) {
		if x.HandleStart != nil {
			ctx = notNil(x.HandleStart(ctx, d), ctx)
		}
	})
	return ctx
}

func notNil(ctx, before context.Context) context.Context {
	if ctx == nil {
		return before
	}
	return ctx
}

// pauseReason is the reason in a pause flag.
func pauseReason(flag string) string {
	var p struct{ Reason string }
	if json.Unmarshal([]byte(flag), &p) != nil {
		return flag // set by hand
	}
	return p.Reason
}
