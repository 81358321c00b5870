package xstreamq

import (
	"context"
	"errors"
	"fmt"

	"github.com/xstreamq/xstreamq/internal/engine"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// SubscribeBatch hands up to BatchSize messages over at once, waiting up to BatchWait for more. nil acks all, a BatchErrors
// fails those it names, any other error fails all; what failed comes back alone, so one bad message never takes its batch with
// it: neither a Reject nor MaxRetries(0) makes dead letters of a whole batch. Bodies that cannot be decoded fail by themselves
// and never reach the handler. HandlerTimeout, and Extend of any one of its messages, are the whole batch's.
//
// Middleware does not apply; Hooks do, for each message, but the context that a start hook returns reaches the handler of a
// batch of one alone. Errors: as Subscribe's.
func (q *Queue[T]) SubscribeBatch(group string, h func(context.Context, []*Message[T]) error, opts ...SubscribeOption) (*Subscription, error) {
	k, cfg, err := q.intake("SubscribeBatch", group, h == nil, opts)
	if err != nil {
		return nil, err
	}
	body := q.body
	return q.c.subscribe(k, q.cfg.retain, cfg, func(s *Subscription, ctx context.Context, runs []*engine.Run) {
		ms, with := make([]*Message[T], 0, len(runs)), make([]*engine.Run, 0, len(runs))
		for _, r := range runs {
			m, own, err := message(ctx, s, body, r)
			if err != nil {
				r.Verdict = ofOne(err)
				continue
			}
			if len(runs) == 1 {
				ctx = own
			}
			ms, with = append(ms, m), append(with, r)
		}
		if len(ms) > 0 {
			judge(with, protect(func() error { return h(ctx, ms) }))
		}
	})
}

// message decodes a delivery, after the start hooks; a panic of a codec or a validator is an error.
func message[T any](ctx context.Context, s *Subscription, body contract[T], r *engine.Run) (*Message[T], context.Context, error) {
	m := &Message[T]{Delivery: s.delivery(r)}
	ctx = s.startHandle(ctx, r, &m.Delivery)
	err := protect(func() (err error) {
		m.Body, err = body.decode(m.Raw)
		return err
	})
	return m, ctx, err
}

// ofOne is the verdict over one message of a batch by itself.
func ofOne(err error) engine.Verdict {
	v := verdict(protect(func() error { return err }))
	v.Own = true
	return v
}

// judge gives each message of a batch what the handler's error comes to.
func judge(runs []*engine.Run, err error) {
	named, ok := batchErrors(err)
	for i := range named {
		if i < 0 || i >= len(runs) {
			err, ok = fmt.Errorf("BatchErrors names message %d of a batch of %d: %w", i, len(runs), err), false
		}
	}
	if ok || len(runs) == 1 {
		for i, r := range runs {
			if ok {
				err = named[i]
			}
			r.Verdict = ofOne(err)
		}
		return
	}
	v := verdict(err)
	if v.Verb == lua.Bury { // of many, nobody knows which: each comes back alone
		v = engine.Verdict{Verb: lua.Fail, Err: err}
	}
	for _, r := range runs {
		r.Verdict = v
	}
}

// batchErrors finds what a handler says of single messages. Joined with another error it says nothing of those it does not name.
func batchErrors(err error) (BatchErrors, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		switch e := err.(type) { //nolint:errorlint // the chain is walked here, so that joined errors are left out
		case BatchErrors:
			return e, true
		case *outcome:
			return nil, false
		}
	}
	return nil, false
}
