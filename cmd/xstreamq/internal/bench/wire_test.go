package bench

import (
	"net"
	"testing"
)

// A string may look like a command, and a write may end anywhere.
func TestCountingCommands(t *testing.T) {
	t.Parallel()
	const sent = "*2\r\n$4\r\nPING\r\n$5\r\n*9\r\n*\r\n*1\r\n$0\r\n\r\n*1\r\n$4\r\nTIME\r\n"
	for size := 1; size <= len(sent); size++ {
		var c counter
		conn := &counting{c: &c}
		for at := 0; at < len(sent); at += size {
			conn.read([]byte(sent[at:min(len(sent), at+size)]))
		}
		if got := c.commands.Load(); got != 3 {
			t.Errorf("writes of %d bytes: %d commands, want 3", size, got)
		}
	}
	var _ net.Conn = (*counting)(nil)
}
