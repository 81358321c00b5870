package conn

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func newReader(t *testing.T, rdb redis.UniversalClient, changed func()) *Reader {
	t.Helper()
	r, err := NewReader(t.Context(), rdb, "k", changed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// block is a read that the server answers after two seconds, and how long it took.
func block(r *Reader, key string) (time.Duration, error) {
	start := time.Now()
	err := r.Process(context.Background(), redis.NewCmd(context.Background(), "blpop", key, 2))
	return time.Since(start), err
}

// A blocked read is woken at once, as often as it takes; an unblock that comes when nothing is blocked does no harm.
func TestUnblock(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	r := newReader(t, rdb, nil)
	key := redistest.Prefix(t) + "list"
	r.Unblock(t.Context()) // no connection yet
	if err := r.Process(t.Context(), redis.NewCmd(t.Context(), "ping")); err != nil {
		t.Fatal(err)
	}
	r.Unblock(t.Context()) // nothing blocked
	for range 2 {
		out := make(chan time.Duration, 1)
		go func() {
			took, err := block(r, key)
			if !errors.Is(err, redis.Nil) {
				t.Errorf("the read came back with %v", err)
			}
			out <- took
		}()
		tick := time.NewTicker(20 * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case took := <-out:
				if took > time.Second {
					t.Errorf("woken after %v", took)
				}
				waiting = false
			case <-tick.C:
				r.Unblock(t.Context())
			}
		}
		tick.Stop()
	}
	if r.BlockFor() != Block {
		t.Errorf("reads block for %v, want %v", r.BlockFor(), Block)
	}
}

// Where a read cannot be woken it blocks shortly.
func TestBlockShortlyWithoutClientID(t *testing.T) {
	t.Parallel()
	r := newReader(t, redistest.Start(t, "--rename-command", "CLIENT", "").Client(t), nil)
	if err := r.Process(t.Context(), redis.NewCmd(t.Context(), "ping")); err != nil {
		t.Fatal(err)
	}
	if r.BlockFor() >= Block {
		t.Errorf("reads block for %v", r.BlockFor())
	}
}

// A server that stands still does not hold a read longer than the client's own deadline, whatever the borrowed options say.
func TestDeadline(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), ReadTimeout: -1, WriteTimeout: -1, MaxRetries: 5})
	t.Cleanup(func() { _ = rdb.Close() })
	r := newReader(t, rdb, nil)
	if err := r.Process(t.Context(), redis.NewCmd(t.Context(), "ping")); err != nil {
		t.Fatal(err)
	}
	srv.Pause()
	defer srv.Resume()
	took, err := block(r, "k")
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() || took < Block || took > Deadline+time.Second {
		t.Errorf("a read of a frozen server came back after %v with %v", took, err)
	}
}

// Another process behind the same address is noticed, a mere reconnect is none.
func TestChanged(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	var changed atomic.Int32
	r := newReader(t, rdb, func() { changed.Add(1) })
	again := func() {
		t.Helper()
		redistest.Eventually(t, 5*time.Second, func() bool {
			return r.Process(t.Context(), redis.NewCmd(t.Context(), "ping")) == nil
		}, "a connection")
	}
	again()
	first := r.id.Load()
	if err := rdb.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, 5*time.Second, func() bool {
		_ = r.Process(t.Context(), redis.NewCmd(t.Context(), "ping")) // the first one may meet the dead connection
		return r.id.Load() != first
	}, "a new connection")
	if changed.Load() != 0 {
		t.Error("a reconnect to the same server counts as a change")
	}
	srv.Restart(t)
	again()
	if changed.Load() != 1 {
		t.Errorf("told of %d changes after a restart, want 1", changed.Load())
	}
}

// The copy shares nothing with its original that either could trip over, and keeps what a user set.
func TestCopiedOptions(t *testing.T) {
	t.Parallel()
	var connected atomic.Int32
	rdb := redis.NewClient(&redis.Options{
		Addr: redistest.Shared(t).Addr(), DB: 3, PoolSize: 50, MinIdleConns: 5, ClientName: "mine",
		OnConnect:                func(context.Context, *redis.Conn) error { connected.Add(1); return nil },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeAuto},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	rdb.Options().MaintNotificationsConfig.Mode = maintnotifications.ModeEnabled // a copy of it would panic
	r := newReader(t, rdb, nil)
	before := connected.Load()
	cmd := redis.NewCmd(t.Context(), "client", "info")
	if err := r.Process(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	o := r.client.Options()
	if o.DB != 3 || o.ClientName != "mine" || o.PoolSize != 1 || o.MinIdleConns != 0 || o.MaxRetries != 0 || connected.Load() == before {
		t.Errorf("options %+v, user's OnConnect ran %d times", o, connected.Load()-before)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{})
	t.Cleanup(func() { _ = ring.Close() })
	for _, c := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), ring} {
		if err := Check(c); !errors.Is(err, ErrUnsupportedClient) {
			t.Errorf("%T: %v", c, err)
		}
		if c == ring {
			if _, err := NewReader(t.Context(), c, "k", nil); !errors.Is(err, ErrUnsupportedClient) {
				t.Errorf("a reader for %T: %v", c, err)
			}
		}
	}
}
