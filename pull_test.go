package xstreamq_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// puller is a puller on a client that never runs.
func (s *site) puller(opts ...xstreamq.SubscribeOption) (*xstreamq.Client, *xstreamq.Puller[order]) {
	s.t.Helper()
	c := s.open()
	return c, s.pullerOn(c, opts...)
}

func (s *site) pullerOn(c *xstreamq.Client, opts ...xstreamq.SubscribeOption) *xstreamq.Puller[order] {
	s.t.Helper()
	p, err := s.queue(c).Pull("svc", append([]xstreamq.SubscribeOption{fast}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// pulled is what one Receive brings.
func (s *site) pulled(p *xstreamq.Puller[order], most int) []*xstreamq.Received[order] {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	list, err := p.Receive(ctx, most)
	if err != nil || len(list) == 0 || len(list) > most {
		s.t.Fatalf("Receive(%d): %d messages, %v\n%s", most, len(list), err, s.log)
	}
	return list
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Pulled messages end as the caller says, once; nothing is read before the first Receive, and no more than it asks for.
func TestPull(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(1, 8)
	c, p := s.puller(xstreamq.MaxRetries(1))
	time.Sleep(50 * time.Millisecond)
	if n := s.rdb.Exists(t.Context(), s.keys.Workers).Val(); n != 0 {
		t.Error("something ran before the first Receive")
	}
	if h := c.Health(t.Context()); !h.Healthy {
		t.Errorf("a puller that waits for its first Receive: %+v", h)
	}
	list := s.pulled(p, 5)
	if l := s.load(); len(list) != 5 || l.pending != 5 {
		t.Fatalf("%d messages, %+v, want 5", len(list), l)
	}
	if h := c.Health(t.Context()); !h.Healthy {
		t.Errorf("%+v", h)
	}
	for i, m := range list {
		if m.Body.ID != i+1 || m.Attempt != 1 || m.MaxAttempts != 2 || m.Stream != "orders" || m.Group != "svc" || !m.Until().IsZero() {
			t.Errorf("%+v", m)
		}
	}
	ctx := t.Context()
	must(t, list[0].Ack(ctx))
	must(t, list[1].Retry(ctx, 0, errFailed))
	must(t, list[2].Retry(ctx, time.Hour, nil))
	must(t, list[3].Reject(ctx, errFailed))
	if err := list[4].Extend(ctx, time.Minute); err != nil {
		t.Error(err)
	}
	must(t, list[4].Release(ctx))
	for i, m := range list {
		for what, err := range map[string]error{
			"ack": m.Ack(ctx), "retry": m.Retry(ctx, 0, nil), "reject": m.Reject(ctx, nil), "release": m.Release(ctx), "extend": m.Extend(ctx, time.Second),
		} {
			if !errors.Is(err, xstreamq.ErrLeaseExpired) {
				t.Errorf("%s of message %d, settled: %v", what, i+1, err)
			}
		}
	}
	if d := s.dead(1)[0]; d.Reason != "rejected" || d.Err != errFailed.Error() || d.RC != 1 {
		t.Errorf("%+v", d)
	}
	var got []int
	for len(got) < 5 {
		for _, m := range s.pulled(p, 10) {
			want := 1
			if m.Body.ID == 2 {
				want = 2
			}
			if m.Attempt != want {
				t.Errorf("message %d came again with attempt %d, want %d", m.Body.ID, m.Attempt, want)
			}
			got = append(got, m.Body.ID)
			must(t, m.Ack(ctx))
		}
	}
	if slices.Sort(got); !slices.Equal(got, []int{2, 5, 6, 7, 8}) {
		t.Errorf("%v", got)
	}
	m, due := s.parkedOnly()
	if wait := due.Sub(s.serverTime()); m.Body != `{"id":3}` || wait < 50*time.Minute {
		t.Errorf("%+v due in %v", m, wait)
	}
	must(t, p.Stop(ctx))
	must(t, p.Stop(ctx))
	if _, err := p.Receive(ctx, 1); !errors.Is(err, xstreamq.ErrClosed) {
		t.Errorf("after Stop: %v", err)
	}
	if n := s.rdb.HLen(ctx, s.keys.Workers).Val(); n != 0 {
		t.Error("the consumer's record was left")
	}
}

// A Receive whose context ends loses and keeps nothing: what was on its way comes with the next one, or goes to others.
func TestPullInterrupted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, p := s.puller()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if list, err := p.Receive(ctx, 3); !errors.Is(err, context.DeadlineExceeded) || list != nil {
		t.Errorf("%v, %v", list, err)
	}
	s.publish(1, 2) // the read of that Receive may still be under way
	list := s.pulled(p, 5)
	for len(list) < 2 {
		list = append(list, s.pulled(p, 5)...)
	}
	for _, m := range list {
		must(t, m.Ack(t.Context()))
	}
	s.settled()

	ended, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := p.Receive(ended, 3); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	ids := s.publish(3, 5)
	var runs calls
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		if m.Attempt != 1 {
			t.Errorf("attempt %d", m.Attempt)
		}
		return nil
	})
	s.settled()
	runs.each(t, ids, 1)
	over, done := context.WithCancel(t.Context())
	done()
	if _, err := p.Receive(over, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

// Bodies that cannot be decoded are failed attempts up to the dead letters; Receive goes on to the next message.
func TestPullUndecodable(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.add("body", "no json")
	s.add("nobody", "")
	s.publish(1, 1)
	told := make(chan xstreamq.DeadLetter, 10)
	_, p := s.puller(xstreamq.MaxRetries(1), xstreamq.OnDeadLetter(func(_ context.Context, l xstreamq.DeadLetter) { told <- l }))
	if m := s.pulled(p, 1)[0]; m.Body.ID != 1 {
		t.Errorf("%+v", m)
	} else {
		must(t, m.Ack(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		if list, err := p.Receive(ctx, 10); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", list, err)
		}
	}()
	reasons := map[xstreamq.Reason]int{}
	for _, l := range receive(t, told, 2, "dead letters") {
		reasons[l.Reason] = l.Attempts
	}
	if reasons[xstreamq.ReasonRetries] != 2 || len(reasons) != 2 {
		t.Errorf("%v", reasons)
	}
	cancel()
	<-over // before the puller is stopped, which would end it too
	s.settled()
}

// Dedupe skips what the group finished, Ack leaves the marker; hooks see a start and an end.
func TestPullDedupeAndHooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ends := make(chan xstreamq.Outcome, 10)
	starts := make(chan string, 10)
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{
		HandleStart: func(ctx context.Context, d *xstreamq.Delivery) context.Context { starts <- d.ID; return ctx },
		HandleEnd:   func(_ context.Context, _ *xstreamq.Delivery, o xstreamq.Outcome, _ error, _ time.Duration) { ends <- o },
	}))
	p := s.pullerOn(c, xstreamq.DedupeTTL(time.Hour))
	ids := s.publish(1, 2)
	must(t, s.rdb.Set(t.Context(), s.keys.Seen(ids[0]), "1", time.Hour).Err())
	m := s.pulled(p, 2)[0]
	must(t, m.Ack(t.Context()))
	got := receive(t, ends, 2, "ends")
	if m.ID != ids[1] || !slices.Contains(got, xstreamq.OutcomeSkipped) || !slices.Contains(got, xstreamq.OutcomeAcked) {
		t.Errorf("%s, %v", m.ID, got)
	}
	if id := receiveOne(t, starts, "start"); id != ids[1] || len(starts) != 0 {
		t.Errorf("started %s and %d more", id, len(starts))
	}
	if s.rdb.Exists(t.Context(), s.keys.Seen(ids[1])).Val() != 1 {
		t.Error("no marker")
	}
}

// Client.Close stops a puller, Puller.Stop too: what was not settled is handed back at once, a waiting Receive ends.
func TestPullStops(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*xstreamq.Client, *xstreamq.Puller[order]) error{
		"close": func(c *xstreamq.Client, _ *xstreamq.Puller[order]) error { return c.Close() },
		"stop":  func(_ *xstreamq.Client, p *xstreamq.Puller[order]) error { return p.Stop(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.publish(1, 1)
			c, p := s.puller()
			m := s.pulled(p, 1)[0]
			waiting := make(chan error, 1)
			go func() {
				_, err := p.Receive(t.Context(), 1)
				waiting <- err
			}()
			begun := time.Now()
			must(t, stop(c, p))
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("it took %v: a puller has nothing to drain", took)
			}
			if err := receiveOne(t, waiting, "the other Receive"); !errors.Is(err, xstreamq.ErrClosed) {
				t.Errorf("the waiting Receive: %v", err)
			}
			if err := m.Ack(t.Context()); !errors.Is(err, xstreamq.ErrLeaseExpired) {
				t.Errorf("acked after the stop: %v", err)
			}
			if l := s.load(); l.pending != 0 || l.retry != 1 {
				t.Errorf("%+v", l)
			}
			if _, err := p.Receive(t.Context(), 1); !errors.Is(err, xstreamq.ErrClosed) {
				t.Errorf("Receive after the stop: %v", err)
			}
			if name == "stop" {
				again := s.pullerOn(c)
				if m := s.pulled(again, 1)[0]; m.Attempt != 1 {
					t.Errorf("%+v", m)
				}
			}
		})
	}
}

// A puller keeps its lease beyond the visibility timeout, however long a message is held; a lost one ends what it held.
func TestPullLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(1, 2)
	c, p := s.puller(xstreamq.VisibilityTimeout(time.Second))
	list := s.pulled(p, 2)
	other := s.open()
	s.subscribe(other, func(_ context.Context, m *xstreamq.Message[order]) error {
		t.Errorf("message %d was taken over", m.Body.ID)
		return nil
	}, xstreamq.VisibilityTimeout(time.Second))
	s.start(other)
	time.Sleep(2500 * time.Millisecond)
	must(t, list[0].Ack(t.Context()))
	must(t, other.Close())
	must(t, s.rdb.Del(t.Context(), s.keys.Workers).Err())
	again := s.pulled(p, 1)[0]
	if again.ID != list[1].ID || again.Attempt != 1 {
		t.Errorf("%+v", again)
	}
	if err := list[1].Ack(t.Context()); !errors.Is(err, xstreamq.ErrLeaseExpired) {
		t.Errorf("acked after the lease: %v", err)
	}
	must(t, again.Ack(t.Context()))
	s.settled()
	must(t, c.Close()) // the lost one, never settled, keeps nobody waiting
}

// All yields one by one until ctx ends; many goroutines may pull.
func TestPullAll(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ids := s.publish(1, 60)
	_, p := s.puller()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var runs calls
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for m, err := range p.All(ctx) {
				if err != nil {
					t.Error(err)
					return
				}
				if err := m.Ack(context.Background()); err != nil {
					t.Error(err)
				}
				if runs.add(m.ID); runs.total() == len(ids) {
					cancel()
				}
			}
		})
	}
	wg.Wait()
	runs.each(t, ids, 1)
	s.settled()
	must(t, p.Stop(t.Context()))
	n := 0
	for m, err := range p.All(t.Context()) {
		if n++; m != nil || !errors.Is(err, xstreamq.ErrClosed) {
			t.Errorf("%v, %v", m, err)
		}
	}
	if n != 1 {
		t.Errorf("a stopped puller yielded %d times, want its error once", n)
	}
}

// A suspect is handed over by itself, after the others are settled, and nothing beside it.
func TestPullSuspect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(1, 1)
	_, p := s.puller()
	first := s.pulled(p, 1)[0]
	s.addTo(s.keys.Retry, "body", `{"id":2}`, "lost", "2", "oid", "1-1")
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if list, err := p.Receive(short, 5); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside an unsettled one came %v, %v", list, err)
	}
	must(t, first.Ack(t.Context()))
	suspect := s.pulled(p, 5)
	if len(suspect) != 1 || suspect[0].Lost != 2 {
		t.Fatalf("%+v", suspect)
	}
	s.publish(3, 3)
	short, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if list, err := p.Receive(short, 5); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside a suspect came %v, %v", list, err)
	}
	must(t, suspect[0].Ack(t.Context()))
	must(t, s.pulled(p, 5)[0].Ack(t.Context()))
	s.settled()
}

// A group that is removed ends its puller; a zero puller and a message made by hand do no harm.
func TestPullEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, p := s.puller()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for {
		if _, err := p.Receive(ctx, 1); s.rdb.Exists(t.Context(), s.keys.Workers).Val() == 1 && errors.Is(err, context.DeadlineExceeded) {
			break
		}
		ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
	}
	must(t, c.Admin().Group("orders", "svc").Delete(t.Context(), true))
	if _, err := p.Receive(t.Context(), 1); !errors.Is(err, xstreamq.ErrGroupRemoved) {
		t.Errorf("%v", err)
	}
	var zero xstreamq.Puller[order]
	if _, err := zero.Receive(t.Context(), 1); !errors.Is(err, xstreamq.ErrClosed) {
		t.Error(err)
	}
	if err := zero.Stop(t.Context()); !errors.Is(err, xstreamq.ErrClosed) {
		t.Error(err)
	}
	hand := &xstreamq.Received[order]{}
	if err := errors.Join(hand.Ack(t.Context()), hand.Retry(t.Context(), 0, nil), hand.Reject(t.Context(), nil), hand.Release(t.Context())); err != nil {
		t.Error(err)
	}
}
