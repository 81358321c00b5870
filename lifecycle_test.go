package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

func nothing(context.Context, *xstreamq.Message[order]) error { return nil }

// Zero and nil values answer errors.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	closed := func(call string, err error) {
		t.Helper()
		if !errors.Is(err, xstreamq.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", call, err)
		}
	}
	over := func(call string, done <-chan struct{}) {
		t.Helper()
		select {
		case <-done:
		default:
			t.Errorf("%s is open", call)
		}
	}
	for name, c := range map[string]*xstreamq.Client{"nil": nil, "zero": {}} {
		closed(name+" Run", c.Run(ctx))
		closed(name+" Start", c.Start(ctx))
		closed(name+" Stop", c.Stop(ctx))
		over(name+" Stopped", c.Stopped())
		if err := c.Close(); err != nil {
			t.Errorf("%s Close: %v", name, err)
		}
		if c.Admin() == nil {
			t.Errorf("%s Admin", name)
		}
		q := xstreamq.NewQueue[order](c, "orders")
		_, err := q.Publish(ctx, order{})
		closed(name+" client's queue", err)
		_, err = q.Subscribe("svc", nothing)
		closed(name+" client's queue Subscribe", err)
	}
	for name, q := range map[string]*xstreamq.Queue[order]{"nil": nil, "zero": {}} {
		_, err := q.Publish(ctx, order{})
		closed(name+" queue Publish", err)
		_, err = q.PublishBatch(ctx, []order{{}})
		closed(name+" queue PublishBatch", err)
		_, err = q.PublishBatch(ctx, nil)
		closed(name+" queue empty PublishBatch", err)
		_, err = q.Subscribe("svc", nothing)
		closed(name+" queue Subscribe", err)
		b := q.NewBatch()
		b.Add(order{})
		_, err = b.Publish(ctx)
		closed(name+" queue's batch", err)
	}
	for name, b := range map[string]*xstreamq.Batch[order]{"nil": nil, "zero": {}} {
		b.Add(order{})
		_ = b.Len()
		_, err := b.Publish(ctx)
		closed(name+" batch", err)
	}
	for name, s := range map[string]*xstreamq.Subscription{"nil": nil, "zero": {}} {
		closed(name+" subscription Ready", s.Ready(ctx))
		closed(name+" subscription Stop", s.Stop(ctx))
		closed(name+" subscription Err", s.Err())
		over(name+" subscription Stopped", s.Stopped())
	}
	var m xstreamq.Message[order]
	if m.Draining() != nil || !m.Until().IsZero() || m.Extend(ctx, time.Second) != nil {
		t.Error("a message made by hand")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:6379", "http://localhost", "redis+ring://localhost", "redis://:p@ss@w%ord@localhost", "redis+sentinel://localhost:26379", "redis://localhost/notadb", "redis://h:port"} {
		c, err := xstreamq.Open(url)
		if !errors.Is(err, xstreamq.ErrInvalidOption) || c != nil {
			t.Errorf("%q: %v, %v", url, c, err)
		}
		if strings.Contains(fmt.Sprint(err), "w%ord") || strings.Contains(fmt.Sprint(err), "p@ss") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
	for _, url := range []string{"redis://localhost", "rediss://u:p%40s%2Bs@localhost:6380/3", "unix:///tmp/redis.sock", "redis+sentinel://localhost:26379?master_name=m", "redis+cluster://localhost:7000?addr=localhost:7001"} {
		c, err := xstreamq.Open(url)
		if err != nil {
			t.Errorf("%q: %v", url, err)
			continue
		}
		if err := c.Close(); err != nil {
			t.Errorf("%q: close: %v", url, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "localhost:6379"}})
	defer func() { _ = ring.Close() }()
	type wrapper struct{ *redis.Client }
	rdb := redis.NewClient(&redis.Options{})
	defer func() { _ = rdb.Close() }()
	for name, c := range map[string]redis.UniversalClient{"nil": nil, "nil client": (*redis.Client)(nil), "nil cluster": (*redis.ClusterClient)(nil), "ring": ring, "wrapper": wrapper{rdb}} {
		if got, err := xstreamq.New(c); !errors.Is(err, xstreamq.ErrInvalidOption) || got != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := xstreamq.New(rdb, xstreamq.RedisOptions(func(*redis.UniversalOptions) {}))
	if !errors.Is(err, xstreamq.ErrInvalidOption) {
		t.Errorf("RedisOptions for a borrowed client: %v", err)
	}
}

// A borrowed client serves as before when ours is closed; its defaults, RESP3 and its notifications among them, do no harm.
func TestBorrowedClientStaysOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	rdb := s.borrowed()
	c, err := xstreamq.New(rdb, xstreamq.Prefix(s.prefix), xstreamq.WithLogger(slog.New(s.log)))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan int, 1)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil })
	s.start(c)
	if _, err := s.queue(c).Publish(t.Context(), order{1}); err != nil {
		t.Fatal(err)
	}
	receiveOne(t, got, "delivery")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("after Close: %v", err)
	}
	if _, err := s.queue(c).Publish(t.Context(), order{2}); !errors.Is(err, xstreamq.ErrClosed) {
		t.Errorf("publish after Close: %v", err)
	}
}

func TestRunReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	type key struct{}
	got := make(chan any, 1)
	sub := s.subscribe(c, func(ctx context.Context, _ *xstreamq.Message[order]) error { got <- ctx.Value(key{}); return nil })
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "mine"))
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	if err := sub.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.publish(1, 1)
	if v := receiveOne(t, got, "delivery"); v != "mine" {
		t.Errorf("the handler's context has value %v", v)
	}
	s.settled()
	start := time.Now()
	cancel() // the read is blocked: nobody publishes
	if err := receiveOne(t, ran, "Run"); err != nil {
		t.Errorf("Run: %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("Run took %v to end while its read was blocked", took)
	}
	select {
	case <-c.Stopped():
	default:
		t.Error("Stopped is open")
	}
	if err := c.Run(t.Context()); !errors.Is(err, xstreamq.ErrClosed) {
		t.Errorf("a second Run: %v", err)
	}
	if _, err := s.queue(c).Publish(t.Context(), order{2}); err != nil {
		t.Errorf("publish between Run and Close: %v", err)
	}
}

// Every order of the calls ends, and a repeated one changes nothing.
func TestLifecycleOrders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx := t.Context()
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	steps := map[string]func(*xstreamq.Client) error{
		"start": func(c *xstreamq.Client) error { return c.Start(ctx) },
		"run":   func(c *xstreamq.Client) error { return c.Run(canceled) },
		"stop":  func(c *xstreamq.Client) error { return c.Stop(ctx) },
		"stop!": func(c *xstreamq.Client) error { return c.Stop(canceled) },
		"close": func(c *xstreamq.Client) error { return c.Close() },
	}
	for _, order := range []string{
		"close close", "stop stop", "stop start?", "stop! close run?", "start start?", "start stop stop close close", "start stop! stop! close",
		"start close stop close", "run run? stop close", "run close run?", "close start? stop", "start stop run?",
	} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			c, err := xstreamq.Open(s.url, xstreamq.Prefix(redistest.Prefix(t)))
			if err != nil {
				t.Fatal(err)
			}
			sub := s.subscribe(c, nothing)
			for step := range strings.FieldsSeq(order) {
				name, refused := strings.CutSuffix(step, "?")
				err := steps[name](c)
				if refused && !errors.Is(err, xstreamq.ErrClosed) || !refused && err != nil {
					t.Errorf("%s: %v", step, err)
				}
			}
			if err := c.Close(); err != nil {
				t.Errorf("close at last: %v", err)
			}
			select {
			case <-sub.Stopped():
			case <-time.After(patience):
				t.Error("the subscription runs")
			}
			if err := sub.Err(); err != nil {
				t.Errorf("the subscription's error: %v", err)
			}
			if err := sub.Ready(ctx); err != nil && !errors.Is(err, xstreamq.ErrClosed) {
				t.Errorf("Ready: %v", err)
			}
		})
	}
}

func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 10 {
		c := s.open(xstreamq.Prefix(redistest.Prefix(t)))
		s.subscribe(c, nothing)
		var all sync.WaitGroup
		for _, f := range []func(){
			func() { _ = c.Start(t.Context()) }, func() { _ = c.Run(t.Context()) }, func() { _ = c.Stop(t.Context()) },
			func() { _ = c.Close() }, func() { _ = c.Close() }, func() { _, _ = s.queue(c).Subscribe("other", nothing) },
			func() { _, _ = s.queue(c).Publish(t.Context(), order{}) },
		} {
			all.Go(f)
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		receiveOne(t, endOf(done), "all calls return")
	}
}

// endOf turns a channel that is closed into one that gives a value.
func endOf(done <-chan struct{}) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() { <-done; out <- struct{}{} }()
	return out
}

// A start that its context cuts short leaves nothing running.
func TestStartGivesUp(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	srv.Pause()
	defer srv.Resume()
	c := s.open()
	sub := s.subscribe(c, nothing)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := c.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start: %v", err)
	}
	if took := time.Since(start); took > 6*time.Second {
		t.Errorf("Start returned after %v, its context ended after 300ms", took)
	}
	receiveOne(t, endOf(sub.Stopped()), "the subscription ends")
	srv.Resume()
	id := s.publish(1, 1)[0]
	time.Sleep(200 * time.Millisecond) // a reader that was left would take it now
	if n := s.rdb.XInfoGroups(t.Context(), s.keys.Main).Val(); len(n) != 0 && n[0].Pending > 0 {
		t.Errorf("somebody read message %s: %+v", id, n)
	}
}

// What no waiting mends is told at once, by Start and by Run.
func TestStartTellsWhatNoWaitingMends(t *testing.T) {
	t.Parallel()
	old := siteOn(t, redistest.Start(t, "--rename-command", "XAUTOCLAIM", ""))
	locked := siteOn(t, redistest.Start(t, "--requirepass", "pässword"))
	locked.rdb = nil
	newer := newSite(t)
	if err := newer.rdb.HSet(t.Context(), newer.keys.Stream.Meta, "format", "2").Err(); err != nil {
		t.Fatal(err)
	}
	limited := siteOn(t, redistest.Start(t))
	if err := limited.rdb.Do(t.Context(), "acl", "setuser", "few", "on", ">pw", "~"+limited.prefix+"{*", "+@all", "&*").Err(); err != nil {
		t.Fatal(err)
	}
	limited.url = strings.Replace(limited.url, "redis://", "redis://few:pw@", 1)
	for _, c := range []struct {
		s    *site
		want error
		text string
	}{
		{old, xstreamq.ErrUnsupportedServer, "XAUTOCLAIM"},
		{locked, xstreamq.ErrAuth, "NOAUTH"},
		{newer, xstreamq.ErrFormat, "orders"},
		{limited, xstreamq.ErrAuth, "registry"},
	} {
		for _, run := range []bool{true, false} {
			client := c.s.open()
			sub := c.s.subscribe(client, nothing)
			call := client.Start
			if run {
				call = client.Run
			}
			start := time.Now()
			err := call(t.Context())
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v with %q", err, c.want, c.text)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%v took %v", c.want, took)
			}
			if !errors.Is(sub.Err(), c.want) {
				t.Errorf("the subscription says %v", sub.Err())
			}
			if strings.Contains(fmt.Sprint(err), "pässword") {
				t.Errorf("the error tells the password: %v", err)
			}
		}
	}
}

// Run goes on when Redis is not there yet.
func TestRunWaitsForTheServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	srv.Kill()
	c := s.open()
	got := make(chan int, 1)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	silent(t, ran, 300*time.Millisecond, "Run returned")
	srv.Restart(t)
	s.publish(1, 1)
	receiveOne(t, got, "delivery")
	cancel()
	if err := receiveOne(t, ran, "Run"); err != nil {
		t.Error(err)
	}
}
