package xstreamq_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// A script cache that is emptied all the time changes nothing: failures, delays, dedupe, markers and sweeps go on.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	var runs calls
	handler := func(_ context.Context, m *xstreamq.Message[order]) error {
		n := runs.add(m.ID)
		switch {
		case m.Body.ID%5 == 0:
			return errors.New("never")
		case m.Body.ID%5 == 1 && n == 1:
			return errors.New("once")
		case m.Body.ID%5 == 2 && n == 1:
			return xstreamq.Snooze(10 * time.Millisecond)
		}
		return nil
	}
	q := s.queue(s.worker(handler, xstreamq.MaxRetries(2), xstreamq.DedupeTTL(time.Minute)))
	s.worker(handler, xstreamq.MaxRetries(2), xstreamq.DedupeTTL(time.Minute))
	ctx, stop := context.WithCancel(t.Context())
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			if err := s.rdb.ScriptFlush(context.Background()).Err(); err != nil {
				t.Error(err)
			}
		}
	})
	defer flusher.Wait()
	defer stop()
	for i := range 200 {
		id := xstreamq.DedupeID(strconv.Itoa(i))
		p, err := q.Publish(ctx, order{i}, id, xstreamq.Delay(time.Duration(i%3)*10*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := q.Publish(ctx, order{i}, id); err != nil || !again.Duplicate || again.ID != p.ID {
			t.Fatalf("published %+v, again %+v, %v", p, again, err)
		}
	}
	s.dead(40)
	s.settled()
	if runs.distinct() != 200 || runs.total() != 40*3+40*2+40*2+80 {
		t.Errorf("%d messages ran %d times, want 200 and 360", runs.distinct(), runs.total())
	}
}

// A server that is killed and comes back with what it had stored: an idle worker and a busy one resume, nothing that a
// publisher was told of is lost, and no attempt is spent.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := siteOn(t, srv)
	var runs calls
	opt, ends := watching()
	c := s.open(opt)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		time.Sleep(2 * time.Millisecond)
		if m.Attempt != 1 {
			t.Errorf("message %s came with attempt %d", m.ID, m.Attempt)
		}
		return nil
	}, xstreamq.VisibilityTimeout(3*time.Second), xstreamq.Concurrency(4))
	s.start(c)
	go func() {
		for range ends {
		}
	}()

	srv.Restart(t) // while it is idle
	s.publish(1, 1)
	s.within(5*time.Second, func() bool { return runs.total() == 1 }, "the idle worker resumes")

	q := s.queue(c)
	var mu sync.Mutex
	told := map[string]bool{}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var publishers sync.WaitGroup
	for range 4 {
		publishers.Go(func() {
			for i := range 150 {
				p, err := q.Publish(ctx, order{i})
				if err == nil {
					mu.Lock()
					told[p.ID] = true
					mu.Unlock()
				} else if !errors.Is(err, xstreamq.ErrUncertain) && !errors.Is(err, xstreamq.ErrUnavailable) {
					t.Errorf("publish: %v", err)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	s.eventually(func() bool { return runs.total() > 50 }, "load")
	srv.Restart(t)
	back := time.Now()
	had := runs.total()
	s.within(5*time.Second, func() bool { return runs.total() > had+20 }, "the busy worker resumes")
	t.Logf("resumed %v after the server", time.Since(back))
	publishers.Wait()
	s.settled()
	if len(told) < 500 {
		t.Errorf("only %d of 600 publishes were confirmed", len(told))
	}
	for id := range told {
		if runs.by[id] == 0 {
			t.Errorf("message %s was confirmed and never handled", id)
		}
	}
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
}

// An outage that outlasts every block and backoff: health is red with the reason all the time, tries are few and logs short,
// and an idle worker and one that was started meanwhile are both at work soon after its end.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	var dials atomic.Int64
	dialing := xstreamq.RedisOptions(func(o *redis.UniversalOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
	})
	var runs calls
	handler := func(_ context.Context, m *xstreamq.Message[order]) error { runs.add(m.ID); return nil }
	idle := s.open(dialing)
	s.subscribe(idle, handler)
	s.start(idle)
	srv.Kill()
	late := s.open(dialing)
	if _, err := s.queue(late).Subscribe("late", func(context.Context, *xstreamq.Message[order]) error { return nil }); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- late.Run(ctx) }()
	time.Sleep(2 * time.Second)
	before := dials.Load()
	for end := time.Now().Add(13 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		for name, c := range map[string]*xstreamq.Client{"idle": idle, "late": late} {
			if h := c.Health(t.Context()); !says(h, "server", "connection refused") && !says(h, "server", "no answer for") {
				t.Errorf("%s: %+v", name, h)
			}
		}
	}
	if n := dials.Load() - before; n > 400 { // go-redis dials five times for each of: 13 looks of two clients, a read each 2 s, a tick a second
		t.Errorf("%d dials in 13 s", n)
	}
	srv.Restart(t)
	s.publish(1, 3)
	s.within(5*time.Second, func() bool { return runs.total() == 3 }, "the idle worker resumes")
	s.within(5*time.Second, func() bool { return idle.Health(t.Context()).Healthy && late.Health(t.Context()).Healthy }, "both are green again")
	if n := s.log.count(); n > 12 {
		t.Errorf("%d lines were logged:\n%s", n, s.log)
	}
	stop()
	if err := receiveOne(t, ran, "Run"); err != nil {
		t.Error(err)
	}
}

// A server that stood still for longer than every lease: nobody takes live work, all go on.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	begun, release := make(chan *xstreamq.Message[order], 100), make(chan struct{})
	var runs calls
	handler := func(ctx context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		begun <- m
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			t.Errorf("message %s: %v", m.ID, context.Cause(ctx))
			return ctx.Err()
		}
	}
	opts := []xstreamq.SubscribeOption{xstreamq.VisibilityTimeout(time.Second), xstreamq.HandlerTimeout(time.Minute), xstreamq.Concurrency(10)}
	s.worker(handler, opts...)
	s.worker(handler, opts...)
	ids := s.publish(1, 12)
	receive(t, begun, 12, "handlers")
	srv.Pause()
	time.Sleep(3 * time.Second)
	srv.Resume()
	ids = append(ids, s.publish(13, 14)...)
	receive(t, begun, 2, "new messages after the freeze")
	silent(t, begun, 1500*time.Millisecond, "live work was taken")
	close(release)
	s.settled()
	runs.each(t, ids, 1)
}

// One idle subscription with default options costs next to nothing.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	c := s.open(xstreamq.SweepInterval(time.Second))
	s.subscribe(c, nothing)
	s.start(c)
	time.Sleep(500 * time.Millisecond) // what a start costs
	names := []string{"evalsha", "eval", "xreadgroup", "sadd", "client|unblock", "client|id", "hello", "command|info", "ping"}
	before := s.commands(names...)
	const seconds = 5
	time.Sleep(seconds * time.Second)
	if n := s.commands(names...) - before; n > 3*seconds {
		t.Errorf("%d commands in %d idle seconds, want at most %d", n, seconds, 3*seconds)
	} else if n < seconds {
		t.Errorf("%d commands in %d seconds: is it running?", n, seconds)
	}
}
