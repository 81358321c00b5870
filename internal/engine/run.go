package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Run is one delivery, from the read to its settlement.
type Run struct {
	Msg     wire.Message
	Source  string  // lua.Main or lua.Retry
	Verdict Verdict // what its handler said

	sub     *Sub
	inc     *incarnation
	at      int       // in inc.held
	few     [4]string // the fields of most messages
	marker  string    // the key that says it is finished; "" without DedupeTTL
	arrived time.Time
	started time.Time
	settled atomic.Bool // by the handler's return, or by the watchdog
	alone   bool        // a suspect that runs with nothing beside it
	batched bool        // others are handled by the same run of the handler
	out     settling
	answer  chan End // of one that Receive handed over

	// lead is the first of the deliveries that one run of the handler has, itself when it is the only one; nil until the start.
	// The lead carries what the handler's run has.
	lead     *Run
	ctx      context.Context //nolint:containedctx // the handler's own, made when it starts
	cancel   context.CancelCauseFunc
	deadline atomic.Int64 // of the handler, in ns after epoch; 0 = none
	cut      atomic.Bool  // a shutdown ended its context

	Carry atomic.Value // what the handler wants back when the delivery has ended; the watchdog may end it meanwhile
}

type heldKey struct{ source, id string }

// epoch carries the monotonic clock: the ends of handlers do not move when the wall clock is set.
var epoch = time.Now()

// Extend moves the end of the handler's time to by from now, never to an earlier moment than it has. Once it has ended it
// cannot be moved.
func (r *Run) Extend(by time.Duration) error {
	if r.settled.Load() || r.inc.isVoid() {
		return ErrLeaseExpired
	}
	r = r.lead
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
	if ns := r.lead.deadline.Load(); ns != 0 {
		return epoch.Add(time.Duration(ns))
	}
	return time.Time{}
}

// Draining is closed when the subscription begins to stop.
func (r *Run) Draining() <-chan struct{} { return r.sub.draining }

// launch makes the context of a handler's run.
func (s *Sub) launch(runs []*Run) (lead *Run) {
	lead = runs[0]
	lead.ctx, lead.cancel = context.WithCancelCause(s.base)
	now := time.Now()
	if t := s.cfg.HandlerTimeout; t > 0 {
		lead.deadline.Store(int64(now.Add(t).Sub(epoch)))
	}
	for _, r := range runs {
		r.lead, r.started, r.batched = lead, now, len(runs) > 1
		r.Verdict = Verdict{Verb: lua.Fail, Err: errEnded}
	}
	return lead
}
