package xstreamq_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// What does not compile needs no test; every other mistake fails at once with an error that names the value and the way out,
// and none panics. Wrong values of options are in TestOptionsAreChecked.
func TestMistakes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx := t.Context()
	c, gone := s.open(), s.open()
	must(t, gone.Close())
	q := s.queue(c)
	var none *xstreamq.Queue[order]
	var noClient *xstreamq.Client
	queueOf := func(stream string) *xstreamq.Queue[order] { return xstreamq.NewQueue[order](c, stream) }
	batch := func(group string, opts ...xstreamq.SubscribeOption) error {
		_, err := q.SubscribeBatch(group, ok, opts...)
		return err
	}
	subscribe := func(q *xstreamq.Queue[order], group string, opts ...xstreamq.SubscribeOption) error {
		_, err := q.Subscribe(group, nothing, opts...)
		return err
	}
	pull := func(opts ...xstreamq.SubscribeOption) error { _, err := q.Pull("svc", opts...); return err }
	publish := func(q *xstreamq.Queue[order], opts ...xstreamq.PublishOption) error {
		_, err := q.Publish(ctx, order{}, opts...)
		return err
	}
	through := xstreamq.WithMiddleware(func(next xstreamq.Handler) xstreamq.Handler { return next })
	must(t, subscribe(queueOf("taken"), "svc"))
	stopped, err := queueOf("stopped").Pull("svc")
	must(t, err)
	must(t, stopped.Stop(ctx))
	ran := s.open()
	s.start(ran)
	must(t, ran.Stop(ctx))
	for _, x := range []struct {
		what  string
		err   func() error
		is    error
		parts string // that the text must hold, separated by |
	}{
		{"a batch option on Subscribe", func() error { return subscribe(q, "svc", xstreamq.BatchSize(5)) }, xstreamq.ErrInvalidOption, "BatchSize|Subscribe:|SubscribeBatch"},
		{"a batch wait on Subscribe", func() error { return subscribe(q, "svc", xstreamq.BatchWait(0)) }, xstreamq.ErrInvalidOption, "BatchWait|SubscribeBatch"},
		{"middleware on SubscribeBatch", func() error { return batch("svc", through) }, xstreamq.ErrInvalidOption, "WithMiddleware|SubscribeBatch|wrap the handler"},
		{"concurrency on Pull", func() error { return pull(xstreamq.Concurrency(2)) }, xstreamq.ErrInvalidOption, "Concurrency|Pull|goroutines"},
		{"prefetch on Pull", func() error { return pull(xstreamq.Prefetch(2)) }, xstreamq.ErrInvalidOption, "Prefetch|Pull|Receive"},
		{"handler timeout on Pull", func() error { return pull(xstreamq.HandlerTimeout(time.Second)) }, xstreamq.ErrInvalidOption, "HandlerTimeout|Pull|context.WithTimeout"},
		{"middleware on Pull", func() error { return pull(through) }, xstreamq.ErrInvalidOption, "WithMiddleware|Pull|Subscribe"},
		{"batch size on Pull", func() error { return pull(xstreamq.BatchSize(2)) }, xstreamq.ErrInvalidOption, "BatchSize|Pull|Receive"},
		{"batch wait on Pull", func() error { return pull(xstreamq.BatchWait(2)) }, xstreamq.ErrInvalidOption, "BatchWait|Pull|Receive"},
		{"an expiry of nothing", func() error { return pull(xstreamq.ExpireAfter(0)) }, xstreamq.ErrInvalidOption, "ExpireAfter(0s)|1ms"},
		{"a nil option", func() error { return pull(nil) }, xstreamq.ErrInvalidOption, "option 1 is nil"},
		{"Receive of none", func() error { _, err := stopped.Receive(ctx, 0); return err }, xstreamq.ErrInvalidOption, "Receive(0)|1 to 100000"},
		{"Receive of too many", func() error { _, err := stopped.Receive(ctx, math.MaxInt); return err }, xstreamq.ErrInvalidOption, "Receive("},
		{"a negative Retry", func() error { return (&xstreamq.Received[order]{}).Retry(ctx, -1, nil) }, xstreamq.ErrInvalidOption, "Retry(-1ns)|backoff"},
		{"Extend by nothing", func() error { return (&xstreamq.Message[order]{}).Extend(ctx, 0) }, xstreamq.ErrInvalidOption, "Extend(0s)|positive"},
		{"no handler", func() error { _, err := q.Subscribe("svc", nil); return err }, xstreamq.ErrInvalidOption, "Subscribe(nil)|handler"},
		{"no batch handler", func() error { _, err := q.SubscribeBatch("svc", nil); return err }, xstreamq.ErrInvalidOption, "SubscribeBatch(nil)|handler"},
		{"a stream without a name", func() error { return publish(queueOf("")) }, xstreamq.ErrInvalidName, `stream ""`},
		{"a stream with braces", func() error { return subscribe(queueOf("a{b}"), "svc") }, xstreamq.ErrInvalidName, `"a{b}"`},
		{"a group with a space", func() error { return batch("a b") }, xstreamq.ErrInvalidName, `group "a b"`},
		{"a group too long", func() error { return batch(strings.Repeat("g", 201)) }, xstreamq.ErrInvalidName, "201 bytes"},
		{"subscribed twice", func() error { return subscribe(queueOf("taken"), "svc") }, xstreamq.ErrAlreadySubscribed, "taken|svc|Concurrency"},
		{"pulled beside a subscription", func() error { _, err := queueOf("taken").Pull("svc"); return err }, xstreamq.ErrAlreadySubscribed, "taken|svc"},
		{"a nil queue", func() error { return publish(none) }, xstreamq.ErrClosed, "queue is nil"},
		{"a nil queue's Pull", func() error { _, err := none.Pull("svc"); return err }, xstreamq.ErrClosed, "queue is nil"},
		{"a queue of no client", func() error { return publish(xstreamq.NewQueue[order](nil, "orders")) }, xstreamq.ErrClosed, "Open or New"},
		{"a nil client's Run", func() error { return noClient.Run(ctx) }, xstreamq.ErrClosed, "Open or New"},
		{"a zero client's Start", func() error { return new(xstreamq.Client).Start(ctx) }, xstreamq.ErrClosed, "Open or New"},
		{"publishing on a closed client", func() error { return publish(s.queue(gone)) }, xstreamq.ErrClosed, "closed"},
		{"subscribing on a closed client", func() error { return subscribe(s.queue(gone), "svc") }, xstreamq.ErrClosed, "closed"},
		{"running twice", func() error { return ran.Run(ctx) }, xstreamq.ErrClosed, "a client runs once"},
		{"subscribing after the stop", func() error { return subscribe(s.queue(ran), "svc") }, xstreamq.ErrClosed, "stopped"},
		{"receiving after the stop", func() error { _, err := stopped.Receive(ctx, 1); return err }, xstreamq.ErrClosed, "stopped/svc|puller was stopped"},
		{"a borrowed client that is nil", func() error { _, err := xstreamq.New(nil); return err }, xstreamq.ErrInvalidOption, "New"},
		{"a URL without a scheme", func() error { _, err := xstreamq.Open("localhost:6379"); return err }, xstreamq.ErrInvalidOption, "redis://"},
		{"an unknown scheme", func() error { _, err := xstreamq.Open("http://h"); return err }, xstreamq.ErrInvalidOption, "redis://"},
		{"a body that cannot be encoded", func() error {
			_, err := xstreamq.NewQueue[float64](c, "orders").Publish(ctx, math.NaN())
			return err
		}, xstreamq.ErrInvalidBody, "encode float64|NaN"},
		{"a body too large", func() error { return publish(s.queue(c, xstreamq.MaxBody(3))) }, xstreamq.ErrTooLarge, "3"},
	} {
		func() {
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("%s: panics: %v", x.what, v)
				}
			}()
			err := x.err()
			if !errors.Is(err, x.is) {
				t.Errorf("%s: %v, want %v", x.what, err, x.is)
				return
			}
			for part := range strings.SplitSeq(x.parts, "|") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %q", x.what, err, part)
				}
			}
		}()
	}
	// As a client's default an option that one intake has no use for does no harm.
	d := s.open(xstreamq.SubscribeDefaults(xstreamq.BatchSize(2), xstreamq.Concurrency(3), through, xstreamq.HandlerTimeout(time.Minute)))
	_, one := s.queue(d).Subscribe("a", nothing)
	_, two := s.queue(d).SubscribeBatch("b", ok)
	_, three := s.queue(d).Pull("c")
	if err := errors.Join(one, two, three); err != nil {
		t.Errorf("with defaults: %v", err)
	}
	if n := s.rdb.Exists(ctx, s.keys.Main).Val(); n != 0 {
		t.Error("something was stored")
	}
}
