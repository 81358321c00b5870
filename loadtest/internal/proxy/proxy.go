// Package proxy stands between clients and a server and breaks their connections: cut, slow, or half open.
package proxy

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Proxy forwards connections to one address.
type Proxy struct {
	l      net.Listener
	target string

	mu     sync.Mutex
	conns  map[*link]bool
	refuse bool
	delay  time.Duration
	hole   chan struct{} // closed when bytes flow; open while they are swallowed
	closed bool
	all    sync.WaitGroup
}

type link struct{ in, out net.Conn }

func (l *link) close() {
	l.in.Close()
	l.out.Close()
}

// Start listens on a free port of the loopback address.
func Start(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{l: l, target: target, conns: map[*link]bool{}}
	p.all.Go(p.accept)
	return p, nil
}

// Addr is what clients connect to.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Conns is how many connections there are.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Cut closes all connections and, until Mend, every new one.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
	for l := range p.conns {
		l.close()
	}
}

// Slow holds every piece of data back for so long, in both directions.
func (p *Proxy) Slow(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = by
}

// Hole swallows what is sent on the connections there are, in both directions, and closes none: to both ends the other has
// just become silent. New connections are taken, and as silent. Mend closes them all, as a host does that is back and knows
// nothing of them.
func (p *Proxy) Hole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hole == nil {
		p.hole = make(chan struct{})
	}
}

// Mend ends all of it.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse, p.delay = false, 0
	if p.hole != nil {
		for l := range p.conns {
			l.close()
		}
		close(p.hole)
		p.hole = nil
	}
}

// Close ends every connection and waits for what runs.
func (p *Proxy) Close() {
	p.Mend()
	p.mu.Lock()
	p.closed = true
	for l := range p.conns {
		l.close()
	}
	p.mu.Unlock()
	p.l.Close()
	p.all.Wait()
}

func (p *Proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(in) })
	}
}

func (p *Proxy) serve(in net.Conn) {
	out, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		in.Close()
		return
	}
	l := &link{in, out}
	p.mu.Lock()
	refuse := p.refuse || p.closed
	if !refuse {
		p.conns[l] = true
	}
	p.mu.Unlock()
	if refuse {
		l.close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, out, in) })
	both.Go(func() { p.pump(l, in, out) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, l)
	p.mu.Unlock()
}

// pump copies one direction; its end ends the other.
func (p *Proxy) pump(l *link, to, from net.Conn) {
	defer l.close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			p.mu.Lock()
			delay, hole := p.delay, p.hole
			p.mu.Unlock()
			if delay > 0 {
				time.Sleep(delay)
			}
			if hole != nil {
				<-hole // then the connection is closed
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
