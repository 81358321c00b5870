// Package resp speaks Redis' wire protocol (RESP2) over a plain connection, for what must not depend on the library under
// test nor on its client: the producer, and the hand that injects faults and reads the end.
package resp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Error is an error reply: the server refused, and the connection goes on.
type Error string

func (e Error) Error() string { return string(e) }

// Conn is one connection; not safe for concurrent use. After an error that is no Error it is of no more use.
type Conn struct {
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
}

// Dial connects within the timeout.
func Dial(addr string, timeout time.Duration) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, fmt.Errorf("resp: %w", err)
	}
	return &Conn{conn: c, r: bufio.NewReader(c), w: bufio.NewWriter(c)}, nil
}

// Close hangs up.
func (c *Conn) Close() { c.conn.Close() }

// Deadline is until when everything that follows must be through.
func (c *Conn) Deadline(t time.Time) error { return c.conn.SetDeadline(t) }

// Send puts a command in the buffer.
func (c *Conn) Send(args ...string) {
	fmt.Fprintf(c.w, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(c.w, "$%d\r\n%s\r\n", len(a), a)
	}
}

// Flush sends what is in the buffer.
func (c *Conn) Flush() error { return c.w.Flush() }

// Receive reads one reply: string, int64, nil, []any or Error (as a value inside of arrays, else as the error).
func (c *Conn) Receive() (any, error) {
	v, err := c.read()
	if err != nil {
		return nil, fmt.Errorf("resp: %w", err)
	}
	if e, ok := v.(Error); ok {
		return nil, e
	}
	return v, nil
}

func (c *Conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("reply %q", line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return Error(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reply %q: %w", line, err)
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0 && (kind == '$' || kind == '*'):
		return nil, nil
	case kind == '$':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, b); err != nil {
			return nil, err
		}
		return string(b[:n]), nil
	case kind == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = c.read(); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("reply %q", line)
}

// Do sends one command and reads its reply within the timeout.
func (c *Conn) Do(timeout time.Duration, args ...string) (any, error) {
	if err := c.Deadline(time.Now().Add(timeout)); err != nil {
		return nil, fmt.Errorf("resp: %w", err)
	}
	c.Send(args...)
	if err := c.Flush(); err != nil {
		return nil, fmt.Errorf("resp: %w", err)
	}
	return c.Receive()
}

// Once connects, runs one command and hangs up.
func Once(addr string, timeout time.Duration, args ...string) (any, error) {
	c, err := Dial(addr, timeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(timeout, args...)
}
