package xstreamq_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Connections that are killed again and again lose nothing, fail nothing and lose no lease.
func TestKilledConnections(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	var runs calls
	handler := func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		if m.Attempt != 1 || m.Lost != 0 {
			t.Errorf("message %s came with attempt %d, lost %d", m.ID, m.Attempt, m.Lost)
		}
		time.Sleep(time.Millisecond)
		return nil
	}
	for range 2 {
		s.worker(handler, xstreamq.Concurrency(4))
	}
	var all []string
	for round := range 15 {
		if err := s.rdb.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, s.publish(round*20, round*20+19)...)
		time.Sleep(50 * time.Millisecond)
	}
	s.settled()
	for _, id := range all {
		if runs.by[id] == 0 {
			t.Errorf("message %s was never handled", id)
		}
	}
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
}

// A connection whose other end is gone without a word is noticed by the read's own deadline.
func TestHalfOpenConnection(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	s := siteOn(t, srv)
	p := newProxy(t, srv.Addr())
	s.url = "redis://" + p.addr()
	got := make(chan int, 1)
	c := s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil })
	s.publish(1, 1)
	receiveOne(t, got, "delivery")
	s.settled()
	p.freeze()
	s.publish(2, 2)
	looks := make(chan xstreamq.Health, 100)
	go func() {
		defer close(looks)
		for len(got) == 0 && t.Context().Err() == nil {
			looks <- c.Health(t.Context()) // each waits for an answer, 800 ms at most
		}
	}()
	s.within(7*time.Second, func() bool { return len(got) > 0 }, "the worker reads on a new connection")
	red := 0
	for h := range looks { // one that finds a connection which is not dead may be green, until the read is overdue
		if !h.Healthy {
			red++
		}
	}
	if red == 0 {
		t.Error("no look was red")
	}
	s.within(5*time.Second, func() bool { return c.Health(t.Context()).Healthy }, "green again")
	s.settled()
}

// proxy forwards connections to a server; frozen ones stay open and forward nothing more.
type proxy struct {
	l     net.Listener
	mu    sync.Mutex
	gates []chan struct{}
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l}
	var conns []net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		p.freeze()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // closed with the test
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			frozen := make(chan struct{})
			p.mu.Lock()
			p.gates = append(p.gates, frozen)
			conns = append(conns, in, out)
			p.mu.Unlock()
			go forward(in, out, frozen)
			go forward(out, in, frozen)
		}
	}()
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

// freeze stops all connections there are.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.gates {
		close(g)
	}
	p.gates = nil
}

func forward(to, from net.Conn, frozen <-chan struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-frozen:
			return // and the connections stay open
		default:
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			_ = from.Close()
			return
		}
	}
}
