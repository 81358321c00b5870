package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo gives back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // until either end is closed
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a byte and waits for it.
func ask(c net.Conn, within time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

func start(t *testing.T) *Proxy {
	t.Helper()
	p, err := Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

const soon = 5 * time.Second

func TestCut(t *testing.T) {
	t.Parallel()
	p := start(t)
	c := dial(t, p)
	if err := ask(c, soon); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := ask(c, soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a cut connection: %v", err)
	}
	if err := ask(dial(t, p), soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection while cut: %v", err)
	}
	p.Mend()
	if err := ask(dial(t, p), soon); err != nil {
		t.Errorf("mended: %v", err)
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	p := start(t)
	c := dial(t, p)
	p.Slow(50 * time.Millisecond)
	began := time.Now()
	if err := ask(c, soon); err != nil || time.Since(began) < 100*time.Millisecond {
		t.Errorf("%v after %v, want both ways 50 ms late", err, time.Since(began))
	}
	p.Mend()
	began = time.Now()
	for range 3 {
		if err := ask(c, soon); err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > 100*time.Millisecond {
		t.Errorf("mended, and three answers took %v", took)
	}
}

func TestHole(t *testing.T) {
	t.Parallel()
	p := start(t)
	c := dial(t, p)
	if err := ask(c, soon); err != nil {
		t.Fatal(err)
	}
	p.Hole()
	if err := ask(c, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an old connection: %v, want silence", err)
	}
	if err := ask(dial(t, p), 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection: %v, want silence", err)
	}
	p.Mend()
	if err := ask(c, soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the old connection, mended: %v, want its end", err)
	}
	if err := ask(dial(t, p), soon); err != nil {
		t.Errorf("a new connection, mended: %v", err)
	}
}

// No connection of a client outlives its own end, and none of the proxy its Close.
func TestEnds(t *testing.T) {
	t.Parallel()
	p := start(t)
	c := dial(t, p)
	if err := ask(c, soon); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(soon); p.Conns() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the closed connection is kept")
		}
	}
	c = dial(t, p)
	if err := ask(c, soon); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if err := ask(c, soon); err == nil {
		t.Error("a connection outlived the proxy")
	}
}
