package server

import (
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

func begin(t *testing.T, args ...string) *Server {
	t.Helper()
	s, err := Start(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Kill(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func do(t *testing.T, s *Server, args ...string) any {
	t.Helper()
	v, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

func TestKillAndLaunch(t *testing.T) {
	t.Parallel()
	s := begin(t, "--appendonly", "yes", "--appendfsync", "always")
	do(t, s, "SET", "k", "v")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do("PING"); err == nil {
		t.Fatal("a killed server answers")
	}
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	if v := do(t, s, "GET", "k"); v != "v" {
		t.Errorf("after the restart k is %v", v)
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	s := begin(t)
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	_, err := resp.Once(s.Addr(), 100*time.Millisecond, "PING")
	if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
		t.Errorf("a frozen server: %v, want silence", err)
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	do(t, s, "PING")
}

// Forget takes back what was appended since, and no more.
func TestForget(t *testing.T) {
	t.Parallel()
	s := begin(t, "--appendonly", "yes", "--appendfsync", "everysec")
	s.WatchFiles()
	defer s.Unwatch()
	do(t, s, "SET", "early", "1")
	time.Sleep(6 * sizeEvery) // what is to stay is older than the moment that is gone back to
	since := time.Now()
	time.Sleep(2 * sizeEvery)
	for i := range 100 {
		do(t, s, "SET", "late"+strconv.Itoa(i), "1")
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if cut, err := s.Forget(since); err != nil || cut == 0 {
		t.Fatalf("%d bytes cut, %v", cut, err)
	}
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	if v := do(t, s, "GET", "early"); v != "1" {
		t.Errorf("early is %v", v)
	}
	if v := do(t, s, "DBSIZE"); v != int64(1) {
		t.Errorf("%v keys, want 1", v)
	}
}

func TestDoesNotStart(t *testing.T) {
	t.Parallel()
	if s, err := Start(t.TempDir(), "--no-such-option", "1"); err == nil {
		_ = s.Kill() // it should not be there
		t.Error("a server that cannot start")
	}
}
