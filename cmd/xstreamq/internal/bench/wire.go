package bench

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// counter counts the commands that a client's connections send: those of its blocking reads too, which no hook sees.
type counter struct{ commands atomic.Int64 }

// watch looks at what goes through the connections that u makes, before it is encrypted.
func (c *counter) watch(u *redis.UniversalOptions) {
	dial := u.Dialer
	if dial == nil {
		dial = redis.NewDialer(u.Simple())
	}
	u.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &counting{Conn: conn, c: c}, nil
	}
}

// counting is one connection, which counts arrays at the top of what is written. A write may end anywhere.
type counting struct {
	net.Conn
	c    *counter
	rest []byte // of a line that is not whole yet
	skip int    // bytes of a string still to come
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.read(p[:n])
	return n, err
}

func (c *counting) read(p []byte) {
	for len(p) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(p))
			c.skip, p = c.skip-n, p[n:]
			continue
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			c.rest = append(c.rest, p...)
			return
		}
		c.rest = append(c.rest, p[:end]...)
		line := c.rest
		p, c.rest = p[end+1:], c.rest[:0]
		switch {
		case len(line) > 0 && line[0] == '*':
			c.c.commands.Add(1)
		case len(line) > 1 && line[0] == '$':
			n, _ := strconv.Atoi(string(bytes.TrimSuffix(line[1:], []byte("\r")))) // what go-redis writes is well formed
			c.skip = n + 2
		}
	}
}
