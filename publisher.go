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
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// outbound is a message on its way.
type outbound struct {
	keys   keys.Stream
	body   []byte
	cfg    publishConfig
	window time.Duration

	fields []string
	random string // fixed before the first send, so that a repeated publish is the same one

	state atomic.Int32 // queued, sent, stored, answered or withdrawn
	cmd   lua.Once
	done  *countdown
	id    string
	dup   bool

	replication
}

const (
	queued int32 = iota
	sent
	stored // waits for replicas
	answered
	withdrawn
)

func (m *outbound) result() Published { return Published{ID: m.id, Duplicate: m.dup} }

// plain says that one XADD will do. Whether a time is past is the server's clock's to say.
func (m *outbound) plain() bool {
	return m.cfg.dedupe == "" && m.cfg.delay <= 0 && m.cfg.at.IsZero()
}

// countdown is closed when all parts have been answered.
type countdown struct {
	left atomic.Int32
	ch   chan struct{}
}

func newCountdown(n int) *countdown {
	c := &countdown{ch: make(chan struct{})}
	c.left.Store(int32(n)) //nolint:gosec // a batch is far smaller
	return c
}

func (c *countdown) one() {
	if c.left.Add(-1) == 0 {
		close(c.ch)
	}
}

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

// Most messages, and about how many bytes of bodies, a pipeline carries.
const (
	pipelineMost  = 1024
	pipelineBytes = 8 << 20
)

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
	ctx, out, err := p.begin(ctx, m)
	if err != nil {
		return err
	}
	if m.plain() {
		err = p.commit(ctx, []*outbound{m})[0]
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
		for j, err := range p.commit(ctx, part) {
			if err != nil {
				mu.Lock()
				failed[plain[j]] = err
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
	p.register(ctx, m.keys)
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
	if m.fields, err = wire.New(m.body, headers, m.cfg.dedupe); err != nil {
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

// register puts the stream in the registry with this client's first publish to it. A failure is mended by the next one.
func (p *publisher) register(ctx context.Context, k keys.Stream) {
	p.mu.Lock()
	known := p.known[k.Name]
	p.known[k.Name] = true
	p.mu.Unlock()
	if known {
		return
	}
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

// commit sends plain messages with whatever else is waiting. It repeats only what an answer proves not to have run.
func (p *publisher) commit(ctx context.Context, list []*outbound) []error {
	errs := make([]error, len(list))
	todo := make([]int, len(list))
	for i := range todo {
		todo[i] = i
	}
	until, _ := ctx.Deadline()
	if err := overBefore(ctx, list[0]); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	for try := 0; ; try++ {
		done := newCountdown(len(todo))
		batch := make([]*outbound, 0, len(todo))
		for _, i := range todo {
			m := list[i]
			m.state.Store(queued)
			m.done, m.until = done, until
			if n := m.cfg.replicas; n > 0 {
				p.waiting(n).Add(m)
			} else {
				batch = append(batch, m)
			}
		}
		p.group.Add(batch...)
		ended := false
		select {
		case <-done.ch:
		case <-ctx.Done():
			ended = true
		}
		var again []int
		for _, i := range todo {
			if ended && list[i].state.Load() != answered {
				errs[i] = p.given(ctx, list[i])
				continue
			}
			err := list[i].cmd.Err()
			errs[i] = nil
			if err == nil {
				list[i].id, err = list[i].cmd.Text()
			}
			if err != nil {
				errs[i] = publishError(ctx, list[i].keys.Name, err)
				if conn.NotRun(err) {
					again = append(again, i)
				}
			} else {
				errs[i] = list[i].short
			}
		}
		if todo = again; len(todo) == 0 || ended || !pause(ctx, try) {
			return errs
		}
	}
}

// overBefore refuses to send for a caller whose context has ended already.
func overBefore(ctx context.Context, m *outbound) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrUnavailable, context.Cause(ctx))
}

// waiting is the group of those that wait for n replicas: they hold nobody up who waits for none or for fewer.
func (p *publisher) waiting(n int) *commit.Group[*outbound] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits[n] == nil {
		p.waits[n] = commit.New(pipelineMost, func(list []*outbound) {
			p.flush(list, func(part []*outbound) { p.pipelineAndWait(n, part) })
		})
	}
	return p.waits[n]
}

// given is what a message came to whose caller's context ended first.
func (p *publisher) given(ctx context.Context, m *outbound) error {
	cause := context.Cause(ctx)
	if m.state.CompareAndSwap(queued, withdrawn) {
		return fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrUnavailable, cause) // never sent
	}
	if m.state.CompareAndSwap(stored, withdrawn) {
		kept := m.kept.Load()
		m.id, m.dup = kept.ID, kept.Duplicate
		return m.notReplicated(cause)
	}
	return fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrUncertain, cause)
}

// flush sends a batch, in pipelines that are bounded in bytes too.
func (p *publisher) flush(list []*outbound, pipeline func([]*outbound)) {
	for len(list) > 0 {
		n, bytes := 0, 0
		for n < len(list) && (n == 0 || bytes < pipelineBytes) {
			bytes += len(list[n].body)
			n++
		}
		pipeline(list[:n])
		list = list[n:]
	}
}

func (p *publisher) pipeline(list []*outbound) {
	ctx, cancel := context.WithTimeout(context.Background(), max(p.c.cfg.publishTimeout, 5*time.Second))
	defer cancel()
	pipe := p.c.rdb.Pipeline()
	for _, m := range list {
		m.queue(ctx, pipe)
	}
	_, err := pipe.Exec(ctx)
	for _, m := range list {
		if m.state.Load() == sent {
			m.heard(err)
			m.state.Store(answered)
		}
		m.done.one()
	}
}

// queue adds the message to a pipeline, unless it was withdrawn.
func (m *outbound) queue(ctx context.Context, pipe redis.Pipeliner) {
	if !m.state.CompareAndSwap(queued, sent) {
		return
	}
	args := append(make([]any, 0, 3+len(m.fields)), "xadd", m.keys.Main, "*")
	for _, f := range m.fields {
		args = append(args, f)
	}
	m.cmd = lua.NewOnce(ctx, args...)
	_ = pipe.Process(ctx, m.cmd) // queued only
}

// heard takes the pipeline's error where it ended before this message was answered.
func (m *outbound) heard(err error) {
	if err != nil && m.cmd.Err() == nil && m.cmd.Val() == nil {
		m.cmd.SetErr(err)
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
			return p.given(ctx, m)
		}
		if a.err == nil {
			m.id, m.dup = a.id, a.dup
			return m.short
		}
		err := publishError(ctx, m.keys.Name, a.err)
		lost := errors.Is(err, ErrUncertain)
		if unsure && !lost {
			err = fmt.Errorf("publish to %s: %w: an earlier try may have stored it, the last one failed: %w", m.keys.Name, ErrUncertain, a.err)
		}
		if !conn.NotRun(a.err) && (m.cfg.dedupe == "" || !lost) {
			return err
		}
		unsure = unsure || lost
		if !pause(ctx, try) {
			return err
		}
	}
}

// publishError says what an error means for the message.
func publishError(ctx context.Context, stream string, err error) error {
	op := "publish to " + stream
	if conn.NotRun(err) || conn.Refused(err) {
		return serverError(op, err)
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w: %w", op, ErrUncertain, cause)
	}
	if errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("%s: %w: %w", op, ErrClosed, err)
	}
	return fmt.Errorf("%s: %w: %w", op, ErrUncertain, err)
}

// pause waits before another try; false when ctx ends first.
func pause(ctx context.Context, try int) bool {
	t := time.NewTimer(commit.Backoff(try))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
