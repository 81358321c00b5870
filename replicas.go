package xstreamq

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/lua"
)

const (
	// waitsMost is how many connections to a node may wait for replicas at a time.
	waitsMost = 8
	// firstWait is how long a batch holds up the next one. waitStep is how long one WAIT takes, and how old the number of replicas
	// in an error may be; the last one ends waitSpare before the call's time does, for its answer to be heard.
	firstWait = 50 * time.Millisecond
	waitStep  = 250 * time.Millisecond
	waitSpare = 20 * time.Millisecond
)

// replication is what WaitReplicas needs to know of a message.
type replication struct {
	until time.Time                 // the end of the call's time
	kept  atomic.Pointer[Published] // what was stored, before the replicas have it
	acked atomic.Int32              // by so many replicas
	short error                     // why there are fewer than asked for
}

// keep notes that the message is stored and waits for replicas.
func (m *outbound) keep(id string, dup bool) {
	m.kept.Store(&Published{ID: id, Duplicate: dup})
	m.state.Store(stored)
}

// notReplicated says how far it came.
func (m *outbound) notReplicated(why error) error {
	return fmt.Errorf("publish to %s: %w: %d of %d replicas confirmed message %s, which is stored: %w", m.keys.Name, ErrNotReplicated,
		m.acked.Load(), m.cfg.replicas, m.kept.Load().ID, why)
}

// connections are those to the node of a key that wait for replicas.
func (p *publisher) connections(ctx context.Context, key string) (*redis.Client, error) {
	master, err := conn.Master(ctx, p.c.rdb, key)
	if err != nil {
		return nil, err
	}
	node, _ := master.(*redis.Client) // New and Open take no other
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own == nil {
		return nil, redis.ErrClosed
	}
	if p.own[node] == nil {
		p.own[node] = conn.Own(node, waitsMost)
	}
	return p.own[node], nil
}

func (p *publisher) closeOwn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.own {
		_ = c.Close() // nothing is under way on it any more
	}
	p.own = nil
}

// elsewhere makes a cluster's client look where its slots are now: what is sent to a node directly teaches it nothing.
func (p *publisher) elsewhere(err error) {
	if c, ok := p.c.rdb.(*redis.ClusterClient); ok && err != nil {
		c.ReloadState(context.Background())
	}
}

// scriptAndWait runs the publish script and waits for replicas, on one connection.
func (p *publisher) scriptAndWait(ctx context.Context, m *outbound, pub lua.Publication) (id string, dup bool, err error) {
	own, err := p.connections(ctx, m.keys.Main)
	if err != nil {
		return "", false, err
	}
	cn := own.Conn()
	defer func() { _ = cn.Close() }() // gives the connection back
	if id, dup, err = lua.Publish(ctx, cn, m.keys, pub); err != nil {
		p.elsewhere(err)
		return "", false, err
	}
	m.until, _ = ctx.Deadline()
	m.done = &countdown{all: make(chan struct{}, 1)} // nobody waits on it
	m.keep(id, dup)
	await(cn, m.cfg.replicas, []*outbound{m}, 0, nil)
	return id, dup, nil
}

// pipelineAndWait sends messages to their nodes. It returns when all have been answered, or soon after they were sent: those
// that wait for a slow replica go on by themselves.
func (p *publisher) pipelineAndWait(n int, list []*outbound) {
	nodes := map[*redis.Client][]*outbound{}
	for _, m := range list {
		own, err := p.connections(context.Background(), m.keys.Main)
		if err == nil {
			nodes[own] = append(nodes[own], m)
			continue
		}
		if m.state.CompareAndSwap(queued, sent) {
			m.cmd = xadd{redis.NewStringCmd(context.Background())}
			m.cmd.SetErr(err)
			m.state.Store(answered)
		}
		m.done.one()
	}
	var sending sync.WaitGroup
	for own, part := range nodes {
		sending.Add(1)
		ended := p.begun()
		go func() {
			defer ended()
			p.sendAndWait(own, n, part, sync.OnceFunc(sending.Done))
		}()
	}
	sending.Wait()
}

// sendAndWait is one pipeline and what follows, on one connection: WAIT is about what its own connection has written.
func (p *publisher) sendAndWait(own *redis.Client, n int, list []*outbound, next func()) {
	defer next()
	ctx, cancel := context.WithTimeout(context.Background(), max(p.c.cfg.publishTimeout, 5*time.Second))
	defer cancel()
	cn := own.Conn()
	defer func() { _ = cn.Close() }() // gives the connection back
	pipe := cn.Pipeline()
	for _, m := range list {
		m.queue(ctx, pipe)
	}
	wait := lua.NewOnce(ctx, "wait", n, firstWait.Milliseconds())
	_ = pipe.Process(ctx, wait) // queued only
	_, err := pipe.Exec(ctx)
	p.elsewhere(err)
	list = slices.DeleteFunc(list, func(m *outbound) bool {
		if m.state.Load() == sent {
			m.heard(err)
			id, err := m.cmd.Result()
			if err == nil {
				m.keep(id, false)
				return false
			}
			m.state.Store(answered)
		}
		m.done.one()
		return true
	})
	got, waitErr := wait.Int()
	if waitErr == nil && got < n {
		next()
	}
	await(cn, n, list, got, waitErr)
}

// await asks again and again until n replicas have what the connection has written, or nobody waits any more. got and err are
// the last answer.
func await(cn *redis.Conn, n int, list []*outbound, got int, err error) {
	for {
		var until time.Time
		list = slices.DeleteFunc(list, func(m *outbound) bool {
			m.acked.Store(int32(min(got, n))) //nolint:gosec // 100 at most
			over := got >= n || err != nil || m.state.Load() != stored || !time.Now().Before(m.until)
			if over {
				if got < n {
					m.short = m.notReplicated(shortOf(err))
				}
				m.state.CompareAndSwap(stored, answered)
				m.done.one()
			} else if m.until.After(until) {
				until = m.until
			}
			return over
		})
		if len(list) == 0 {
			return
		}
		ctx, cancel := context.WithDeadline(context.Background(), until.Add(time.Second))
		wait := lua.NewOnce(ctx, "wait", n, max(1, min(waitStep, time.Until(until)-waitSpare).Milliseconds()))
		_ = cn.Process(ctx, wait)
		got, err = wait.Int()
		cancel()
	}
}

func shortOf(err error) error {
	if err == nil {
		return context.DeadlineExceeded
	}
	return serverError("WAIT", err)
}
