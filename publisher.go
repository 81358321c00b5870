package xstreamq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// publisher sends what a client publishes: plain messages by group commit, the others through the script.
type publisher struct {
	c     *Client
	group *commit.Group[*outbound]

	mu    sync.Mutex
	waits map[int]*commit.Group[*outbound] // by the replicas to wait for
	own   map[*redis.Client]*redis.Client  // by node: connections that wait for replicas; nil = closed
	known map[string]bool                  // streams that queues were made for; true = the registry has it
	alone int                              // publishes under way by the script, which the group does not know
	idle  sync.Cond                        // there are none
}

func newPublisher(c *Client) *publisher {
	p := &publisher{c: c, known: map[string]bool{}, waits: map[int]*commit.Group[*outbound]{}, own: map[*redis.Client]*redis.Client{}}
	p.idle.L = &p.mu
	p.group = commit.New(pipelineMost, func(list []*outbound) { p.flush(list, p.pipeline) })
	return p
}

// bound gives a context without a deadline the client's.
func (p *publisher) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, p.c.cfg.publishTimeout)
}

// wait returns when nothing is on its way, or after d.
func (p *publisher) wait(d time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	p.group.WaitFor(d)
	p.mu.Lock()
	waits := slices.Collect(maps.Values(p.waits))
	p.mu.Unlock()
	for _, g := range waits {
		g.WaitFor(time.Until(began.Add(d)))
	}
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		p.idle.Broadcast()
		p.mu.Unlock()
	})()
	p.mu.Lock()
	for p.alone > 0 && ctx.Err() == nil {
		p.idle.Wait()
	}
	p.mu.Unlock()
}

// begun counts a publish by the script, until ended is called.
func (p *publisher) begun() (ended func()) {
	p.mu.Lock()
	p.alone++
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		if p.alone--; p.alone == 0 {
			p.idle.Broadcast()
		}
		p.mu.Unlock()
	}
}

// send publishes one message, its hooks around it.
func (p *publisher) send(ctx context.Context, m *outbound) error {
	first := p.first(m.keys.Name)
	if first || !m.plain() || p.c.hooks.any() { // else its wait is bounded without a context of its own
		var cancel context.CancelFunc
		ctx, cancel = p.bound(ctx)
		defer cancel()
	}
	if first {
		p.register(ctx, m.keys)
	}
	ctx, out, err := p.begin(ctx, m)
	if err != nil {
		return err
	}
	if m.plain() {
		p.commit(ctx, []*outbound{m})
		err = m.err
	} else {
		err = p.script(ctx, m)
	}
	p.c.hooks.publishEnd(ctx, out, m.result(), err)
	return err
}

// sendAll publishes a batch: its plain messages together, the others a few at a time.
func (p *publisher) sendAll(ctx context.Context, list []*outbound) BatchErrors {
	failed := BatchErrors{}
	var mu sync.Mutex
	var plain []int
	var others sync.WaitGroup
	gate := make(chan struct{}, 16)
	type began struct {
		ctx context.Context //nolint:containedctx // handed to the hook's end
		out *Outgoing
	}
	hooks := make([]began, len(list))
	if k := list[0].keys; p.first(k.Name) {
		p.register(ctx, k)
	}
	for i, m := range list {
		hctx, out, err := p.begin(ctx, m)
		hooks[i] = began{hctx, out}
		switch {
		case err != nil:
			failed[i] = err
		case m.plain():
			plain = append(plain, i)
		default:
			gate <- struct{}{}
			others.Go(func() {
				defer func() { <-gate }()
				if err := p.script(hctx, m); err != nil {
					mu.Lock()
					failed[i] = err
					mu.Unlock()
				}
			})
		}
	}
	if len(plain) > 0 {
		part := make([]*outbound, len(plain))
		for j, i := range plain {
			part[j] = list[i]
		}
		p.commit(ctx, part)
		for _, i := range plain {
			if list[i].err != nil {
				mu.Lock()
				failed[i] = list[i].err
				mu.Unlock()
			}
		}
	}
	others.Wait()
	if p.c.hooks.any() {
		for i, m := range list {
			p.c.hooks.publishEnd(hooks[i].ctx, hooks[i].out, m.result(), failed[i])
		}
	}
	return failed
}

// begin runs the start hooks, which may add headers, and makes the entry's fields.
func (p *publisher) begin(ctx context.Context, m *outbound) (context.Context, *Outgoing, error) {
	headers := m.cfg.headers
	var out *Outgoing
	if p.c.hooks.any() {
		due := m.cfg.at
		if m.cfg.delay > 0 {
			due = time.Now().Add(m.cfg.delay)
		}
		out = &Outgoing{Stream: m.keys.Name, Headers: map[string]string{}, Body: m.body, DedupeID: m.cfg.dedupe, Due: due}
		maps.Copy(out.Headers, headers)
		ctx = p.c.hooks.publishStart(ctx, out)
		headers = out.Headers
	}
	var err error
	if m.fields, err = wire.New(m.few[:0], m.body, headers, m.cfg.dedupe); err != nil {
		return ctx, out, fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrInvalidOption, err)
	}
	return ctx, out, nil
}

// meet notes a stream that may be published to, for Health.
func (p *publisher) meet(stream string) {
	p.mu.Lock()
	if !p.known[stream] {
		p.known[stream] = false
	}
	p.mu.Unlock()
}

// streams are those that were met.
func (p *publisher) streams() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.known))
}

// first says that this client has not published to the stream: it must be registered.
func (p *publisher) first(stream string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.known[stream]
	p.known[stream] = true
	return !known
}

// register puts the stream in the registry. A failure is mended by the next publish.
func (p *publisher) register(ctx context.Context, k keys.Stream) {
	done := make(chan struct{})
	go func() { // a borrowed client may not heed a context's end on the wire
		defer close(done)
		if err := p.c.rdb.SAdd(ctx, k.Registry(), k.Member("")).Err(); err != nil {
			p.mu.Lock()
			p.known[k.Name] = false
			p.mu.Unlock()
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// script sends a delayed or deduplicated message. With a dedupe id it may be repeated whatever became of it.
func (p *publisher) script(ctx context.Context, m *outbound) error {
	if err := overBefore(ctx, m); err != nil {
		return err
	}
	defer p.begun()()
	if m.random == "" {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		m.random = hex.EncodeToString(b[:])
	}
	pub := lua.Publication{DedupeID: m.cfg.dedupe, Window: m.window, Delay: m.cfg.delay, At: m.cfg.at, Random: m.random, Wait: m.cfg.replicas > 0, Fields: m.fields}
	unsure := false // an earlier try may have stored it: a refusal of a later one does not change that
	for try := 0; ; try++ {
		type answer struct {
			id  string
			dup bool
			err error
		}
		got := make(chan answer, 1)
		m.state.Store(sent)
		go func() { // a borrowed client may not heed a context's end on the wire
			var a answer
			if m.cfg.replicas > 0 {
				a.id, a.dup, a.err = p.scriptAndWait(ctx, m, pub)
			} else {
				a.id, a.dup, a.err = lua.Publish(ctx, p.c.rdb, m.keys, pub)
			}
			got <- a
		}()
		var a answer
		select {
		case a = <-got:
		case <-ctx.Done():
			return m.given(context.Cause(ctx))
		}
		if a.err == nil {
			m.id, m.dup = a.id, a.dup
			return m.short
		}
		err := publishError(context.Cause(ctx), m.keys.Name, a.err)
		lost := errors.Is(err, ErrUncertain)
		if unsure && !lost {
			err = fmt.Errorf("publish to %s: %w: an earlier try may have stored it, the last one failed: %w", m.keys.Name, ErrUncertain, a.err)
		}
		if !conn.NotRun(a.err) && (m.cfg.dedupe == "" || !lost) {
			return err
		}
		unsure = unsure || lost
		if !pause(ctx, nil, try) {
			return err
		}
	}
}
