package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// A context that is over before the call sends nothing and says so.
func TestPublishWithAnEndedContext(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("changed my mind")
	cancel(cause)
	_, plain := q.Publish(ctx, order{})
	_, delayed := q.Publish(ctx, order{}, xstreamq.Delay(time.Hour))
	_, batch := q.PublishBatch(ctx, []order{{1}, {2}})
	for call, err := range map[string]error{"plain": plain, "delayed": delayed, "batch": batch} {
		if !errors.Is(err, xstreamq.ErrUnavailable) || errors.Is(err, xstreamq.ErrUncertain) || !errors.Is(err, cause) {
			t.Errorf("%s: %v, want ErrUnavailable with the cause", call, err)
		}
	}
	if n := s.rdb.Exists(t.Context(), s.keys.Main, s.keys.Stream.Due).Val(); n != 0 {
		t.Error("something was stored")
	}
}

// A server that does not answer: the outcome is unknown, in time, and nothing is sent twice when it wakes.
func TestPublishToAFrozenServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	borrowed, err := xstreamq.New(redis.NewClient(&redis.Options{Addr: srv.Addr(), ReadTimeout: 4 * time.Second}), xstreamq.Prefix(s.prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = borrowed.Close() })
	owned := s.open()
	srv.Pause()
	defer srv.Resume()
	type result struct {
		name string
		err  error
		took time.Duration
	}
	results := make(chan result, 10)
	n := 0
	publish := func(name string, f func(ctx context.Context) error) {
		n++
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
			defer cancel()
			start := time.Now()
			results <- result{name, f(ctx), time.Since(start)}
		}()
	}
	for name, c := range map[string]*xstreamq.Client{"borrowed": borrowed, "owned": owned} {
		q := s.queue(c)
		publish(name+" plain", func(ctx context.Context) error { _, err := q.Publish(ctx, order{1}); return err })
		publish(name+" delayed", func(ctx context.Context) error {
			_, err := q.Publish(ctx, order{2}, xstreamq.Delay(time.Hour))
			return err
		})
	}
	for _, r := range receive(t, results, n, "publishes return") {
		if !errors.Is(r.err, xstreamq.ErrUncertain) && !errors.Is(r.err, xstreamq.ErrUnavailable) {
			t.Errorf("%s: %v", r.name, r.err)
		}
		if r.took > 2*time.Second {
			t.Errorf("%s took %v with a context of 700ms", r.name, r.took)
		}
	}
	srv.Resume()
	q := s.queue(owned)
	if _, err := q.Publish(t.Context(), order{3}); err != nil {
		t.Fatal(err)
	}
	if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); n > 3 {
		t.Errorf("%d entries of 3 publishes", n)
	}
	if n := s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val(); n > 2 {
		t.Errorf("%d delayed of 2 publishes", n)
	}
}

// A server that stands still for longer than the client waits gets each publish once, whatever the client library would
// repeat on its own.
func TestAFreezePublishesOnce(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]xstreamq.PublishOption{"plain": nil, "delayed": {xstreamq.Delay(time.Hour)}} {
		for _, owned := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s owned %v", name, owned), func(t *testing.T) {
				t.Parallel()
				srv := redistest.Start(t)
				s := siteOn(t, srv)
				c, err := xstreamq.New(s.borrowed(func(o *redis.UniversalOptions) { o.ReadTimeout, o.MaxRetries = 200*time.Millisecond, 5 }), xstreamq.Prefix(s.prefix))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if owned {
					c = s.open(xstreamq.RedisOptions(func(o *redis.UniversalOptions) { o.ReadTimeout, o.MaxRetries = 200*time.Millisecond, 5 }))
				}
				publish := func() error {
					_, err := s.queue(c).Publish(t.Context(), order{1}, opts...)
					return err
				}
				if err := publish(); err != nil { // makes a connection and loads the script
					t.Fatal(err)
				}
				srv.Pause()
				defer srv.Resume()
				if err := publish(); !errors.Is(err, xstreamq.ErrUncertain) {
					t.Errorf("%v, want ErrUncertain", err)
				}
				srv.Resume()
				if err := publish(); err != nil { // what the frozen server had been sent runs before it answers this
					t.Fatal(err)
				}
				if n := s.rdb.XLen(t.Context(), s.keys.Main).Val() + s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val(); n != 3 {
					t.Errorf("%d messages of 3 publishes", n)
				}
			})
		}
	}
}

// With a dedupe id a publish is repeated until it is answered, and is still one message.
func TestDedupedPublishOutlastsAFreeze(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	c := s.open(xstreamq.RedisOptions(func(o *redis.UniversalOptions) { o.ReadTimeout = 200 * time.Millisecond }))
	q := s.queue(c)
	srv.Pause()
	done := make(chan error, 1)
	var p xstreamq.Published
	go func() {
		var err error
		p, err = q.Publish(context.Background(), order{1}, xstreamq.DedupeID("k"))
		done <- err
	}()
	silent(t, done, 600*time.Millisecond, "the publish returned while the server was frozen")
	srv.Resume()
	if err := receiveOne(t, done, "the publish"); err != nil {
		t.Fatal(err)
	}
	list := s.entries(s.keys.Main)
	if len(list) != 1 || list[0].ID != p.ID {
		t.Errorf("stored %+v, published %+v", list, p)
	}
}
