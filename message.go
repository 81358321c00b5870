package xstreamq

import (
	"context"
	"time"

	"github.com/xstreamq/xstreamq/internal/engine"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Delivery is one delivery of a message to a group, without its type: what middleware and hooks see.
type Delivery struct {
	ID          string // Published.ID: the idempotency key
	EntryID     string // the stream entry of this delivery; new after every move
	Stream      string
	Group       string
	Headers     map[string]string // not to be changed
	Raw         []byte            // the body's bytes as stored
	Attempt     int               // 1 on the first; failures so far + 1
	MaxAttempts int               // MaxRetries + 1: an Attempt of this number is the last one; 0 = for ever
	Lost        int               // leases lost in a row by workers that died or hung
	PublishedAt time.Time         // server time of the first publish, before any delay

	run *engine.Run
}

// Extend lets the handler run until by from now (never shorter than it already may). The lease is the consumer's and goes on
// meanwhile, so a crash is still noticed within one visibility timeout. Errors: ErrLeaseExpired, ErrInvalidOption when by is
// not positive, ErrHandlerTimeout and ErrShutdown when the handler's context has ended so. A Message made by hand has no
// lease: nil.
func (d *Delivery) Extend(ctx context.Context, by time.Duration) error {
	if by <= 0 {
		return invalid("Extend", by, "a positive duration")
	}
	if d.run == nil {
		return ctx.Err()
	}
	return d.run.Extend(min(by, maxDelay))
}

// Until is when the handler's context ends; ctx.Deadline cannot move, so the context has none. Zero = no end.
func (d *Delivery) Until() time.Time {
	if d.run == nil {
		return time.Time{}
	}
	return d.run.Until()
}

// Draining is closed when shutdown begins (the context ends only at the drain's end): a long job may write a checkpoint.
func (d *Delivery) Draining() <-chan struct{} {
	if d.run == nil {
		return nil
	}
	return d.run.Draining()
}

// Message is a delivery with its decoded body. A literal of it is all that a unit test needs.
type Message[T any] struct {
	Delivery
	Body T
}

// Handler is the untyped handler that middleware wraps; decoding and validation happen inside the innermost one,
// so middleware sees their errors (ErrInvalidBody) and may replace Raw (decompress, decrypt).
type Handler func(ctx context.Context, d *Delivery) error

// Middleware wraps a Handler. The first one given is the outermost.
type Middleware func(next Handler) Handler

// delivery is what handlers and hooks see of a run.
func (s *Subscription) delivery(r *engine.Run) Delivery {
	d := Delivery{
		ID: r.Msg.ID, EntryID: r.Msg.EntryID, Stream: s.ref.Stream, Group: s.ref.Group,
		Headers: wire.ParseHeaders(r.Msg.Headers), Raw: []byte(r.Msg.Body),
		Attempt: r.Msg.RC + 1, Lost: r.Msg.Lost, PublishedAt: r.Msg.Published(), run: r,
	}
	if s.cfg.maxRetries >= 0 {
		d.MaxAttempts = s.cfg.maxRetries + 1
	}
	return d
}
