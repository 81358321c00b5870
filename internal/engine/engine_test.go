package engine

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// still is a subscription whose loops do not run: a test moves it by hand.
func still(t *testing.T, handle func(ctx context.Context, r *Run) Verdict, more ...func(*Config)) (*Sub, *incarnation, chan End) {
	t.Helper()
	ends := make(chan End, 2000)
	cfg := Config{
		Redis: redistest.Deployed(t).Client(t), Keys: keys.NewStream(redistest.Prefix(t), "s").Group("g"), ConsumerPrefix: "c",
		Visibility: 10 * time.Second, MaxRetries: 1, Concurrency: 4, Prefetch: 100,
		Backoff: func(int, error) time.Duration { return time.Minute },
		Handle: func(ctx context.Context, runs []*Run) {
			for _, r := range runs {
				r.Verdict = handle(ctx, r)
			}
		},
		Watch: Watch{Ended: func(_ *Run, e End) { ends <- e }},
		Log:   slog.New(slog.DiscardHandler),
	}
	for _, f := range more {
		f(&cfg)
	}
	s := New(t.Context(), cfg)
	inc := newIncarnation("c")
	s.current = inc
	t.Cleanup(func() {
		s.mu.Lock()
		s.stopping = true
		s.cond.Broadcast()
		s.mu.Unlock()
		s.end()
		s.settler.Wait()
	})
	return s, inc, ends
}

func (s *Sub) delivery(inc *incarnation, source, id string, lost int) *Run {
	return &Run{
		Msg: wire.Message{EntryID: id, ID: id, HasBody: true, Body: "x", Lost: lost}, Source: source, sub: s, inc: inc, arrived: time.Now(),
	}
}

// A handler starts only with at least half a lease left: a process that was stopped with a full buffer starts none of it
// before a heartbeat was answered.
func TestStartsOnlyWithHalfALease(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 10)
	s, inc, _ := still(t, func(_ context.Context, r *Run) Verdict { ran <- r.Msg.EntryID; return Verdict{Verb: lua.Ack} })
	s.push(inc, []*Run{s.delivery(inc, lua.Main, "1-0", 0)}) // no heartbeat was answered yet
	inc.renew(time.Now().Add(-6 * time.Second))
	s.broadcast()
	s.push(inc, []*Run{s.delivery(inc, lua.Main, "2-0", 0)})
	select {
	case id := <-ran:
		t.Fatalf("%s started with less than half a lease", id)
	case <-time.After(100 * time.Millisecond):
	}
	inc.renew(time.Now().Add(-4 * time.Second))
	s.broadcast()
	for range 2 {
		select {
		case <-ran:
		case <-time.After(5 * time.Second):
			t.Fatal("nothing started with more than half a lease")
		}
	}
}

// How old a message is shows with the first tick: none starts before, and then by the server's clock alone.
func TestExpiresByTheServersClock(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 10)
	s, inc, ends := still(t, func(_ context.Context, r *Run) Verdict { ran <- r.Msg.EntryID; return Verdict{Verb: lua.Ack} })
	s.cfg.ExpireAfter = time.Hour
	inc.renew(time.Now())
	s.push(inc, []*Run{s.delivery(inc, lua.Main, "3600000-0", 0), s.delivery(inc, lua.Main, "3700000-0", 0)})
	select {
	case id := <-ran:
		t.Fatalf("%s started before the server's time was known", id)
	case e := <-ends:
		t.Fatalf("ended before the server's time was known: %+v", e)
	case <-time.After(50 * time.Millisecond):
	}
	s.clock.Store((7_250 * time.Second).Nanoseconds() - int64(time.Since(epoch))) // 1970, for a server whose clock says so
	s.broadcast()
	select {
	case id := <-ran:
		if id != "3700000-0" {
			t.Errorf("%s started, which is over an hour old", id)
		}
	case <-time.After(10 * time.Second):
		t.Error("what is younger did not start")
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	inc := newIncarnation("prefix")
	if other := newIncarnation("prefix"); other.name == inc.name || inc.name[:7] != "prefix~" {
		t.Errorf("names %s and %s", inc.name, other.name)
	}
	if d := inc.left(time.Minute); d != 0 {
		t.Errorf("%v left before any heartbeat", d)
	}
	inc.renew(time.Now().Add(-20 * time.Second))
	if d := inc.left(time.Minute); d > 40*time.Second || d < 39*time.Second {
		t.Errorf("%v left, want 40s", d)
	}
	if d := inc.left(10 * time.Second); d > -10*time.Second {
		t.Errorf("%v left of a lease that is over", d)
	}
	inc.void.Store(true)
	if d := inc.left(time.Minute); d != 0 || !inc.isVoid() || !(*incarnation)(nil).isVoid() {
		t.Errorf("%v left of a void one", d)
	}
}

// What a lost name held is told as lost: a failure is none, nothing is sent for it, and its handler's context ends.
func TestLostLease(t *testing.T) {
	t.Parallel()
	causes := make(chan error, 1)
	s, inc, ends := still(t, func(ctx context.Context, _ *Run) Verdict {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return Verdict{Verb: lua.Fail, Err: errors.New("interrupted")}
	})
	inc.renew(time.Now())
	s.slots = s.slots[:1]
	s.push(inc, []*Run{s.delivery(inc, lua.Main, "1-0", 0), s.delivery(inc, lua.Main, "2-0", 0)})
	redistest.Eventually(t, 5*time.Second, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.busy == 1
	}, "one runs")
	s.lose(inc, "a test")
	s.lose(inc, "again: nothing more")
	if err := <-causes; !errors.Is(err, ErrLeaseExpired) {
		t.Errorf("cause %v", err)
	}
	if e := <-ends; e.Outcome != LostIt {
		t.Errorf("end %+v", e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil || s.buffer.len() != 0 || len(inc.held) != 0 || len(s.leftover) != 1 {
		t.Errorf("current %v, %d buffered, %d held, %d names left to hand back", s.current, s.buffer.len(), len(inc.held), len(s.leftover))
	}
}

// Nothing starts beside a suspect, not even what was read with it.
func TestNothingBesideASuspect(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 10)
	release := make(chan struct{})
	s, inc, _ := still(t, func(_ context.Context, r *Run) Verdict {
		ran <- r.Msg.EntryID
		<-release
		return Verdict{Verb: lua.Ack}
	})
	inc.renew(time.Now())
	s.push(inc, []*Run{s.delivery(inc, lua.Main, "1-0", suspectAt), s.delivery(inc, lua.Main, "2-0", 0), s.delivery(inc, lua.Main, "3-0", 0)})
	if id := <-ran; id != "1-0" {
		t.Errorf("%s started first", id)
	}
	s.broadcast()
	select {
	case id := <-ran:
		t.Errorf("%s started beside the suspect", id)
	case <-time.After(100 * time.Millisecond):
	}
	close(release)
}

// Once another server process answers, an entry's id may be another's: only the script that checks the owner acks it.
func TestFencedAcksCheckTheOwner(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s, inc, ends := still(t, func(context.Context, *Run) Verdict {
		<-release
		return Verdict{Verb: lua.Ack}
	})
	k := s.cfg.Keys
	for _, args := range [][]any{
		{"xadd", k.Main, "1-0", "body", "the new master's message"},
		{"xgroup", "create", k.Main, k.Group, "0"},
		{"xgroup", "create", k.Retry, k.Group, "0", "mkstream"},
		{"xreadgroup", "group", k.Group, "its reader", "streams", k.Main, ">"},
	} {
		if err := s.cfg.Redis.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	inc.renew(time.Now())
	s.push(inc, []*Run{s.delivery(inc, lua.Main, "1-0", 0)})
	redistest.Eventually(t, 5*time.Second, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.busy == 1
	}, "it runs")
	s.fence()
	close(release)
	if e := <-ends; e.Outcome != LostIt {
		t.Errorf("end %+v", e)
	}
	if p, err := s.cfg.Redis.XPending(t.Context(), k.Main, k.Group).Result(); err != nil || p.Count != 1 {
		t.Errorf("%+v, %v: another's message was acked", p, err)
	}
}

// What is read under a name that was lost meanwhile starts nowhere, and the name is looked at once more.
func TestReadUnderALostName(t *testing.T) {
	t.Parallel()
	s, inc, ends := still(t, func(context.Context, *Run) Verdict {
		t.Error("it started")
		return Verdict{Verb: lua.Ack}
	})
	inc.renew(time.Now())
	s.lose(inc, "a test")
	s.mu.Lock()
	s.leftover = nil // its entries were handed back already
	s.mu.Unlock()
	s.push(inc, []*Run{s.delivery(inc, lua.Main, "1-0", 0)})
	if e := <-ends; e.Outcome != LostIt {
		t.Errorf("end %+v", e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leftover) != 1 || s.active != 0 {
		t.Errorf("%d names to look at, %d active", len(s.leftover), s.active)
	}
}

// What a lost name still has is handed back also where one of its streams is gone.
func TestHandBackWithoutARetryStream(t *testing.T) {
	t.Parallel()
	s, inc, _ := still(t, func(context.Context, *Run) Verdict { return Verdict{Verb: lua.Ack} })
	k, rdb := s.cfg.Keys, s.cfg.Redis
	for _, args := range [][]any{
		{"xadd", k.Main, "1-0", "body", "x"},
		{"xgroup", "create", k.Main, k.Group, "0"},
		{"xreadgroup", "group", k.Group, inc.name, "streams", k.Main, ">"},
	} {
		if err := rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.lose(inc, "a test")
	s.handBackOld()
	if len(s.leftover) != 0 {
		t.Errorf("%d names are left", len(s.leftover))
	}
	if p, err := rdb.XPending(t.Context(), k.Main, k.Group).Result(); err != nil || p.Count != 0 {
		t.Errorf("pending %+v, %v; want it handed back", p, err)
	}
	if n := rdb.XLen(t.Context(), k.Retry).Val(); n != 1 {
		t.Errorf("%d to be handed out again, want 1", n)
	}
}

func TestBuffer(t *testing.T) {
	t.Parallel()
	s := &Sub{}
	var b buffer
	order := func() (out string) {
		for r, q := b.front(); r != nil; r, q = b.front() {
			out += r.Msg.EntryID + " "
			q.pop()
		}
		return out
	}
	fill := func() (runs []*Run) {
		for i, source := range []string{lua.Main, lua.Retry, lua.Main, lua.Retry} {
			runs = append(runs, s.delivery(nil, source, string(rune('a'+i)), 0))
			b.push(runs[i])
		}
		return runs
	}
	for range 3 { // the queues are used again
		fill()
		if got := order(); got != "b d a c " || b.len() != 0 {
			t.Errorf("order %s, %d left, want retries first", got, b.len())
		}
	}
	runs := fill()
	runs[0].arrived, runs[1].arrived, runs[3].arrived = time.Time{}, time.Time{}, time.Time{}
	if old := b.takeOld(time.Now().Add(-time.Second), runs[1]); len(old) != 2 {
		t.Errorf("took %d old ones, want 2", len(old))
	}
	if got := order(); got != "b c " {
		t.Errorf("left %s", got)
	}
	fill()
	if old := b.takeOld(time.Now().Add(-time.Second), nil); old != nil {
		t.Errorf("took %d that are not old", len(old))
	}
	if all := b.takeAll(); len(all) != 4 || b.len() != 0 || b.takeAll() != nil {
		t.Errorf("took %d of all", len(all))
	}
}

// Nothing is read ahead while handlers are slow, about 20 ms of work while they are fast, never more than allowed, and
// never much in bytes.
func TestRoom(t *testing.T) {
	t.Parallel()
	s, _, _ := still(t, nil)
	if n := s.roomLocked(); n != 4 {
		t.Errorf("room for %d before anything ran, want one a slot", n)
	}
	s.speed.size.add(100)
	s.speed.ran(time.Microsecond)
	if n := s.roomLocked(); n > 9 {
		t.Errorf("room for %d after one quick run, want about two a slot: it says little", n)
	}
	for range 100 {
		s.speed.ran(time.Second)
	}
	if n := s.roomLocked(); n != 4 {
		t.Errorf("room for %d with slow handlers, want 4", n)
	}
	for range 200 {
		s.speed.ran(8 * time.Millisecond)
	}
	if n := s.roomLocked(); n < 12 || n > 14 {
		t.Errorf("room for %d with handlers of 8ms, want 4 and 10 ahead", n)
	}
	for range 200 {
		s.speed.ran(0)
	}
	if n := s.roomLocked(); n != 104 {
		t.Errorf("room for %d with handlers that take nothing, want 4 and the 100 allowed", n)
	}
	s.busy, s.buffer.mains.list = 4, make([]*Run, 90)
	if n := s.roomLocked(); n != 10 {
		t.Errorf("room for %d beside 4 busy and 90 buffered, want 10", n)
	}
	s.active = 4 + 2*(4+100) + 1025
	if n := s.roomLocked(); n != 0 {
		t.Errorf("room for %d while the server takes no settlements", n)
	}
	s.busy, s.active, s.buffer.mains.list = 0, 0, nil
	for range 200 {
		s.speed.size.add(8 << 20)
	}
	if n := s.roomLocked(); n != 1 {
		t.Errorf("room for %d bodies of 8 MiB, want 1", n)
	}
}

// One kind of trouble is one line a minute, however often it comes.
func TestTroubleIsLoggedOnce(t *testing.T) {
	t.Parallel()
	s, _, _ := still(t, nil)
	lines := 0
	s.cfg.Log = slog.New(counting{&lines})
	var told []bool
	s.cfg.Watch.Connection = func(up bool, _ error) { told = append(told, up) }
	for range 100 {
		s.note("read", errors.New("i/o timeout"))
		s.note("settle", conn.Said("OOM command not allowed"))
	}
	s.recovered()
	s.recovered()
	if lines != 2 || len(told) != 2 || told[0] || !told[1] {
		t.Errorf("%d lines, the hook was told %v", lines, told)
	}
}

type counting struct{ n *int }

func (c counting) Enabled(context.Context, slog.Level) bool  { return true }
func (c counting) Handle(context.Context, slog.Record) error { *c.n++; return nil }
func (c counting) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c counting) WithGroup(string) slog.Handler             { return c }

// A run whose time was up has failed, whatever the handler returned; what it decided about its message stands.
func TestInTime(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancelCause(t.Context())
	cancel(ErrHandlerTimeout)
	cut, cancel := context.WithCancelCause(t.Context())
	cancel(ErrShutdown)
	boom := errors.New("boom")
	for _, x := range []struct {
		ctx  context.Context //nolint:containedctx // a table's
		v    Verdict
		verb string
		text string
	}{
		{t.Context(), Verdict{Verb: lua.Ack}, lua.Ack, ""},
		{cut, Verdict{Verb: lua.Ack}, lua.Ack, ""},
		{over, Verdict{Verb: lua.Ack}, lua.Fail, "handler timeout"},
		{over, Verdict{Verb: lua.Fail, Err: boom}, lua.Fail, "handler timeout: boom"},
		{over, Verdict{Verb: lua.Fail, Err: ErrHandlerTimeout}, lua.Fail, "handler timeout"},
		{over, Verdict{Verb: lua.Snooze, Err: boom}, lua.Snooze, "boom"},
		{over, Verdict{Verb: lua.Bury, Err: boom}, lua.Bury, "boom"},
	} {
		got := x.v.inTime(x.ctx)
		if text := errText(got.Err); got.Verb != x.verb || text != x.text {
			t.Errorf("%+v after %v: %s %q, want %s %q", x.v, context.Cause(x.ctx), got.Verb, text, x.verb, x.text)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
