package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// Run is one delivery, from the read to its settlement.
type Run struct {
	Msg    wire.Message
	Source string // lua.Main or lua.Retry

	sub     *Sub
	inc     *incarnation
	arrived time.Time

	ctx      context.Context //nolint:containedctx // the handler's own, made when it starts
	cancel   context.CancelCauseFunc
	started  time.Time
	deadline atomic.Int64 // of the handler, in ns after epoch; 0 = none
	settled  atomic.Bool  // by the handler's return, or by the watchdog
	cut      atomic.Bool  // a shutdown ended its context
	alone    bool         // a suspect that runs with nothing beside it

	Carry atomic.Value // what the handler wants back when the delivery has ended; the watchdog may end it meanwhile
}

type heldKey struct{ source, id string }

func (r *Run) key() heldKey { return heldKey{r.Source, r.Msg.EntryID} }

// epoch carries the monotonic clock: the ends of handlers do not move when the wall clock is set.
var epoch = time.Now()

// Extend moves the end of the handler's time to by from now, never to an earlier moment than it has. Once it has ended it
// cannot be moved.
func (r *Run) Extend(by time.Duration) error {
	if r.settled.Load() || r.inc.isVoid() {
		return ErrLeaseExpired
	}
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	until := int64(time.Since(epoch) + by)
	for {
		had := r.deadline.Load()
		if had == 0 || had >= until || r.deadline.CompareAndSwap(had, until) {
			return nil
		}
	}
}

// Until is the end of the handler's time; zero when it has none.
func (r *Run) Until() time.Time {
	if ns := r.deadline.Load(); ns != 0 {
		return epoch.Add(time.Duration(ns))
	}
	return time.Time{}
}

// Draining is closed when the subscription begins to stop.
func (r *Run) Draining() <-chan struct{} { return r.sub.draining }

// begin makes the handler's context.
func (r *Run) begin() {
	r.ctx, r.cancel = context.WithCancelCause(r.sub.base)
	r.started = time.Now()
	if t := r.sub.cfg.HandlerTimeout; t > 0 {
		r.deadline.Store(int64(r.started.Add(t).Sub(epoch)))
	}
}
