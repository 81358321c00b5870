package redistest_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestStartIsPrivate(t *testing.T) {
	t.Parallel()
	a, b := redistest.Start(t), redistest.Start(t, "--maxmemory", "64mb")
	if a.Addr() == b.Addr() || a.PID() == b.PID() || a.PID() == 0 {
		t.Fatalf("two servers: %s pid %d, %s pid %d", a.Addr(), a.PID(), b.Addr(), b.PID())
	}
	if got := b.Client(t).ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; got != "67108864" {
		t.Errorf("maxmemory = %q: the extra arguments did not reach the server", got)
	}
	if u, err := url.Parse(a.URL()); err != nil || u.Scheme != "redis" || u.Host != a.Addr() {
		t.Errorf("URL %q, address %q, %v", a.URL(), a.Addr(), err)
	}
	if info := a.Client(t).Info(t.Context(), "server").Val(); !strings.Contains(info, "tcp_port:"+portOf(a)) {
		t.Errorf("another server answers at %s:\n%s", a.Addr(), info)
	}
}

func portOf(s *redistest.Server) string { return s.Addr()[strings.LastIndexByte(s.Addr(), ':')+1:] }

func TestBadArgumentFailsWithTheServersWords(t *testing.T) {
	t.Parallel()
	got := failureOf(t, func(tb testing.TB) { redistest.Start(tb, "--no-such-setting", "1") })
	wantText(t, "the failure", got, "the server ended", "no-such-setting")
}

func TestServerEndsWithItsTest(t *testing.T) {
	t.Parallel()
	var addr, dir string
	t.Run("inner", func(t *testing.T) {
		s := redistest.Start(t)
		addr, dir = s.Addr(), s.Client(t).ConfigGet(t.Context(), "dir").Val()["dir"]
		s.Pause() // a test may end with its server frozen
	})
	if listens(addr) {
		t.Errorf("%s still listens after its test", addr)
	}
	if _, err := os.Stat(dir); !strings.Contains(filepath.Base(dir), "xstreamq-redis-") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory %q after the test: %v, want it gone", dir, err)
	}
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{false, true} {
		appendonly := map[bool]string{false: "no", true: "yes"}[keeps]
		s := redistest.Start(t, "--appendonly", appendonly, "--appendfsync", "always")
		addr, pid, c := s.Addr(), s.PID(), s.Client(t)
		if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		s.Kill()
		if listens(addr) || s.PID() != 0 {
			t.Errorf("killed, but listening = %v, pid %d", listens(addr), s.PID())
		}
		s.Kill() // of a dead server: nothing to do
		s.Restart(t)
		if s.Addr() != addr || s.PID() == pid {
			t.Errorf("restarted: %s pid %d, before %s pid %d", s.Addr(), s.PID(), addr, pid)
		}
		if n, err := c.Exists(t.Context(), "k").Result(); err != nil || (n == 1) != keeps {
			t.Errorf("appendonly %s: the key is there %d times, %v", appendonly, n, err)
		}
		s.Restart(t) // of a running one
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); !errors.Is(err, context.DeadlineExceeded) && !os.IsTimeout(err) {
		t.Errorf("PING of a paused server: %v, want a timeout", err)
	}
	s.Resume()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING of the resumed server: %v", err)
	}
	s.Kill()
	func() {
		defer func() {
			if p, _ := recover().(string); !strings.Contains(p, "does not run") {
				t.Errorf("Pause of a killed server: panic %q", p)
			}
		}()
		s.Pause()
	}()
}

// Start tries another port when one is taken between choice and bind; it knows that
// by the server's words, which are pinned here.
func TestTakenPortIsNamed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill()
	l, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	got := failureOf(t, func(tb testing.TB) { s.Restart(tb) })
	wantText(t, "the failure", got, "Address already in use", portOf(s))
}
