package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Workers that start at once beside what a dead consumer left take it over together, and each message from it once.
func TestManySweepersOneOwner(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ids := s.publish(1, 100)
	for _, args := range [][]any{
		{"xgroup", "create", s.keys.Main, "svc", "0"},
		{"xreadgroup", "group", "svc", "ghost", "count", 100, "streams", s.keys.Main, ">"},
	} {
		if err := s.rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		if err := s.rdb.Do(t.Context(), "xclaim", s.keys.Main, "svc", "ghost", 0, id, "idle", 3600000, "justid").Err(); err != nil {
			t.Fatal(err)
		}
	}
	var runs calls
	for range 5 {
		s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { runs.add(m.ID); return nil }, xstreamq.VisibilityTimeout(time.Second))
	}
	s.settled()
	runs.each(t, ids, 1)
}

// What a dead consumer held is found at once, however much a live one holds beside it.
func TestAFewOfTheDeadAmongManyOfTheLiving(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const many, few = 2000, 10
	queue := s.queue(s.open())
	if _, err := queue.PublishBatch(t.Context(), make([]order, many)); err != nil {
		t.Fatal(err)
	}
	puller, err := s.queue(s.open()).Pull("svc", xstreamq.VisibilityTimeout(time.Second))
	must(t, err)
	held := 0
	for held < many {
		list, err := puller.Receive(t.Context(), many-held)
		must(t, err)
		held += len(list)
	}
	lost := s.publish(1, few) // behind all of them
	must(t, s.rdb.Do(t.Context(), "xreadgroup", "group", "svc", "ghost", "count", few, "streams", s.keys.Main, ">").Err())
	must(t, s.rdb.HSet(t.Context(), s.keys.Workers, "ghost", "1000|1|1|live|").Err())
	var runs calls
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { runs.add(m.ID); return nil }, xstreamq.VisibilityTimeout(time.Second))
	s.within(4*time.Second, func() bool { return runs.total() == few }, "the ghost's, %v", &runs)
	runs.each(t, lost, 1)
}

// However much is in flight, sweeps look at consumers: eight workers with short leases beside 100,000 entries in flight hold the
// server up with no command.
func TestSweepsBesideMuchInFlight(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	const much, workers = 100_000, 8
	must(t, s.rdb.Do(t.Context(), "xgroup", "create", s.keys.Main, "svc", "0", "mkstream").Err())
	must(t, s.rdb.HSet(t.Context(), s.keys.Workers, "busy~1", fmt.Sprintf("3600000|%d|1|live|", s.serverTime().UnixMilli())).Err())
	fill := redis.NewScript(`for i = 1, 20000 do redis.call('XADD', KEYS[1], '*', 'body', '{"id":7}') end
		redis.call('XREADGROUP', 'GROUP', 'svc', 'busy~1', 'COUNT', 20000, 'STREAMS', KEYS[1], '>')`)
	for range much / 20_000 {
		if err := fill.Run(t.Context(), s.rdb, []string{s.keys.Main}).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
	}
	var runs calls
	for range workers {
		c := s.open(xstreamq.SweepInterval(time.Second))
		s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { runs.add(m.ID); return nil }, xstreamq.VisibilityTimeout(2*time.Second))
		s.start(c)
	}
	must(t, s.rdb.ConfigResetStat(t.Context()).Err())
	var ids []string
	for range 40 {
		ids = append(ids, s.publish(1, 1)...)
		time.Sleep(100 * time.Millisecond)
	}
	for line := range strings.Lines(s.rdb.Info(t.Context(), "commandstats").Val()) {
		var calls, total int64
		name, figures, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(figures, "calls=%d,usec=%d,", &calls, &total); err != nil {
			continue // the title
		}
		// XPENDING over all would take 25 ms a call. A busy machine may stop the server within one call, not within each.
		if mean := time.Duration(total/calls) * time.Microsecond; mean > 10*time.Millisecond {
			t.Errorf("%s took %v a call, %d calls", name, mean, calls)
		}
	}
	s.within(5*time.Second, func() bool { return runs.distinct() == len(ids) }, "all are handled, %v", &runs)
	runs.each(t, ids, 1)
	if n := s.load().pending; n != much {
		t.Errorf("%d are in flight, want %d", n, much)
	}
}

// Failures of one second come again spread over the jitter's window, and other queues do not wait for them.
func TestRetriesAreSpread(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const crowd, initial = 2000, 2 * time.Second
	c := s.open()
	var again atomic.Int64
	if _, err := s.queue(c).Subscribe("svc", func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Attempt == 1 {
			return errFailed
		}
		again.Add(1)
		return nil
	}, xstreamq.WithBackoff(xstreamq.Exponential{Initial: initial}), xstreamq.Concurrency(64)); err != nil {
		t.Fatal(err)
	}
	other := xstreamq.NewQueue[order](c, "others")
	waited := make(chan time.Duration, 1000)
	if _, err := other.Subscribe("svc", func(_ context.Context, m *xstreamq.Message[order]) error {
		waited <- s.serverTime().Sub(m.PublishedAt)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.queue(c).PublishBatch(t.Context(), make([]order, crowd)); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	seen := map[string]float64{} // each is parked for two seconds at least, and seen meanwhile
	s.within(2*patience, func() bool {
		for _, z := range s.rdb.ZRangeWithScores(t.Context(), s.keys.Due, 0, -1).Val() {
			seen[z.Member.(string)] = z.Score
		}
		return len(seen) == crowd
	}, "all were parked")
	// Each is due 2 s after it was parked and up to a fifth more. The time that parking takes blurs that window, not its width.
	due := slices.Sorted(maps.Values(seen))
	if width := due[len(due)-1] - due[0]; width < 300 {
		t.Fatalf("all are due within %.0f ms, want 400 or more", width)
	}
	most := 0
	for i, j := 0, 0; i < len(due); i++ {
		for due[i]-due[j] > 20 {
			j++
		}
		most = max(most, i-j+1)
	}
	if most > crowd/5 {
		t.Errorf("%d of %d are due within 20 ms", most, crowd)
	}
	for again.Load() < crowd {
		if _, err := other.Publish(t.Context(), order{1}); err != nil {
			t.Fatal(err)
		}
		if took := receiveOne(t, waited, "another queue's message"); took > time.Second {
			t.Errorf("another queue's message waited %v", took)
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.settled()
}

// What waits in a worker's buffer for longer than the visibility timeout is still that worker's, and runs once.
func TestTheBufferKeepsItsLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var runs calls
	ids := s.publish(1, 24)
	for range 2 {
		s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
			runs.add(m.ID)
			if m.Lost != 0 {
				t.Errorf("message %s comes as lost", m.ID)
			}
			time.Sleep(250 * time.Millisecond)
			return nil
		}, xstreamq.VisibilityTimeout(time.Second), xstreamq.Concurrency(1), xstreamq.Prefetch(12))
	}
	s.settled()
	runs.each(t, ids, 1)
}

// A worker with nothing to do is alive: its consumer's idle time grows on some servers, and nobody takes that for death.
func TestAnIdleWorkerIsAlive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	got := make(chan int, 1)
	short := xstreamq.VisibilityTimeout(time.Second)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil }, short)
	names := s.rdb.HKeys(t.Context(), s.keys.Workers).Val()
	if len(names) != 1 {
		t.Fatalf("workers %q, want one", names)
	}
	other := s.open()
	s.subscribe(other, nothing, short)
	s.start(other)
	time.Sleep(2500 * time.Millisecond)
	if err := other.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := s.rdb.HKeys(t.Context(), s.keys.Workers).Val(); !slices.Equal(now, names) || strings.Contains(s.log.String(), "lease lost") {
		t.Errorf("workers %q, want %q as before; logged:\n%s", now, names, s.log)
	}
	s.publish(1, 1)
	receiveOne(t, got, "the idle worker")
	s.settled()
	// An operator may take it out by hand, while it holds nothing: it goes on under another name.
	if err := other.Admin().Group("orders", "svc").RemoveConsumer(t.Context(), names[0]); err != nil {
		t.Fatal(err)
	}
	s.publish(2, 2)
	receiveOne(t, got, "the removed worker")
	s.settled()
}

// A delay beyond the visibility timeout, behind many that are due much later, is not early, and comes once.
func TestDelayLongerThanALease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const delay = 2500 * time.Millisecond
	ran := make(chan time.Time, 5)
	var q *xstreamq.Queue[order]
	for range 2 {
		q = s.queue(s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
			if m.Body.ID != 1 {
				t.Errorf("message %d ran", m.Body.ID)
			}
			ran <- s.serverTime()
			return nil
		}, xstreamq.VisibilityTimeout(time.Second)))
	}
	if _, err := q.PublishBatch(t.Context(), make([]order, 300), xstreamq.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	start := s.serverTime()
	if _, err := q.Publish(t.Context(), order{1}, xstreamq.Delay(delay)); err != nil {
		t.Fatal(err)
	}
	if took := receiveOne(t, ran, "the message that is due").Sub(start); took < delay-time.Millisecond {
		t.Errorf("it ran after %v, want %v", took, delay)
	}
	silent(t, ran, 1500*time.Millisecond, "it ran again")
}

// A server that lets few in sees no storm of connections from those outside, and all are back when it opens.
func TestNoStormOfConnections(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	const workers, outage = 20, 3 * time.Second
	var down atomic.Int32
	got := make(chan int, 1000)
	for range workers {
		c := s.open(xstreamq.SweepInterval(time.Second), xstreamq.WithHooks(xstreamq.Hooks{Connection: func(_ context.Context, ok bool, _ error) {
			down.Add(map[bool]int32{true: -1, false: 1}[ok])
		}}))
		s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil })
		s.start(c)
	}
	cn := s.rdb.(*redis.Client).Conn()
	defer func() { _ = cn.Close() }()
	received := func() int64 {
		t.Helper()
		info, err := cn.Info(t.Context(), "stats").Result()
		if err != nil {
			t.Fatal(err)
		}
		var let, refused int64
		for name, n := range map[string]*int64{"total_connections_received:": &let, "rejected_connections:": &refused} {
			_, rest, _ := strings.Cut(info, name)
			if _, err := fmt.Sscan(rest, n); err != nil {
				t.Fatal(err)
			}
		}
		return let + refused
	}
	do := func(args ...any) {
		t.Helper()
		if err := cn.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	do("config", "set", "maxclients", 10)
	do("client", "kill", "type", "normal", "skipme", "yes")
	before := received()
	time.Sleep(outage)
	// A subscription reads on one connection and talks on others; each tries with a backoff that soon is 2 s; without one it would be thousands.
	if n, most := received()-before, int64(workers*outage/time.Second*10); n > most {
		t.Errorf("%d connections in %v from %d workers, want at most %d", n, outage, workers, most)
	} else if n < workers {
		t.Errorf("%d connections: was anything cut?", n)
	}
	do("config", "set", "maxclients", 1000)
	s.within(10*time.Second, func() bool { return down.Load() <= 0 }, "all are back, %d are not", &down)
	s.publish(1, 200)
	receive(t, got, 200, "deliveries")
	s.settled()
}

// A stream that the server evicted, with its groups and what was in flight, is lost and said so; what comes next is handled.
func TestEviction(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	remade := make(chan xstreamq.Position, 10)
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{
		GroupRemade: func(_ context.Context, _ xstreamq.GroupRef, from xstreamq.Position) { remade <- from },
	}))
	begun, release := make(chan int, 100), make(chan struct{})
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		begun <- m.Body.ID
		<-release
		return nil
	}, xstreamq.Concurrency(20))
	s.start(c)
	s.publish(1, 20)
	receive(t, begun, 20, "handlers")
	config := func(name, value string) {
		t.Helper()
		if err := s.rdb.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	config("maxmemory-policy", "allkeys-random")
	config("maxmemory", "1") // all that there is goes, at the next command that needs memory
	s.eventually(func() bool {
		_ = s.rdb.Set(t.Context(), "filler", strings.Repeat("x", 50_000), 0).Err() // refused when nothing is left to evict
		return s.rdb.Exists(t.Context(), s.keys.Main).Val() == 0
	}, "the stream is evicted")
	config("maxmemory", "0")
	config("maxmemory-policy", "noeviction")
	close(release)
	receiveOne(t, remade, "the hook")
	s.publish(21, 25)
	receive(t, begun, 5, "what comes next")
	s.settled()
	if l := s.load(); l != (load{}) {
		t.Errorf("%+v", l)
	}
	if n := s.log.count(); n > 12 || !strings.Contains(s.log.String(), "vanished") {
		t.Errorf("%d lines were logged:\n%s", n, s.log)
	}
}
