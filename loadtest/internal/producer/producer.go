// Package producer publishes as a program of any language would that has read the page on the wire format: it imports
// nothing of the library, and its only command is XADD.
package producer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/plan"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// Producer publishes until enough messages are confirmed.
type Producer struct {
	// Addr is asked before each connection: after a failover it is another.
	Addr     func() (string, error)
	Stream   string
	Confirm  int64 // so many messages are to be confirmed
	Rate     int   // a second at most, 0 = no limit
	Conns    int
	Batch    int           // commands sent before their replies are read
	Timeout  time.Duration // of a batch
	Replicas int           // that must have a batch before it counts as confirmed; 0 = none
	Plan     plan.Plan
	Ledger   *ledger.Writer

	mu        sync.Mutex
	next      int64 // the last number given out
	sending   int64
	confirmed int64
	begin     time.Time
}

// Run returns when enough is confirmed, or ctx ends.
//
// A refused message (an error reply: it did not run) is sent again under its number. One whose reply never came may be
// stored or not, so it is left to the ledger, and another number takes its place.
func (p *Producer) Run(ctx context.Context) error {
	p.begin = time.Now()
	var all sync.WaitGroup
	for range max(1, p.Conns) {
		all.Go(func() { p.work(ctx) })
	}
	all.Wait()
	if p.confirmed < p.Confirm {
		return fmt.Errorf("producer: %d of %d messages confirmed: %w", p.confirmed, p.Confirm, context.Cause(ctx))
	}
	return nil
}

func (p *Producer) work(ctx context.Context) {
	var c *resp.Conn
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	var refused []int64
	for try := 0; ctx.Err() == nil; {
		batch := refused
		if len(batch) == 0 {
			if batch = p.take(ctx); len(batch) == 0 {
				return
			}
		}
		if c == nil {
			addr, err := p.Addr()
			if err == nil {
				c, err = resp.Dial(addr, time.Second)
			}
			if err != nil {
				refused = batch
				try++
				rest(ctx, try)
				continue
			}
		}
		var err error
		refused, err = p.send(c, batch)
		switch {
		case err != nil: // those whose replies had not come are given up
			c.Close()
			c = nil
			try++
			rest(ctx, try)
		case len(refused) > 0:
			try++
			rest(ctx, try)
			if try%5 == 0 { // it may be no master any more
				c.Close()
				c = nil
			}
		default:
			try = 0
		}
	}
}

// take gives out numbers, as the rate allows; none when all is confirmed or ctx has ended.
func (p *Producer) take(ctx context.Context) (batch []int64) {
	for ctx.Err() == nil {
		p.mu.Lock()
		wait := 5 * time.Millisecond // for what others have on the wire
		for len(batch) < max(1, p.Batch) && p.confirmed+p.sending < p.Confirm {
			if p.Rate > 0 {
				due := p.begin.Add(time.Duration(p.next+1) * time.Second / time.Duration(p.Rate))
				if wait = time.Until(due); wait > 0 {
					break
				}
			}
			p.next++
			p.sending++
			batch = append(batch, p.next)
		}
		over := p.confirmed >= p.Confirm
		p.mu.Unlock()
		if over || len(batch) > 0 {
			return batch
		}
		sleep(ctx, wait)
	}
	return nil
}

// sent takes messages off those on the wire.
func (p *Producer) sent(confirmed, uncertain int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.confirmed += int64(confirmed)
	p.sending -= int64(confirmed + uncertain)
}

// send publishes a batch and returns those that were refused.
func (p *Producer) send(c *resp.Conn, batch []int64) (refused []int64, err error) {
	var stored []confirmation
	defer func() {
		for _, s := range stored {
			p.Ledger.Published(s.seq, s.id)
		}
		p.sent(len(stored), len(batch)-len(stored)-len(refused))
	}()
	p.Ledger.Intent(batch)
	if err := c.Deadline(time.Now().Add(p.Timeout)); err != nil {
		return nil, err
	}
	for _, seq := range batch {
		c.Send(append([]string{"XADD", "{" + p.Stream + "}", "*"}, p.Plan.Fields(seq)...)...)
	}
	if p.Replicas > 0 {
		c.Send("WAIT", strconv.Itoa(p.Replicas), strconv.FormatInt(p.Timeout.Milliseconds()/2, 10))
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	var got []confirmation
	for _, seq := range batch {
		v, err := c.Receive()
		if _, no := errors.AsType[resp.Error](err); no {
			refused = append(refused, seq)
			continue
		}
		id, ok := v.(string)
		if err == nil && !ok {
			err = fmt.Errorf("producer: XADD answered %v", v)
		}
		if err != nil {
			return refused, err
		}
		got = append(got, confirmation{seq, id})
		if p.Replicas == 0 {
			stored = got
		}
	}
	if p.Replicas > 0 {
		v, err := c.Receive()
		if err != nil {
			return refused, err
		}
		if n, _ := v.(int64); n >= int64(p.Replicas) {
			stored = got
		} // else they are stored, and not confirmed
	}
	return refused, nil
}

// confirmation is a message that the server has.
type confirmation struct {
	seq int64
	id  string
}

// rest waits longer with each failure in a row, up to 200 ms.
func rest(ctx context.Context, try int) {
	sleep(ctx, min(200*time.Millisecond, time.Duration(try)*10*time.Millisecond))
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Confirmed is how many messages the server has confirmed.
func (p *Producer) Confirmed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.confirmed
}
