package xstreamq_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

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
