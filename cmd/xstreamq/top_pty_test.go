//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/redis/go-redis/v9"
	"golang.org/x/term"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/redisproc"
)

// screen is the command on a pseudo-terminal, and what a terminal would show of it.
type screen struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File // kept open to look at its modes
	before *term.State

	mu     sync.Mutex
	vt     *vt.Emulator
	raw    strings.Builder
	exited chan error
}

// onTerminal runs xstreamq on a terminal of w columns and h lines.
func onTerminal(t *testing.T, w, h int, env []string, args ...string) *screen {
	t.Helper()
	master, slave, err := pty.Open()
	must(t, err)
	must(t, pty.Setsize(master, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}))
	before, err := term.GetState(int(slave.Fd()))
	must(t, err)
	s := &screen{t: t, master: master, slave: slave, before: before, vt: vt.NewEmulator(w, h), exited: make(chan error, 1)}
	s.cmd = exec.Command("xstreamq", args...)
	s.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR="), env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, s.cmd.Start())
	go func() { s.exited <- s.cmd.Wait() }()
	go func() { _, _ = io.Copy(master, s.vt) }() // what a terminal answers when it is asked for what it can
	go func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := master.Read(buf)
			s.mu.Lock()
			s.raw.Write(buf[:n])
			_, _ = s.vt.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_, _ = slave.Close(), master.Close()
	})
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vt.String()
}

func (s *screen) bytes() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// until waits for what the screen shows to be as ok wants it.
func (s *screen) until(what string, ok func(string) bool) {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(s.text()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not within 60 s; the screen:\n%s", what, s.text())
		}
	}
}

func (s *screen) shows(want string) {
	s.t.Helper()
	s.until(want, func(text string) bool { return strings.Contains(text, want) })
}

func (s *screen) hides(what string) {
	s.t.Helper()
	s.until("without "+what, func(text string) bool { return !strings.Contains(text, what) })
}

func (s *screen) press(keys string) {
	s.t.Helper()
	_, err := s.master.WriteString(keys)
	must(s.t, err)
}

// ends waits for exit code 0 and looks whether the terminal is as it was.
func (s *screen) ends() {
	s.t.Helper()
	select {
	case err := <-s.exited:
		if err != nil {
			s.t.Fatalf("ended with %v; the screen:\n%s", err, s.text())
		}
	case <-time.After(30 * time.Second):
		s.t.Fatalf("did not end; the screen:\n%s", s.text())
	}
	after, err := term.GetState(int(s.slave.Fd()))
	must(s.t, err)
	if fmt.Sprint(after) != fmt.Sprint(s.before) {
		s.t.Errorf("the terminal's modes are %v, they were %v", after, s.before)
	}
	s.until("the main screen and the cursor back", func(string) bool {
		raw := s.bytes()
		return strings.LastIndex(raw, "\x1b[?1049l") > strings.LastIndex(raw, "\x1b[?1049h") &&
			strings.LastIndex(raw, "\x1b[?25h") > strings.LastIndex(raw, "\x1b[?25l")
	})
}

func queueServer(t *testing.T) *redisproc.Server {
	t.Helper()
	s, err := redisproc.Start()
	must(t, err)
	t.Cleanup(s.Stop)
	return s
}

// fill makes groups of every kind: on stream orders two groups, on jobs one that is paused.
func fill(t *testing.T, url string) *xstreamq.Client {
	t.Helper()
	ctx := context.Background()
	c, err := xstreamq.Open(url)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	for stream, groups := range map[string][]string{"orders": {"billing", "search"}, "jobs": {"mail"}} {
		for _, g := range groups {
			_, err := c.Admin().Group(stream, g).Create(ctx, xstreamq.Head)
			must(t, err)
		}
	}
	bodies := make([]int, 42)
	_, err = xstreamq.NewQueue[int](c, "orders").PublishBatch(ctx, bodies)
	must(t, err)
	return c
}

func TestTopDrawsAndReacts(t *testing.T) {
	t.Parallel()
	server := queueServer(t)
	fill(t, server.URL())
	s := onTerminal(t, 80, 24, nil, "top", "-u", server.URL(), "--interval", "500ms")
	s.shows("STREAMv")
	s.shows("DEAD")
	s.until("a lag of 42", func(text string) bool {
		return strings.Contains(line(text, "billing"), " 42 ")
	})
	if text := s.text(); strings.Index(text, "jobs") > strings.Index(text, "orders") {
		t.Errorf("not by name:\n%s", text)
	}
	for l := range strings.SplitSeq(s.text(), "\n") {
		if len(l) > 80 && len([]rune(l)) > 80 {
			t.Errorf("a line of more than 80 columns: %q", l)
		}
	}
	s.press("sss")
	s.shows("LAGv")
	if text := s.text(); strings.Index(text, "jobs") < strings.Index(text, "orders") {
		t.Errorf("not by lag:\n%s", text)
	}
	s.press("r")
	s.shows("LAG^")
	s.press("/bil")
	s.hides("search")
	s.shows("filter: bil_")
	s.press("\r")
	s.shows("1 of 3 groups")
	s.press("\x1b")
	s.shows("3 of 3 groups")
	s.press("?")
	s.shows("handled a second")
	s.press("?")
	s.shows("q quit")
	s.press("p")
	s.shows("refresh is paused")
	s.press("p")
	s.hides("refresh is paused")
	s.press("q")
	s.ends()
}

// line is the first line that has s in it.
func line(text, s string) string {
	for l := range strings.Lines(text) {
		if strings.Contains(l, s) {
			return l
		}
	}
	return ""
}

func TestTopShowsRates(t *testing.T) {
	t.Parallel()
	server := queueServer(t)
	c := fill(t, server.URL())
	s := onTerminal(t, 100, 10, nil, "top", "-u", server.URL(), "--interval", "500ms", "--sort", "in")
	s.shows("IN/sv")
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	q := xstreamq.NewQueue[int](c, "orders")
	go func() {
		for ctx.Err() == nil {
			_, _ = q.Publish(ctx, 1)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	s.until("a rate in", func(text string) bool {
		var in float64
		f := strings.Fields(line(text, "billing"))
		if len(f) < 3 {
			return false
		}
		_, _ = fmt.Sscan(f[2], &in)
		return in > 1
	})
	s.press("\x03")
	s.ends()
}

func TestTopOnATinyTerminal(t *testing.T) {
	t.Parallel()
	server := queueServer(t)
	fill(t, server.URL())
	s := onTerminal(t, 24, 3, nil, "top", "-u", server.URL())
	s.until("a name and its lag", func(text string) bool { return strings.Contains(line(text, "bill"), "42") })
	must(t, pty.Setsize(s.master, &pty.Winsize{Cols: 1, Rows: 1}))
	must(t, s.cmd.Process.Signal(syscall.SIGWINCH))
	s.press("?sr/q\r")
	must(t, pty.Setsize(s.master, &pty.Winsize{Cols: 80, Rows: 24}))
	s.mu.Lock()
	s.vt.Resize(80, 24)
	s.mu.Unlock()
	must(t, s.cmd.Process.Signal(syscall.SIGWINCH))
	s.shows("of 3 groups")
	must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.ends()
}

func TestTopOutlivesTheServersAbsence(t *testing.T) {
	t.Parallel()
	server := queueServer(t)
	fill(t, server.URL())
	s := onTerminal(t, 100, 24, nil, "top", "-u", server.URL(), "--interval", "500ms", "--timeout", "3s")
	s.shows("3 of 3 groups")
	must(t, server.Signal(syscall.SIGSTOP))
	s.shows("no answer for")
	s.shows("the server does not answer")
	s.shows("billing") // the last figures stay
	must(t, server.Signal(syscall.SIGCONT))
	s.hides("answer")
	server.Stop()
	s.shows("the server does not answer")
	again, err := redisproc.StartAt(server.Port)
	must(t, err)
	t.Cleanup(again.Stop)
	s.hides("the server does not answer")
	s.shows("no stream or group is known")
	s.press("q")
	s.ends()
}

func TestTopEscapesNames(t *testing.T) {
	t.Parallel()
	server := queueServer(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	ctx := context.Background()
	must(t, rdb.SAdd(ctx, "xstreamq:registry", `["evil",""]`).Err())
	must(t, rdb.XGroupCreateMkStream(ctx, "{evil}", "\x1b]0;owned\x07\x1b[31mx\n", "0").Err())
	s := onTerminal(t, 120, 10, nil, "top", "--no-color", "-u", server.URL())
	s.shows(`evil`)
	s.shows(`\u001b]0;owned\u0007`)
	s.press("q")
	s.ends()
	for _, bad := range []string{"\x1b]0;owned", "\x1b[31m", "\x1b[7m"} {
		if strings.Contains(s.bytes(), bad) {
			t.Errorf("%q reached the terminal", bad)
		}
	}
}
