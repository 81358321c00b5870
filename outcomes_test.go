package xstreamq_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// A failure is parked at once, its attempt counted, due by the server's clock and not before its backoff.
func TestFailureIsParked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	attempts := make(chan int, 1)
	backoff := xstreamq.BackoffFunc(func(attempt int, err error) time.Duration {
		if !strings.Contains(err.Error(), "no stock") {
			t.Errorf("the backoff was asked about %v", err)
		}
		attempts <- attempt
		return time.Hour
	})
	s.worker(func(context.Context, *xstreamq.Message[order]) error { return errors.New("no stock") }, xstreamq.WithBackoff(backoff))
	before := s.serverTime()
	id := s.add("tenant", "a\x00b", "body", `{"id":1}`, "", "x", "tenant", "again")
	m, due := s.parkedOnly()
	if n := receiveOne(t, attempts, "the backoff"); n != 1 {
		t.Errorf("backoff of attempt %d, want 1", n)
	}
	after := s.serverTime()
	if due.Before(before.Add(time.Hour).Truncate(time.Millisecond)) || due.After(after.Add(time.Hour)) {
		t.Errorf("due %v, failed between %v and %v with an hour's backoff", due, before, after)
	}
	if m.ID != id || m.RC != 1 || m.Err != "no stock" {
		t.Errorf("parked %+v, want message %s with one failure", m, id)
	}
	if got, want := fmt.Sprintf("%q", wire.Unknown(m.Fields)), `[["tenant" "a\x00b"] ["" "x"] ["tenant" "again"]]`; got != want {
		t.Errorf("unknown fields %s, want %s", got, want)
	}
	s.eventually(func() bool { return s.load() == load{parked: 1} }, "nothing pending beside what is parked")
}

// Attempts go up by one, retries wait at least their backoff, and past the maximum the message is dead.
func TestRetriesUntilDead(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			type run struct {
				attempt, most int
				id            string
				at            time.Time
			}
			runs := make(chan run, 20)
			s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
				runs <- run{m.Attempt, m.MaxAttempts, m.ID, s.serverTime()}
				return fmt.Errorf("failure %d", m.Attempt)
			}, xstreamq.MaxRetries(most), xstreamq.WithBackoff(xstreamq.BackoffFunc(func(int, error) time.Duration { return 150 * time.Millisecond })))
			id := s.publish(1, 1)[0]
			list := receive(t, runs, most+1, "attempts")
			for i, r := range list {
				if r.attempt != i+1 || r.most != most+1 || r.id != id {
					t.Errorf("run %d: %+v", i, r)
				}
				if i > 0 && r.at.Sub(list[i-1].at) < 150*time.Millisecond {
					t.Errorf("run %d came %v after the one before, its backoff is 150ms", i, r.at.Sub(list[i-1].at))
				}
			}
			m := s.dead(1)[0]
			if m.ID != id || m.RC != most+1 || m.Reason != "retries" || m.Err != fmt.Sprintf("failure %d", most+1) || m.Body != `{"id":1}` {
				t.Errorf("dead letter %+v", m)
			}
			s.settled()
			silent(t, runs, 100*time.Millisecond, "a run after death")
		})
	}
}

func TestRetryForever(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var m atomic.Pointer[xstreamq.Message[order]]
	c := s.worker(func(_ context.Context, msg *xstreamq.Message[order]) error { m.Store(msg); return errors.New("no") },
		xstreamq.RetryForever(), xstreamq.WithBackoff(xstreamq.BackoffFunc(func(int, error) time.Duration { return 0 })))
	s.add("body", `{"id":1}`, "rc", "1000000")
	s.eventually(func() bool { return m.Load() != nil && m.Load().Attempt > 1000004 }, "attempts beyond any maximum")
	if m.Load().MaxAttempts != 0 {
		t.Errorf("most attempts %d, want 0 for ever", m.Load().MaxAttempts)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
}

// Junk counters are no attempts, and no way to be retried for ever.
func TestJunkCounters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	attempts := make(chan int, 10)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		attempts <- m.Attempt
		return errors.New("no")
	}, xstreamq.MaxRetries(1))
	s.add("body", `{"id":1}`, "rc", "nan", "lost", "-5", "cut", "1e9")
	if list := receive(t, attempts, 2, "attempts"); fmt.Sprint(list) != "[1 2]" {
		t.Errorf("attempts %v", list)
	}
	if m := s.dead(1)[0]; m.RC != 2 {
		t.Errorf("dead letter %+v", m)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cause := errors.New("busy")
	s.worker(func(context.Context, *xstreamq.Message[order]) error {
		return fmt.Errorf("wrapped: %w", xstreamq.RetryAfter(2*time.Hour, cause))
	})
	before := s.serverTime()
	s.publish(1, 1)
	m, due := s.parkedOnly()
	if due.Before(before.Add(2*time.Hour).Truncate(time.Millisecond)) || due.After(s.serverTime().Add(2*time.Hour)) || m.RC != 1 || m.Err != "wrapped: busy" {
		t.Errorf("parked until %v: %+v", due, m)
	}
	if err := xstreamq.RetryAfter(time.Second, cause); !errors.Is(err, cause) || err.Error() != "busy" {
		t.Errorf("%v does not wrap its error", err)
	}
	if err := xstreamq.RetryAfter(time.Second, nil); err.Error() == "" {
		t.Error("no text")
	}
}

func TestSnoozeSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	runs := make(chan int, 20)
	n := 0
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		runs <- m.Attempt
		if n++; n <= 5 {
			return xstreamq.Snooze(time.Millisecond)
		}
		return nil
	}, xstreamq.MaxRetries(0), xstreamq.Concurrency(1))
	s.publish(1, 1)
	if list := receive(t, runs, 6, "runs"); fmt.Sprint(list) != "[1 1 1 1 1 1]" {
		t.Errorf("attempts %v", list)
	}
	s.settled()
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
}

func TestReject(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID == 1 {
			return xstreamq.Reject(errors.New("unpayable"))
		}
		return fmt.Errorf("handler: %w", xstreamq.Reject(nil))
	})
	s.publish(1, 2)
	for _, m := range s.dead(2) {
		want := map[string]string{`{"id":1}`: "unpayable", `{"id":2}`: "handler: rejected"}[m.Body]
		if m.Reason != "rejected" || m.RC != 1 || m.Err != want {
			t.Errorf("dead letter %+v, want error %q", m, want)
		}
	}
	s.settled()
}

func TestPanicIsAFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saw := make(chan error, 2)
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{HandleEnd: func(_ context.Context, _ *xstreamq.Delivery, _ xstreamq.Outcome, err error, _ time.Duration) {
		saw <- err
	}}))
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID == 1 {
			panic("index out of range")
		}
		return nil
	}, xstreamq.MaxRetries(0))
	s.start(c)
	s.publish(1, 1)
	if m := s.dead(1)[0]; m.Err != "handler panicked: index out of range" || m.Reason != "retries" {
		t.Errorf("dead letter %+v", m)
	}
	var p *xstreamq.PanicError
	if err := receiveOne(t, saw, "HandleEnd"); !errors.As(err, &p) || p.Value != "index out of range" || !strings.Contains(string(p.Stack), "outcomes_test.go") {
		t.Errorf("the hook got %v", err)
	}
	s.publish(2, 2)
	if err := receiveOne(t, saw, "the next message"); err != nil {
		t.Error(err)
	}
}

// A handler that ends its goroutine fails its message and leaves its slot to the next.
func TestGoexitIsAFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	good := make(chan int, 100)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID <= 5 {
			runtime.Goexit()
		}
		good <- m.Body.ID
		return nil
	}, xstreamq.MaxRetries(0), xstreamq.Concurrency(2))
	s.publish(1, 10)
	receive(t, good, 5, "the good ones")
	for _, m := range s.dead(5) {
		if !strings.Contains(m.Err, "Goexit") {
			t.Errorf("dead letter %+v", m)
		}
	}
	s.settled()
}

// Nobody can handle an entry without a body; it does not stop those behind it, and keeps every field.
func TestNoBody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	good := make(chan int, 1)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { good <- m.Body.ID; return nil }, xstreamq.Concurrency(1))
	s.add("foo", "bar", "", "")
	s.publish(1, 1)
	receiveOne(t, good, "the good one")
	m := s.dead(1)[0]
	if m.Reason != "no-body" || m.RC != 0 {
		t.Errorf("dead letter %+v", m)
	}
	if got := fmt.Sprintf("%q", wire.Unknown(m.Fields)); got != `[["foo" "bar"] ["" ""]]` {
		t.Errorf("unknown fields %s", got)
	}
}

// A body that cannot be decoded or is invalid is a failed attempt: a deploy may bring a worker that can read it.
func TestUndecodableIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	ran := make(chan int, 5)
	q := xstreamq.NewQueue[checked](c, "orders")
	if _, err := q.Subscribe("svc", func(_ context.Context, m *xstreamq.Message[checked]) error { ran <- m.Body.N; return nil },
		fast, xstreamq.MaxRetries(1)); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	s.add("body", "a\x00\xff\r\n")
	s.add("body", `{"N":-4}`)
	s.add("body", `{"N":7}`, "body", `{"N":-1}`) // the first of a name counts
	if n := receiveOne(t, ran, "the good one"); n != 7 {
		t.Errorf("handled %d", n)
	}
	for _, m := range s.dead(2) {
		if m.RC != 2 || m.Reason != "retries" || !strings.HasPrefix(m.Err, "invalid body: ") {
			t.Errorf("dead letter %+v", m)
		}
		if m.Body != "a\x00\xff\r\n" && m.Body != `{"N":-4}` {
			t.Errorf("body %q", m.Body)
		}
	}
	silent(t, ran, 50*time.Millisecond, "the handler ran")
}

// Bodies and foreign fields are the same bytes on every path: failed, parked, retried, dead.
func TestBytesSurvive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	body := `{"id":15947634569000323,"tags":[],"nested":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500) + `,"t":1699999999999999}`
	raws := make(chan string, 10)
	if _, err := xstreamq.NewQueue[json.RawMessage](c, "orders").Subscribe("svc", func(_ context.Context, m *xstreamq.Message[json.RawMessage]) error {
		raws <- string(m.Body)
		return errors.New("\x00\xff \u2028")
	}, fast, xstreamq.MaxRetries(1)); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	s.add("z", "\xff\x00", "body", body, "z", "1e3", "", "", "a", "15947634569000323")
	for _, raw := range receive(t, raws, 2, "runs") {
		if raw != body {
			t.Errorf("handled %q", raw)
		}
	}
	m := s.dead(1)[0]
	if m.Body != body || m.Err != "\x00\xff \u2028" {
		t.Errorf("dead letter %+v", m)
	}
	if got, want := fmt.Sprintf("%q", wire.Unknown(m.Fields)), fmt.Sprintf("%q", [][2]string{{"z", "\xff\x00"}, {"z", "1e3"}, {"", ""}, {"a", "15947634569000323"}}); got != want {
		t.Errorf("unknown fields %s, want %s", got, want)
	}

	g := c.Admin().Group("orders", "svc")
	for _, toStream := range []bool{false, true} { // to its own group, then anew to all
		list := s.entries(s.keys.DLQ)
		if _, err := g.Redrive(t.Context(), list[0].EntryID, xstreamq.RedriveOptions{ToStream: toStream}); err != nil {
			t.Fatal(err)
		}
		for _, raw := range receive(t, raws, 2, "runs after a redrive") {
			if raw != body {
				t.Errorf("handled %q after a redrive", raw)
			}
		}
		if m := s.dead(1)[0]; m.Body != body || fmt.Sprintf("%q", wire.Unknown(m.Fields)) != `[["z" "\xff\x00"] ["z" "1e3"] ["" ""] ["a" "15947634569000323"]]` {
			t.Errorf("dead letter after a redrive %+v", m)
		}
	}
}

// An error's text is cut to what is kept.
func TestLongErrors(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.worker(func(context.Context, *xstreamq.Message[order]) error { return errors.New(strings.Repeat("ü", 5000)) }, xstreamq.MaxRetries(0))
	s.publish(1, 1)
	if m := s.dead(1)[0]; m.Err != strings.Repeat("ü", 512) {
		t.Errorf("error of %d bytes", len(m.Err))
	}
}

// Past the cap a failure is dead; nothing that waits is pushed out.
func TestMaxParked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.worker(func(context.Context, *xstreamq.Message[order]) error {
		return xstreamq.RetryAfter(time.Hour, errors.New("no"))
	},
		xstreamq.MaxParked(3), xstreamq.Concurrency(1))
	s.publish(1, 5)
	for _, m := range s.dead(2) {
		if m.Reason != "overflow" || m.RC != 1 || m.Err != "no" {
			t.Errorf("dead letter %+v", m)
		}
	}
	if l := s.load(); l.parked != 3 {
		t.Errorf("%d parked, want 3", l.parked)
	}
	if got := fmt.Sprint(bodies(t, s.entries(s.keys.DLQ))); got != "[4 5]" {
		t.Errorf("dead are %s", got)
	}
}

// What was finished is skipped when it comes again; a failure leaves no mark.
func TestDedupeTTL(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opt, ends := watching()
	c := s.open(opt)
	var runs calls
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		if runs.add(m.ID) == 1 && m.Body.ID == 2 {
			return errors.New("once")
		}
		return nil
	}, xstreamq.DedupeTTL(time.Minute))
	s.start(c)
	ids := s.publish(1, 2)
	for _, e := range receive(t, ends, 3, "ends") {
		if want := map[bool]xstreamq.Outcome{true: "failed", false: "acked"}[e.err != nil]; e.outcome != want {
			t.Errorf("end %+v", e)
		}
	}
	ttl := s.rdb.PTTL(t.Context(), s.keys.Seen(ids[0])).Val()
	if ttl <= 0 || ttl > time.Minute {
		t.Errorf("the mark lives for %v", ttl)
	}
	s.addTo(s.keys.Retry, "body", `{"id":1}`, "oid", ids[0])
	s.addTo(s.keys.Main, "body", `{"id":2}`, "oid", ids[1])
	for _, e := range receive(t, ends, 2, "ends of the copies") {
		if e.outcome != xstreamq.OutcomeSkipped || e.err != nil {
			t.Errorf("end %+v", e)
		}
	}
	s.settled()
	if runs.total() != 3 {
		t.Errorf("%d runs, want 3", runs.total())
	}
}
