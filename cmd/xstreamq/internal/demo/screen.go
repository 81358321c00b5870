package demo

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// screen prints what happens, with the time since the start. On a terminal a status line stays at the bottom; elsewhere
// the status is a line of its own every second.
type screen struct {
	mu     sync.Mutex
	w      io.Writer
	live   bool
	start  time.Time
	status string
}

func newScreen(w io.Writer, live bool) *screen { return &screen{w: w, live: live, start: time.Now()} }

func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("%5.1fs  ", time.Since(s.start).Seconds()) + fmt.Sprintf(format, args...)
	if !s.live {
		fmt.Fprintln(s.w, line)
		return
	}
	fmt.Fprintf(s.w, "\r\x1b[K%s\n%s", line, s.status)
}

// A status line wider than the terminal is cut off: what wraps cannot be drawn over, and would fill the screen.
const (
	noWrap = "\x1b[?7l"
	wrap   = "\x1b[?7h"
)

// watch shows status until ctx ends.
func (s *screen) watch(ctx context.Context, status func(context.Context) string) {
	every := time.Second
	if s.live {
		every = 200 * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		line := status(ctx)
		switch {
		case line == "" || ctx.Err() != nil:
		case s.live:
			s.mu.Lock()
			s.status = "  " + noWrap + line + wrap
			fmt.Fprintf(s.w, "\r\x1b[K%s", s.status)
			s.mu.Unlock()
		default:
			s.say("%s", line)
		}
	}
}

// end takes the status line away.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
	s.status, s.live = "", false
}
