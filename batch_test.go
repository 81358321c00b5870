package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// batches is a worker whose batches a test sees; f says what becomes of each.
func (s *site) batches(f func(ctx context.Context, ms []*xstreamq.Message[order]) error, opts ...xstreamq.SubscribeOption) (*xstreamq.Client, *xstreamq.Subscription, <-chan []int) {
	s.t.Helper()
	c := s.open()
	seen := make(chan []int, 1000)
	sub, err := s.queue(c).SubscribeBatch("svc", func(ctx context.Context, ms []*xstreamq.Message[order]) error {
		var ids []int
		for _, m := range ms {
			ids = append(ids, m.Body.ID)
		}
		seen <- ids
		return f(ctx, ms)
	}, append([]xstreamq.SubscribeOption{fast, xstreamq.BatchSize(10), xstreamq.BatchWait(0)}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return c, sub, seen
}

func ok(context.Context, []*xstreamq.Message[order]) error { return nil }

// drainBatches is all that was seen.
func drainBatches(seen <-chan []int) (out [][]int) {
	for {
		select {
		case b := <-seen:
			out = append(out, b)
		default:
			return out
		}
	}
}

// A batch is full or has waited, whichever comes first.
func TestBatchSizeAndWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(1, 25)
	c, _, seen := s.batches(ok, xstreamq.BatchWait(500*time.Millisecond), xstreamq.Concurrency(1))
	s.start(c)
	begun := time.Now()
	for i, want := range []int{10, 10, 5} {
		if got := receiveOne(t, seen, "batch"); len(got) != want {
			t.Errorf("batch %d has %d messages, want %d", i+1, len(got), want)
		}
	}
	if took := time.Since(begun); took < 400*time.Millisecond {
		t.Errorf("the last batch, not full, waited %v, want 500 ms", took)
	}
	s.settled()

	begun = time.Now()
	if _, err := s.queue(c).PublishBatch(t.Context(), []order{{26}, {27}, {28}}); err != nil {
		t.Fatal(err)
	}
	if got := receiveOne(t, seen, "batch"); len(got) != 3 || time.Since(begun) < 400*time.Millisecond {
		t.Errorf("%v after %v: what comes together shall wait together", got, time.Since(begun))
	}
	s.settled()
}

// A wait that is longer than the time after which a buffer is handed back holds its messages all the same.
func TestBatchWaitOverASecond(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, _, seen := s.batches(ok, xstreamq.BatchWait(2500*time.Millisecond))
	s.start(c)
	ids := s.publish(1, 3)
	if got := receiveOne(t, seen, "batch"); len(got) != 3 {
		t.Errorf("%v", got)
	}
	s.settled()
	if last := s.entries(s.keys.Main); last[2].ID != ids[2] || s.load() != (load{}) {
		t.Errorf("%+v", s.load())
	}
}

// nil acks all, named errors fail those they name, each with its own outcome; what failed comes back alone.
func TestBatchOutcomes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(1, 6)
	s.add("body", "no json")
	s.add("body", `{"id":8}`)
	s.add("nobody", "")
	c, _, seen := s.batches(func(_ context.Context, ms []*xstreamq.Message[order]) error {
		failed := xstreamq.BatchErrors{}
		for i, m := range ms {
			switch {
			case m.Body.ID == 2:
				failed[i] = xstreamq.Reject(errFailed)
			case m.Body.ID == 3 && m.Attempt == 1:
				failed[i] = errFailed
			case m.Body.ID == 4 && len(ms) > 1:
				failed[i] = xstreamq.Snooze(50 * time.Millisecond)
			case m.Body.ID == 5:
				failed[i] = nil
			}
		}
		return failed.Err()
	}, xstreamq.MaxRetries(1), xstreamq.Concurrency(1), xstreamq.BatchWait(time.Second))
	s.start(c)
	first := receiveOne(t, seen, "batch")
	if want := []int{1, 2, 3, 4, 5, 6, 8}; !slices.Equal(first, want) {
		t.Errorf("first batch %v, want %v", first, want)
	}
	dead := s.dead(3)
	s.settled()
	reasons := map[string]int{}
	for _, d := range dead {
		reasons[fmt.Sprint(d.Reason, " ", d.RC)]++
	}
	if reasons["rejected 1"] != 1 || reasons["retries 2"] != 1 || reasons["no-body 0"] != 1 {
		t.Errorf("%v", reasons)
	}
	var again []int
	for _, b := range drainBatches(seen) {
		if len(b) != 1 {
			t.Errorf("what failed came back as %v", b)
		}
		again = append(again, b...)
	}
	if slices.Sort(again); !slices.Equal(again, []int{3, 4}) {
		t.Errorf("%v came back, want 3 and 4", again)
	}
}

// One bad message fails its batch once and takes none of it along, whatever the handler says and however few retries there are.
func TestOneBadMessageTakesNoBatchAlong(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(n int) error{
		"error":  func(int) error { return errFailed },
		"panic":  func(int) error { panic("no") },
		"reject": func(int) error { return xstreamq.Reject(errFailed) },
		"joined": func(int) error { return errors.Join(xstreamq.BatchErrors{0: nil}, errFailed) },
		"range":  func(n int) error { return xstreamq.BatchErrors{n: errFailed} },
		"goexit": nil,
		"broken": func(int) error { return brokenChain{} },
		"typed nil": func(int) error {
			var none *pointerError
			return none
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.publish(1, 10)
			c, _, seen := s.batches(func(_ context.Context, ms []*xstreamq.Message[order]) error {
				for _, m := range ms {
					if m.Body.ID == 7 {
						if fail == nil {
							runtime.Goexit()
						}
						return fail(len(ms))
					}
				}
				return nil
			}, xstreamq.MaxRetries(0), xstreamq.Concurrency(1), xstreamq.BatchWait(5*time.Second))
			s.start(c)
			if first := receiveOne(t, seen, "batch"); len(first) != 10 {
				t.Fatalf("first batch %v", first)
			}
			for _, b := range receive(t, seen, 10, "what failed") {
				if len(b) != 1 {
					t.Errorf("%v came back together", b)
				}
			}
			if dead := s.dead(1); bodies(t, dead)[0] != 7 {
				t.Errorf("dead: %v", dead)
			}
			s.settled()
		})
	}
}

// A batch has one handler's time, which any of its messages extends; past it all have failed.
func TestBatchTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(1, 4)
	causes := make(chan error, 10)
	c, _, seen := s.batches(func(ctx context.Context, ms []*xstreamq.Message[order]) error {
		if len(ms) == 1 {
			return nil
		}
		if err := ms[3].Extend(ctx, 600*time.Millisecond); err != nil {
			t.Error(err)
		}
		if left := time.Until(ms[0].Until()); left < 500*time.Millisecond {
			t.Errorf("%v left after another of the batch was extended", left)
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		if err := ms[1].Extend(ctx, time.Minute); !errors.Is(err, xstreamq.ErrHandlerTimeout) {
			t.Errorf("extended after the end: %v", err)
		}
		return nil
	}, xstreamq.HandlerTimeout(100*time.Millisecond), xstreamq.BatchWait(5*time.Second), xstreamq.BatchSize(4), xstreamq.Concurrency(1))
	s.start(c)
	if got := receiveOne(t, seen, "batch"); len(got) != 4 {
		t.Fatalf("%v", got)
	}
	if cause := receiveOne(t, causes, "the end"); !errors.Is(cause, xstreamq.ErrHandlerTimeout) {
		t.Errorf("cause %v", cause)
	}
	for _, b := range receive(t, seen, 4, "what failed") {
		if len(b) != 1 {
			t.Errorf("%v came back together", b)
		}
	}
	s.settled()
}

// A handler that is deaf to its context keeps its slot, not its messages.
func TestBatchDeafHandler(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(1, 3)
	release := make(chan struct{})
	c, _, seen := s.batches(func(_ context.Context, ms []*xstreamq.Message[order]) error {
		if len(ms) > 1 {
			<-release
		}
		return nil
	}, xstreamq.HandlerTimeout(100*time.Millisecond), xstreamq.VisibilityTimeout(time.Second), xstreamq.BatchSize(3),
		xstreamq.BatchWait(5*time.Second), xstreamq.Concurrency(2))
	t.Cleanup(func() { close(release) }) // before the client is closed
	s.start(c)
	receive(t, seen, 1, "batch")
	receive(t, seen, 3, "its messages, each alone")
	s.settled()
}

// A stop hands back at once what gathers, lets a batch end, and cuts it after the drain: no attempt is spent.
func TestBatchDrain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	entered := make(chan struct{}, 10)
	c, sub, seen := s.batches(func(ctx context.Context, ms []*xstreamq.Message[order]) error {
		entered <- struct{}{}
		<-ms[0].Draining()
		if ms[0].Body.ID == 1 {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}, xstreamq.BatchSize(2), xstreamq.BatchWait(30*time.Second), xstreamq.Concurrency(3))
	s.start(c)
	s.publish(1, 2)
	receiveOne(t, entered, "the first batch")
	s.publish(3, 4)
	receiveOne(t, entered, "the second batch")
	s.publish(5, 5)
	s.eventually(func() bool { return s.load().pending == 5 }, "the fifth gathers")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := sub.Stop(ctx); !errors.Is(err, xstreamq.ErrDrainTimeout) {
		t.Errorf("stop: %v", err)
	}
	if l := s.load(); l.pending != 0 || l.retry != 3 || l.parked != 0 {
		t.Errorf("%+v, want three handed back", l)
	}
	for _, m := range s.entries(s.keys.Retry) {
		if m.RC != 0 {
			t.Errorf("a stop spent an attempt: %+v", m)
		}
	}
	if n := len(drainBatches(seen)); n != 2 {
		t.Errorf("%d batches ran", n)
	}
}

// Each message of a batch has one start and one end of the hooks; dedupe skips single ones.
func TestBatchHooksAndDedupe(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	type key struct{}
	var starts atomic.Int64
	ends := make(chan string, 100)
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{
		HandleStart: func(ctx context.Context, d *xstreamq.Delivery) context.Context {
			starts.Add(1)
			return context.WithValue(ctx, key{}, d.EntryID)
		},
		HandleEnd: func(ctx context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, _ error, _ time.Duration) {
			if o == xstreamq.OutcomeSkipped {
				ends <- "skipped"
				return
			}
			if ctx.Value(key{}) != d.EntryID {
				t.Errorf("the end of %s has the context of %v", d.EntryID, ctx.Value(key{}))
			}
			ends <- string(o)
		},
	}))
	done := s.add("body", `{"id":1}`)
	if err := s.rdb.Set(t.Context(), s.keys.Seen(done), "1", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	s.publish(2, 4)
	s.add("body", "no json")
	got := make(chan int, 10)
	if _, err := s.queue(c).SubscribeBatch("svc", func(_ context.Context, ms []*xstreamq.Message[order]) error {
		got <- len(ms)
		return xstreamq.BatchErrors{1: xstreamq.Reject(errFailed)}.Err()
	}, fast, xstreamq.DedupeTTL(time.Hour), xstreamq.MaxRetries(0), xstreamq.BatchWait(5*time.Second), xstreamq.BatchSize(5)); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	all := receive(t, ends, 5, "ends")
	slices.Sort(all)
	if want := []string{"acked", "acked", "dead", "rejected", "skipped"}; !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
	if n := receiveOne(t, got, "batch"); n != 3 || starts.Load() != 4 {
		t.Errorf("a batch of %d, %d starts", n, starts.Load())
	}
	s.settled()
	if n := s.rdb.Exists(t.Context(), s.keys.Seen(s.entries(s.keys.Main)[1].ID)).Val(); n != 1 {
		t.Error("what was handled left no marker")
	}
}

// A lost lease loses all of a batch: it ends with ErrLeaseExpired, spends nothing, and comes again.
func TestBatchLostLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	causes := make(chan error, 10)
	var runs atomic.Int64
	c, _, _ := s.batches(func(ctx context.Context, ms []*xstreamq.Message[order]) error {
		for _, m := range ms {
			if m.Attempt != 1 {
				t.Errorf("attempt %d", m.Attempt)
			}
		}
		if runs.Add(1) > 1 {
			return nil
		}
		if err := s.rdb.Del(context.Background(), s.keys.Workers).Err(); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return context.Cause(ctx)
	}, xstreamq.BatchSize(3), xstreamq.BatchWait(2*time.Second))
	s.publish(1, 3)
	s.start(c)
	if err := receiveOne(t, causes, "the end"); !errors.Is(err, xstreamq.ErrLeaseExpired) {
		t.Errorf("cause %v", err)
	}
	s.eventually(func() bool { return runs.Load() > 1 }, "another run")
	s.settled()
}

// A large batch fills from a backlog in one go.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 20 {
		if _, err := s.queue(s.open()).PublishBatch(t.Context(), make([]order, 100)); err != nil {
			t.Fatal(err)
		}
	}
	c, _, seen := s.batches(ok, xstreamq.BatchSize(1000), xstreamq.BatchWait(10*time.Second), xstreamq.Concurrency(1))
	s.start(c)
	for _, b := range receive(t, seen, 2, "batches") {
		if len(b) != 1000 {
			t.Errorf("a batch of %d", len(b))
		}
	}
	s.settled()
}
