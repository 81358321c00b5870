package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
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

// What vanished under an idle worker is made again where it was: what comes next is handled soon, what was done stays done,
// and nothing spins.
func TestVanished(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(s *site) error{
		"group":    func(s *site) error { return s.rdb.XGroupDestroy(s.t.Context(), s.keys.Main, "svc").Err() },
		"stream":   func(s *site) error { return s.rdb.Del(s.t.Context(), s.keys.Main).Err() },
		"retry":    func(s *site) error { return s.rdb.Del(s.t.Context(), s.keys.Retry).Err() },
		"all":      func(s *site) error { return s.rdb.FlushAll(s.t.Context()).Err() },
		"workers":  func(s *site) error { return s.rdb.Del(s.t.Context(), s.keys.Workers).Err() },
		"renamed":  func(s *site) error { return s.rdb.Rename(s.t.Context(), s.keys.Main, s.prefix+"elsewhere").Err() },
		"recorded": func(s *site) error { return s.rdb.Del(s.t.Context(), s.keys.Main, s.keys.Groups).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := siteOn(t, redistest.Start(t))
			remade := make(chan xstreamq.Position, 10)
			c := s.open(xstreamq.SweepInterval(time.Second), xstreamq.WithHooks(xstreamq.Hooks{
				GroupRemade: func(_ context.Context, _ xstreamq.GroupRef, from xstreamq.Position) { remade <- from },
			}))
			var runs calls
			s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { runs.add(m.ID); return nil })
			s.start(c)
			s.publish(1, 30)
			s.settled()
			s.eventually(func() bool { // the position is recorded by a sweep
				last := s.rdb.XRevRangeN(t.Context(), s.keys.Main, "+", "-", 1).Val()
				return strings.HasPrefix(s.rdb.HGet(t.Context(), s.keys.Groups, "svc").Val(), last[0].ID+"|")
			}, "the position is recorded")
			if err := do(s); err != nil {
				t.Fatal(err)
			}
			s.publish(31, 33)
			s.within(2*time.Second, func() bool { return runs.total() == 33 }, "three more handled, %v", &runs)
			before := s.commands("evalsha", "eval", "xreadgroup", "xpending")
			if name != "workers" && name != "retry" {
				receiveOne(t, remade, "the hook")
			}
			time.Sleep(2 * time.Second)
			if n := s.commands("evalsha", "eval", "xreadgroup") - before; n > 12 {
				t.Errorf("%d commands in the two seconds after, is it spinning?", n)
			}
			if runs.total() != 33 || runs.distinct() != 33 {
				t.Errorf("%d runs of %d messages, want 33", runs.total(), runs.distinct())
			}
			if n := s.log.count(); n > 9 {
				t.Errorf("%d lines were logged:\n%s", n, s.log)
			}
			if l := s.load(); l != (load{}) {
				t.Errorf("%+v", l)
			}
		})
	}
}

// Connections that are killed again and again lose nothing, fail nothing and lose no lease.
func TestKilledConnections(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	var runs calls
	handler := func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		if m.Attempt != 1 || m.Lost != 0 {
			t.Errorf("message %s came with attempt %d, lost %d", m.ID, m.Attempt, m.Lost)
		}
		time.Sleep(time.Millisecond)
		return nil
	}
	for range 2 {
		s.worker(handler, xstreamq.Concurrency(4))
	}
	var all []string
	for round := range 15 {
		if err := s.rdb.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, s.publish(round*20, round*20+19)...)
		time.Sleep(50 * time.Millisecond)
	}
	s.settled()
	for _, id := range all {
		if runs.by[id] == 0 {
			t.Errorf("message %s was never handled", id)
		}
	}
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
}

// A full memory: work goes on and is acked, leases are kept, failures wait in their worker without spending attempts, and
// all of it resumes by itself.
func TestFullMemory(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	var runs calls
	begun := make(chan int, 100)
	full := make(chan struct{})
	handler := func(ctx context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		begun <- m.Body.ID
		if m.Attempt > 1 {
			return nil
		}
		select {
		case <-full:
		case <-ctx.Done():
			t.Errorf("message %s: %v", m.ID, context.Cause(ctx))
		}
		switch {
		case m.Body.ID <= 5:
			return errors.New("no stock")
		case m.Body.ID == 6:
			time.Sleep(2500 * time.Millisecond) // longer than its lease
		}
		return nil
	}
	opts := []xstreamq.SubscribeOption{xstreamq.VisibilityTimeout(time.Second), xstreamq.HandlerTimeout(time.Minute), xstreamq.Concurrency(20), xstreamq.MaxRetries(1)}
	q := s.queue(s.worker(handler, opts...))
	s.worker(handler, opts...)
	ids := s.publish(1, 10)
	receive(t, begun, 10, "handlers")
	set := func(most string) {
		t.Helper()
		if err := s.rdb.ConfigSet(t.Context(), "maxmemory", most).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	close(full)
	s.within(2*time.Second, func() bool { return s.load().pending == 6 }, "acks work in a full memory")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := q.Publish(ctx, order{99}); !errors.Is(err, xstreamq.ErrUnavailable) || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("publish into a full memory: %v", err)
	}
	s.within(5*time.Second, func() bool { return s.load().pending == 5 }, "a lease outlasts its timeout in a full memory")
	silent(t, begun, time.Second, "something ran again")
	set("0")
	receive(t, begun, 5, "the failures come again")
	s.settled()
	for i, id := range ids {
		if want := map[bool]int{true: 2, false: 1}[i < 5]; runs.by[id] != want {
			t.Errorf("message %d ran %d times, want %d", i+1, runs.by[id], want)
		}
	}
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
}

// A server that refuses for a while, for whatever reason: no attempt is spent, publishes wait, all resumes by itself.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	config := func(name, value string) func(context.Context, *redis.Conn) error {
		return func(ctx context.Context, c *redis.Conn) error { return c.ConfigSet(ctx, name, value).Err() }
	}
	kick := func(f func(context.Context, *redis.Conn) error) func(context.Context, *redis.Conn) error {
		return func(ctx context.Context, c *redis.Conn) error {
			if err := f(ctx, c); err != nil {
				return err
			}
			return c.Do(ctx, "client", "kill", "type", "normal", "skipme", "yes").Err()
		}
	}
	replicaOf := func(host, port string) func(context.Context, *redis.Conn) error {
		return func(ctx context.Context, c *redis.Conn) error { return c.Do(ctx, "replicaof", host, port).Err() }
	}
	for name, lever := range map[string]struct {
		down, up  func(context.Context, *redis.Conn) error
		published bool // a publish waits and succeeds
	}{
		"no replicas": {config("min-replicas-to-write", "1"), config("min-replicas-to-write", "0"), true},
		"demoted":     {replicaOf("127.0.0.1", "1"), replicaOf("no", "one"), true},
		"max clients": {kick(config("maxclients", "1")), config("maxclients", "1000"), false},
		"save failed": {func(_ context.Context, c *redis.Conn) error { failSave(t, c); return nil }, config("save", ""), true},
		"busy": {
			func(ctx context.Context, c *redis.Conn) error {
				if err := c.ConfigSet(ctx, "busy-reply-threshold", "50").Err(); err != nil {
					return err
				}
				endless := redis.NewClient(&redis.Options{Addr: addrOf(ctx, c), ReadTimeout: time.Minute})
				t.Cleanup(func() { _ = endless.Close() })
				go func() { _ = endless.Eval(context.Background(), "while true do end", nil).Err() }() // until it is killed
				return nil
			},
			func(ctx context.Context, c *redis.Conn) error { return c.ScriptKill(ctx).Err() }, true,
		},
		"password": {kick(config("requirepass", "x")), config("requirepass", ""), false},
		"no rights": {
			func(ctx context.Context, c *redis.Conn) error {
				return c.Do(ctx, "acl", "setuser", "default", "-xreadgroup", "-evalsha").Err()
			},
			func(ctx context.Context, c *redis.Conn) error {
				return c.Do(ctx, "acl", "setuser", "default", "+@all").Err()
			}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := siteOn(t, redistest.Start(t))
			var runs calls
			var down, up atomic.Int32
			c := s.open(xstreamq.WithHooks(xstreamq.Hooks{Connection: func(_ context.Context, ok bool, err error) {
				if ok {
					up.Add(1)
				} else if down.Add(1); err == nil {
					t.Error("the connection hook has no reason")
				}
			}}))
			hold := make(chan struct{})
			begun := make(chan struct{}, 100)
			s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
				runs.add(m.ID)
				if m.Attempt != 1 {
					t.Errorf("message %s came with attempt %d", m.ID, m.Attempt)
				}
				begun <- struct{}{}
				<-hold
				return nil
			}, xstreamq.VisibilityTimeout(4*time.Second), xstreamq.HandlerTimeout(time.Minute))
			s.start(c)
			ids := s.publish(1, 3)
			receive(t, begun, 3, "handlers")
			conn := s.rdb.(*redis.Client).Conn()
			defer func() { _ = conn.Close() }()
			if err := lever.down(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
			close(hold) // their acks meet the refusal
			published := make(chan error, 1)
			go func() {
				p, err := s.queue(c).Publish(t.Context(), order{4})
				ids = append(ids, p.ID)
				published <- err
			}()
			time.Sleep(1500 * time.Millisecond)
			if down.Load() == 0 {
				t.Error("the connection hook was not told")
			}
			if err := lever.up(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
			err := receiveOne(t, published, "the publish")
			switch {
			case lever.published && err != nil:
				t.Errorf("publish: %v", err)
			case name == "max clients" && err == nil: // it came by when a place was free
			case !lever.published && !errors.Is(err, xstreamq.ErrAuth) && !errors.Is(err, xstreamq.ErrUncertain):
				t.Errorf("publish: %v, want ErrAuth, or ErrUncertain where it was on the wire", err)
			case err != nil:
				ids[3] = s.publish(4, 4)[0]
			}
			s.within(5*time.Second, func() bool { return runs.distinct() == 4 && s.load() == load{} }, "all handled and acked")
			runs.each(t, ids, 1)
			s.eventually(func() bool { return up.Load() > 0 }, "the connection hook is told of the end")
			if n := s.log.count(); n > 12 {
				t.Errorf("%d lines were logged:\n%s", n, s.log)
			}
		})
	}
}

// addrOf is the address of the server behind a connection.
func addrOf(ctx context.Context, c *redis.Conn) string {
	return "127.0.0.1:" + c.ConfigGet(ctx, "port").Val()["port"]
}

// A connection whose other end is gone without a word is noticed by the read's own deadline.
func TestHalfOpenConnection(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	s := siteOn(t, srv)
	p := newProxy(t, srv.Addr())
	s.url = "redis://" + p.addr()
	got := make(chan int, 1)
	c := s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil })
	s.publish(1, 1)
	receiveOne(t, got, "delivery")
	s.settled()
	p.freeze()
	s.publish(2, 2)
	looks := make(chan xstreamq.Health, 100)
	go func() {
		defer close(looks)
		for len(got) == 0 && t.Context().Err() == nil {
			looks <- c.Health(t.Context()) // each waits for an answer, 800 ms at most
		}
	}()
	s.within(7*time.Second, func() bool { return len(got) > 0 }, "the worker reads on a new connection")
	red := 0
	for h := range looks { // one that finds a connection which is not dead may be green, until the read is overdue
		if !h.Healthy {
			red++
		}
	}
	if red == 0 {
		t.Error("no look was red")
	}
	s.within(5*time.Second, func() bool { return c.Health(t.Context()).Healthy }, "green again")
	s.settled()
}

// proxy forwards connections to a server; frozen ones stay open and forward nothing more.
type proxy struct {
	l     net.Listener
	mu    sync.Mutex
	gates []chan struct{}
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l}
	var conns []net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		p.freeze()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // closed with the test
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			frozen := make(chan struct{})
			p.mu.Lock()
			p.gates = append(p.gates, frozen)
			conns = append(conns, in, out)
			p.mu.Unlock()
			go forward(in, out, frozen)
			go forward(out, in, frozen)
		}
	}()
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

// freeze stops all connections there are.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.gates {
		close(g)
	}
	p.gates = nil
}

func forward(to, from net.Conn, frozen <-chan struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-frozen:
			return // and the connections stay open
		default:
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			_ = from.Close()
			return
		}
	}
}

// A dead-letter key of the wrong type keeps its messages pending, names itself, and holds up nobody else.
func TestWrongTypeOfDeadLetters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.rdb.Set(t.Context(), s.keys.DLQ, "oops", 0).Err(); err != nil {
		t.Fatal(err)
	}
	good := make(chan int, 10)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID <= 2 {
			return errors.New("no")
		}
		good <- m.Body.ID
		return nil
	}, xstreamq.MaxRetries(0))
	s.publish(1, 5)
	receive(t, good, 3, "the others")
	s.eventually(func() bool {
		return strings.Contains(s.log.String(), "WRONGTYPE") && strings.Contains(s.log.String(), s.keys.DLQ)
	}, "the log names the key")
	s.eventually(func() bool { return s.load().pending == 2 }, "the two stay pending, the others are acked")
	if err := s.rdb.Del(t.Context(), s.keys.DLQ).Err(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(bodies(t, s.dead(2))); got != "[1 2]" {
		t.Errorf("dead are %s", got)
	}
	s.settled()
}

// A key of the wrong type where retries are parked keeps failures pending; it names itself, and all else goes on.
func TestWrongTypeOfParked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.rdb.Set(t.Context(), s.keys.Parked, "oops", 0).Err(); err != nil {
		t.Fatal(err)
	}
	good := make(chan int, 10)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID <= 2 && m.Attempt == 1 {
			return errors.New("no")
		}
		good <- m.Body.ID
		return nil
	})
	s.publish(1, 5)
	receive(t, good, 3, "the others")
	s.eventually(func() bool { return strings.Contains(s.log.String(), s.keys.Parked) }, "the log names the key")
	if err := s.rdb.Del(t.Context(), s.keys.Parked).Err(); err != nil {
		t.Fatal(err)
	}
	receive(t, good, 2, "the failures' second attempts")
	s.settled()
}

// A pause flag and delayed messages of another type stop neither retries nor takeovers; the log names the keys.
func TestWrongTypeOfPauseAndDelayed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	must(t, s.rdb.RPush(t.Context(), s.keys.Paused, "oops").Err())
	must(t, s.rdb.Set(t.Context(), s.keys.Stream.Due, "oops", 0).Err())
	s.publish(1, 1)
	must(t, s.rdb.XGroupCreate(t.Context(), s.keys.Main, "svc", "0").Err())
	must(t, s.rdb.Do(t.Context(), "xreadgroup", "group", "svc", "ghost", "streams", s.keys.Main, ">").Err())
	must(t, s.rdb.HSet(t.Context(), s.keys.Workers, "ghost", "1000|1|1|live|").Err())
	good := make(chan int, 10)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID == 2 && m.Attempt == 1 {
			return errFailed
		}
		good <- m.Body.ID
		return nil
	})
	s.publish(2, 2)
	receive(t, good, 2, "the ghost's, and the failure's second attempt")
	s.settled()
	s.eventually(func() bool { return strings.Contains(s.log.String(), s.keys.Stream.Due) }, "the log names the key")
}

// A retry key of another type keeps only what failed waiting: new messages go on, the log names the key.
func TestWrongTypeOfRetries(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	good := make(chan int, 10)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID == 1 && m.Attempt == 1 {
			return errors.New("no")
		}
		good <- m.Body.ID
		return nil
	})
	if err := s.rdb.Set(t.Context(), s.keys.Retry, "oops", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.publish(1, 3)
	receive(t, good, 2, "those that did not fail")
	s.eventually(func() bool { return strings.Contains(s.log.String(), s.keys.Retry) }, "the log names the key")
	if err := s.rdb.Del(t.Context(), s.keys.Retry).Err(); err != nil {
		t.Fatal(err)
	}
	receive(t, good, 1, "the one that failed")
	s.settled()
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

// A consumer whose record is gone is void: its handlers are told, and it goes on under another name.
func TestRecordLost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opt, ends := watching()
	lost := make(chan string, 5)
	c := s.open(opt, xstreamq.WithHooks(xstreamq.Hooks{LeaseLost: func(_ context.Context, d *xstreamq.Delivery) { lost <- d.ID }}))
	begun := make(chan *xstreamq.Message[order], 10)
	causes := make(chan error, 1)
	var first atomic.Bool
	s.subscribe(c, func(ctx context.Context, m *xstreamq.Message[order]) error {
		begun <- m
		if first.CompareAndSwap(false, true) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			if err := m.Extend(context.Background(), time.Minute); !errors.Is(err, xstreamq.ErrLeaseExpired) {
				t.Errorf("Extend: %v", err)
			}
			return errors.New("a stale failure")
		}
		return nil
	})
	s.start(c)
	id := s.publish(1, 1)[0]
	receiveOne(t, begun, "handler")
	name := s.rdb.HKeys(t.Context(), s.keys.Workers).Val()[0]
	if err := s.rdb.HDel(t.Context(), s.keys.Workers, name).Err(); err != nil {
		t.Fatal(err)
	}
	if err := receiveOne(t, causes, "the handler is told"); !errors.Is(err, xstreamq.ErrLeaseExpired) {
		t.Errorf("cause %v", err)
	}
	if got := receiveOne(t, lost, "the hook"); got != id {
		t.Errorf("the hook was told of %s", got)
	}
	if m := receiveOne(t, begun, "the message again"); m.ID != id || m.Attempt != 1 || m.Lost != 0 {
		t.Errorf("again as %+v", m)
	}
	s.publish(2, 2)
	receiveOne(t, begun, "a new message")
	s.settled()
	for i, e := range receive(t, ends, 3, "ends") {
		if want := []xstreamq.Outcome{"lost", "acked", "acked"}[i]; e.outcome != want {
			t.Errorf("end %d: %+v", i, e)
		}
	}
	for _, n := range s.rdb.HKeys(t.Context(), s.keys.Workers).Val() {
		if n == name {
			t.Errorf("it goes on as %s", n)
		}
	}
}

// A message that others deleted while it ran is not lost when it fails: it is parked from memory.
func TestDeletedWhileItRan(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun, release := make(chan *xstreamq.Message[order], 10), make(chan struct{})
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		begun <- m
		<-release
		if m.Attempt == 1 {
			return errors.New("no")
		}
		return nil
	})
	id := s.add("body", `{"id":1}`, "tenant", "x")
	receiveOne(t, begun, "handler")
	if err := s.rdb.XDel(t.Context(), s.keys.Main, id).Err(); err != nil {
		t.Fatal(err)
	}
	close(release)
	if m := receiveOne(t, begun, "its second attempt"); m.ID != id || m.Attempt != 2 || m.Body.ID != 1 {
		t.Errorf("%+v", m)
	}
	s.settled()
}

// What a consumer of nobody's holds is taken over; what a live one holds is not, however idle it looks.
func TestForeignConsumersAndIdleTimes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun, release := make(chan *xstreamq.Message[order], 20), make(chan struct{})
	var runs calls
	handler := func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		begun <- m
		<-release
		return nil
	}
	opts := []xstreamq.SubscribeOption{xstreamq.VisibilityTimeout(time.Second), xstreamq.HandlerTimeout(time.Minute)}
	s.worker(handler, opts...)
	s.worker(handler, opts...)
	ids := s.publish(1, 4)
	receive(t, begun, 4, "handlers")
	for _, p := range s.rdb.XPendingExt(t.Context(), &redis.XPendingExtArgs{Stream: s.keys.Main, Group: "svc", Start: "-", End: "+", Count: 10}).Val() {
		if err := s.rdb.Do(t.Context(), "xclaim", s.keys.Main, "svc", p.Consumer, 0, p.ID, "idle", 3600000, "retrycount", "9223372036854775807", "justid").Err(); err != nil {
			t.Fatal(err)
		}
	}
	pipe := s.rdb.TxPipeline() // read by a ghost before any worker can
	ghost := pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.Main, Values: []string{"body", `{"id":5}`}})
	pipe.Do(t.Context(), "xreadgroup", "group", "svc", "ghost", "streams", s.keys.Main, ">")
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := receiveOne(t, begun, "the ghost's message"); m.ID != ghost.Val() || m.Lost != 1 || m.Attempt != 1 {
		t.Errorf("%+v", m)
	}
	silent(t, begun, 500*time.Millisecond, "live work was taken")
	close(release)
	s.settled()
	runs.each(t, append(ids, ghost.Val()), 1)
}

// A parked failure whose due time was lost is found again.
func TestLostDueTime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	again := make(chan int, 1)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Attempt == 1 {
			return xstreamq.RetryAfter(time.Hour, errors.New("later"))
		}
		again <- m.Attempt
		return nil
	})
	s.publish(1, 1)
	s.parkedOnly()
	if err := s.rdb.Del(t.Context(), s.keys.Due).Err(); err != nil {
		t.Fatal(err)
	}
	receiveOne(t, again, "the failure is due")
	s.settled()
}
