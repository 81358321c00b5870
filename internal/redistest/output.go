//go:build unix

package redistest

import (
	"bytes"
	"strings"
	"sync"
)

// output keeps the last lines a server printed, for the message of a test that
// fails, and closes ready when the server says that it listens. The server's own
// word is better than a PING: another process may have taken the port and answer.
type output struct {
	mu    sync.Mutex
	part  []byte
	lines []string
	ready chan struct{}
	said  bool
}

const keptLines = 40

func newOutput() *output { return &output{ready: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, p...)
	for {
		line, rest, found := bytes.Cut(o.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		o.add(string(line))
		o.part = rest
	}
}

func (o *output) add(line string) {
	if o.lines = append(o.lines, line); len(o.lines) > keptLines {
		o.lines = o.lines[1:]
	}
	if !o.said && (strings.Contains(line, "Ready to accept connections") || strings.Contains(line, "Sentinel ID is")) {
		o.said = true
		close(o.ready)
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines, "\n") + "\n" + string(o.part)
}
