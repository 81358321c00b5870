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

	"github.com/redis/go-redis/v9"

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

func TestOnDeadLetter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told := make(chan xstreamq.DeadLetter, 10)
	hooked := make(chan xstreamq.DeadLetter, 10)
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{DeadLettered: func(_ context.Context, l xstreamq.DeadLetter) { hooked <- l }}))
	s.subscribe(c, func(context.Context, *xstreamq.Message[order]) error { return errors.New("no") }, xstreamq.MaxRetries(1),
		xstreamq.OnDeadLetter(func(_ context.Context, l xstreamq.DeadLetter) { told <- l; panic("user code") }))
	s.start(c)
	p, err := s.queue(c).Publish(t.Context(), order{3}, xstreamq.Header("h", "v"))
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range []chan xstreamq.DeadLetter{told, hooked} {
		l := receiveOne(t, ch, "a dead letter")
		if l.ID != p.ID || l.Reason != xstreamq.ReasonRetries || l.Error != "no" || l.Attempts != 2 || string(l.Body) != `{"id":3}` ||
			l.Group != "svc" || l.Headers["h"] != "v" || l.DiedAt.IsZero() {
			t.Errorf("told %+v", l)
		}
	}
	silent(t, told, 100*time.Millisecond, "told twice")
}

// A message that lost too many workers is told to the worker that buried it.
func TestOnDeadLetterOfLostMessages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told := make(chan xstreamq.DeadLetter, 5)
	var reclaimed atomic.Int32
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{Reclaimed: func(_ context.Context, g xstreamq.GroupRef, n int) {
		if g.Stream == "orders" && g.Group == "svc" {
			reclaimed.Add(int32(n))
		}
	}}))
	handled := make(chan *xstreamq.Message[order], 5)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { handled <- m; return nil },
		xstreamq.VisibilityTimeout(time.Second), xstreamq.MaxLost(1), xstreamq.OnDeadLetter(func(_ context.Context, l xstreamq.DeadLetter) { told <- l }))
	pipe := s.rdb.TxPipeline()
	pipe.XGroupCreateMkStream(t.Context(), s.keys.Main, "svc", "0")
	once := pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.Main, Values: []string{"body", `{"id":1}`, "lost", "1", "losses", "5", "rc", "2"}})
	fresh := pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.Main, Values: []string{"body", `{"id":2}`}})
	pipe.Do(t.Context(), "xreadgroup", "group", "svc", "dead~worker", "streams", s.keys.Main, ">")
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	l := receiveOne(t, told, "the dead letter")
	if l.ID != once.Val() || l.Reason != xstreamq.ReasonLost || l.Lost != 2 || l.Attempts != 2 {
		t.Errorf("told %+v", l)
	}
	if m := receiveOne(t, handled, "the other message"); m.ID != fresh.Val() || m.Lost != 1 || m.Attempt != 1 {
		t.Errorf("handled %+v", m)
	}
	s.settled()
	s.eventually(func() bool { return reclaimed.Load() == 2 }, "the hook was told of %v messages, want 2", &reclaimed)
	silent(t, told, 100*time.Millisecond, "told twice")
}

// Who waits for a client to stop has been told of every dead letter it made.
func TestOnDeadLetterBeforeStopReturns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var told atomic.Int32
	begun := make(chan struct{}, 20)
	release := make(chan struct{})
	c := s.worker(func(context.Context, *xstreamq.Message[order]) error {
		begun <- struct{}{}
		<-release
		return xstreamq.Reject(errors.New("no"))
	}, xstreamq.Concurrency(20), xstreamq.OnDeadLetter(func(context.Context, xstreamq.DeadLetter) {
		time.Sleep(5 * time.Millisecond)
		told.Add(1)
	}))
	s.publish(1, 20)
	receive(t, begun, 20, "handlers")
	close(release)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if told.Load() != 20 {
		t.Errorf("told of %d dead letters, want 20", told.Load())
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

// The handler's time ends with a cause, and the run is a failed attempt, even when it returns nil after it.
func TestHandlerTimeout(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(ctx context.Context) error{
		"the cause": context.Cause, "an error of its own": func(context.Context) error { return errors.New("interrupted") },
		"nil": func(context.Context) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			type end struct {
				took  time.Duration
				cause error
			}
			ended := make(chan end, 5)
			s.worker(func(ctx context.Context, m *xstreamq.Message[order]) error {
				start := m.Until().Add(-200 * time.Millisecond) // a busy machine may have let some of it pass
				if until := time.Until(m.Until()); until > 200*time.Millisecond || until < 0 {
					t.Errorf("until %v from now", until)
				}
				if _, ok := ctx.Deadline(); ok {
					t.Error("the context has a deadline, which Extend could not move")
				}
				<-ctx.Done()
				ended <- end{time.Since(start), context.Cause(ctx)}
				if err := m.Extend(ctx, time.Hour); !errors.Is(err, xstreamq.ErrHandlerTimeout) {
					t.Errorf("Extend when it is over: %v", err)
				}
				return answer(ctx)
			}, xstreamq.HandlerTimeout(200*time.Millisecond), xstreamq.MaxRetries(1))
			s.publish(1, 1)
			for _, e := range receive(t, ended, 2, "runs") {
				if !errors.Is(e.cause, xstreamq.ErrHandlerTimeout) || e.took < 199*time.Millisecond {
					t.Errorf("ended after %v by %v", e.took, e.cause)
				}
			}
			m := s.dead(1)[0]
			if m.RC != 2 || !strings.HasPrefix(m.Err, "handler timeout") {
				t.Errorf("dead letter %+v", m)
			}
			if name == "an error of its own" && m.Err != "handler timeout: interrupted" {
				t.Errorf("error %q", m.Err)
			}
		})
	}
}

// Without HandlerTimeout the visibility timeout bounds a handler; without either nothing does.
func TestDefaultHandlerTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	until := make(chan time.Duration, 2)
	handler := func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Until().IsZero() {
			until <- 0
		} else {
			until <- time.Until(m.Until())
		}
		if err := m.Extend(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		return nil
	}
	c := s.worker(handler, xstreamq.VisibilityTimeout(5*time.Second))
	s.publish(1, 1)
	if d := receiveOne(t, until, "handler"); d <= 0 || d > 5*time.Second {
		t.Errorf("until %v from now, want 5s", d)
	}
	s.settled()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.worker(handler, xstreamq.NoVisibilityTimeout())
	s.publish(2, 2)
	if d := receiveOne(t, until, "handler"); d != 0 {
		t.Errorf("until %v from now, want no end", d)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ended := make(chan error, 5)
	s.worker(func(ctx context.Context, m *xstreamq.Message[order]) error {
		start := time.Now()
		if err := m.Extend(ctx, 0); !errors.Is(err, xstreamq.ErrInvalidOption) || !strings.Contains(err.Error(), "Extend(0s)") {
			t.Errorf("Extend(0): %v", err)
		}
		end := m.Until()
		if err := m.Extend(ctx, time.Millisecond); err != nil || !m.Until().Equal(end) {
			t.Errorf("a shorter one: %v, moved from %v to %v", err, end, m.Until())
		}
		for range 4 { // 500 ms are not enough for this, extended they are
			if err := m.Extend(ctx, 10*time.Second); err != nil {
				t.Error(err)
			}
			select {
			case <-time.After(150 * time.Millisecond):
			case <-ctx.Done():
				t.Errorf("ended after %v: %v", time.Since(start), context.Cause(ctx))
			}
		}
		if err := m.Extend(ctx, 1<<63-1); err != nil || time.Until(m.Until()) < 365*24*time.Hour {
			t.Errorf("the longest one: %v, until %v", err, m.Until())
		}
		ended <- ctx.Err()
		return nil
	}, xstreamq.HandlerTimeout(500*time.Millisecond), xstreamq.MaxRetries(0))
	s.publish(1, 1)
	if err := receiveOne(t, ended, "handler"); err != nil {
		t.Error(err)
	}
	s.settled()
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
	if err := (&xstreamq.Message[order]{}).Extend(t.Context(), time.Second); err != nil {
		t.Errorf("a message made by hand: %v", err)
	}
}

// A handler deaf to its context keeps its slot; its message is failed half a visibility later, and what it says then is dropped.
func TestDeafHandler(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opt, ends := watching()
	c := s.open(opt)
	release := make(chan struct{})
	late := make(chan error, 1)
	runs := make(chan int, 10)
	s.subscribe(c, func(ctx context.Context, m *xstreamq.Message[order]) error {
		runs <- m.Attempt
		if m.Body.ID == 1 && m.Attempt == 1 {
			<-release
			late <- m.Extend(ctx, time.Minute)
			return xstreamq.Reject(errors.New("too late to matter"))
		}
		return nil
	}, xstreamq.HandlerTimeout(200*time.Millisecond), xstreamq.VisibilityTimeout(time.Second), xstreamq.Concurrency(2))
	s.start(c)
	start := time.Now()
	s.publish(1, 1)
	if list := receive(t, runs, 2, "a second attempt beside the deaf one"); fmt.Sprint(list) != "[1 2]" {
		t.Errorf("attempts %v", list)
	}
	if took := time.Since(start); took < 700*time.Millisecond {
		t.Errorf("failed after %v, its time was 200ms and half a visibility", took)
	}
	for i, e := range receive(t, ends, 2, "ends") {
		if want := []xstreamq.Outcome{"failed", "acked"}[i]; e.outcome != want {
			t.Errorf("end %d: %+v", i, e)
		}
	}
	close(release)
	if err := receiveOne(t, late, "the deaf handler"); !errors.Is(err, xstreamq.ErrLeaseExpired) {
		t.Errorf("its Extend: %v", err)
	}
	silent(t, ends, 100*time.Millisecond, "an end of the late result")
	s.settled()
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
	s.publish(2, 3) // the slot is free again
	receive(t, runs, 2, "runs after it")
}

func TestDraining(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun, drained := make(chan struct{}, 1), make(chan error, 1)
	c := s.worker(func(ctx context.Context, m *xstreamq.Message[order]) error {
		select {
		case <-m.Draining():
			t.Error("draining before the stop")
		default:
		}
		begun <- struct{}{}
		<-m.Draining()
		drained <- ctx.Err() // the context goes on
		return nil
	})
	s.publish(1, 1)
	receiveOne(t, begun, "handler")
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := receiveOne(t, drained, "the drain"); err != nil {
		t.Errorf("the context ended: %v", err)
	}
	s.settled()
}

func TestExponential(t *testing.T) {
	t.Parallel()
	steady := xstreamq.Exponential{Initial: time.Second, Max: 10 * time.Second, Jitter: -1}
	for attempt, want := range []float64{1, 1, 2, 4, 8, 10, 10} {
		if got := steady.Delay(attempt, nil); got.Seconds() != want {
			t.Errorf("attempt %d waits %v, want %v s", attempt, got, want)
		}
	}
	var jittered xstreamq.Exponential
	least, most := time.Duration(1<<62), time.Duration(0)
	for range 1000 {
		d := jittered.Delay(20, nil)
		least, most = min(least, d), max(most, d)
	}
	if least < 5*time.Minute || most > 6*time.Minute || most-least < 40*time.Second {
		t.Errorf("capped delays lie between %v and %v, want 5 to 6 minutes", least, most)
	}
	start := time.Now()
	slow := xstreamq.Exponential{Initial: time.Second, Multiplier: 1, Jitter: -1}
	if d := slow.Delay(999_999_999, nil); d != time.Second || time.Since(start) > time.Second {
		t.Errorf("a billionth attempt waits %v, found in %v", d, time.Since(start))
	}
	if d := (xstreamq.Exponential{Initial: time.Hour, Max: 1 << 62, Jitter: -1}).Delay(1000, nil); d != 30*24*time.Hour {
		t.Errorf("a cap beyond all bounds gives %v, want 30 days", d)
	}
}

// A backoff of the user's own is held to what a queue can wait; its panic is no handler's fault.
func TestOddBackoffs(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]struct {
		backoff xstreamq.BackoffFunc
		want    time.Duration
	}{
		"negative": {func(int, error) time.Duration { return -time.Hour }, 0},
		"huge":     {func(int, error) time.Duration { return 1<<63 - 1 }, 30 * 24 * time.Hour},
		"panic":    {func(int, error) time.Duration { panic("no") }, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			before := s.serverTime()
			s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
				if m.Attempt > 1 {
					return xstreamq.Reject(errors.New("seen again"))
				}
				return errors.New("no")
			}, xstreamq.WithBackoff(b.backoff))
			s.publish(1, 1)
			if b.want == 0 {
				s.dead(1) // at once
				return
			}
			if _, due := s.parkedOnly(); due.Sub(before) < b.want-time.Millisecond || due.Sub(before) > b.want+patience {
				t.Errorf("waits %v, want %v", due.Sub(before), b.want)
			}
		})
	}
}
