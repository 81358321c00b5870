package xstreamq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
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

// Published is what Redis confirmed.
type Published struct {
	ID        string // stable for the message's whole life: Message.ID, through delay, retries and redrives
	Duplicate bool   // DedupeID was seen before; ID is the first one's
}

// Publish returns once Redis confirmed. Without a deadline in ctx, PublishTimeout bounds it.
// Errors: ErrInvalidName, ErrInvalidOption, ErrInvalidBody, ErrTooLarge, ErrClosed, ErrUnavailable, ErrAuth,
// and ErrUncertain (also wraps ctx's error) when it may or may not have been stored.
func (q *Queue[T]) Publish(ctx context.Context, body T, opts ...PublishOption) (Published, error) {
	if err := q.ready(); err != nil {
		return Published{}, err
	}
	m, err := q.prepare(body, opts)
	if err != nil {
		return Published{}, err
	}
	p := q.c.publisher
	ctx, cancel := p.bound(ctx)
	defer cancel()
	err = p.send(ctx, m)
	return m.result(), err
}

// PublishBatch publishes all bodies with the same options. Nothing is sent when one body is invalid; what fails later is
// named by index in a BatchErrors, the results of the others stand.
func (q *Queue[T]) PublishBatch(ctx context.Context, bodies []T, opts ...PublishOption) ([]Published, error) {
	if err := q.ready(); err != nil {
		return nil, err
	}
	b := q.NewBatch()
	var cfg publishConfig
	if err := apply(&cfg, opts); err != nil {
		return nil, err
	}
	if cfg.dedupe != "" && len(bodies) > 1 {
		return nil, invalid("DedupeID", cfg.dedupe, "NewBatch, with an id for each message,")
	}
	for _, body := range bodies {
		b.Add(body, opts...)
	}
	return b.Publish(ctx)
}

// NewBatch is PublishBatch with options of its own for each message.
func (q *Queue[T]) NewBatch() *Batch[T] { return &Batch[T]{q: q} }

// Batch collects messages; not safe for concurrent use.
type Batch[T any] struct {
	q    *Queue[T]
	list []*outbound
	err  error
}

// Add puts a message in the batch. What is wrong with it is reported by Publish.
func (b *Batch[T]) Add(body T, opts ...PublishOption) {
	if b == nil || b.q.ready() != nil {
		return // Publish says why
	}
	m, err := b.q.prepare(body, opts)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("message %d of the batch: %w", len(b.list), err)
	}
	b.list = append(b.list, m)
}

// Len is the number added.
func (b *Batch[T]) Len() int {
	if b == nil {
		return 0
	}
	return len(b.list)
}

// Publish sends it, as PublishBatch does, and empties the batch.
func (b *Batch[T]) Publish(ctx context.Context) ([]Published, error) {
	if b == nil || b.q == nil {
		return nil, fmt.Errorf("%w: the batch was not made by NewBatch", ErrClosed)
	}
	if err := b.q.ready(); err != nil {
		return nil, err
	}
	list, err := b.list, b.err
	b.list, b.err = nil, nil
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, nil
	}
	p := b.q.c.publisher
	ctx, cancel := p.bound(ctx)
	defer cancel()
	failed := p.sendAll(ctx, list)
	out := make([]Published, len(list))
	for i, m := range list {
		out[i] = m.result()
	}
	return out, failed.Err()
}

// prepare encodes a message. Nothing is sent yet.
func (q *Queue[T]) prepare(body T, opts []PublishOption) (*outbound, error) {
	var cfg publishConfig
	if err := apply(&cfg, q.c.cfg.publish); err != nil {
		return nil, err
	}
	if err := apply(&cfg, opts); err != nil {
		return nil, err
	}
	b, err := q.body.encode(body)
	if err != nil {
		return nil, fmt.Errorf("queue %s: %w", q.name, err)
	}
	if len(b) > q.cfg.maxBody {
		return nil, fmt.Errorf("queue %s: %w: %d bytes, MaxBody is %d", q.name, ErrTooLarge, len(b), q.cfg.maxBody)
	}
	m := &outbound{keys: keys.NewStream(q.c.prefix, q.name), body: b, cfg: cfg, window: q.cfg.window}
	return m, nil
}

// outbound is a message on its way.
type outbound struct {
	keys   keys.Stream
	body   []byte
	cfg    publishConfig
	window time.Duration

	fields []string
	random string // fixed before the first send, so that a repeated publish is the same one

	state atomic.Int32 // queued, sent or withdrawn
	cmd   lua.Once
	done  *countdown
	id    string
	dup   bool
}

const (
	queued int32 = iota
	sent
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
	known map[string]bool // streams that the registry has
	alone int             // publishes under way by the script, which the group does not know
	idle  sync.Cond       // there are none
}

// Most messages a pipeline carries.
const pipelineMost = 1024

func newPublisher(c *Client) *publisher {
	p := &publisher{c: c, known: map[string]bool{}}
	p.idle.L = &p.mu
	p.group = commit.New(pipelineMost, p.flush)
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
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	p.group.WaitFor(d)
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
			delete(p.known, k.Name)
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
	if err := overBefore(ctx, list[0]); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	for try := 0; ; try++ {
		done := newCountdown(len(todo))
		batch := make([]*outbound, len(todo))
		for j, i := range todo {
			list[i].state.Store(queued)
			list[i].done = done
			batch[j] = list[i]
		}
		p.group.Add(batch...)
		select {
		case <-done.ch:
		case <-ctx.Done():
			for _, i := range todo {
				errs[i] = p.given(ctx, list[i])
			}
			return errs
		}
		var again []int
		for _, i := range todo {
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
			}
		}
		if todo = again; len(todo) == 0 || !pause(ctx, try) {
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

// given is what a message came to whose caller's context ended first.
func (p *publisher) given(ctx context.Context, m *outbound) error {
	cause := context.Cause(ctx)
	if m.state.CompareAndSwap(queued, withdrawn) {
		return fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrUnavailable, cause) // never sent
	}
	return fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrUncertain, cause)
}

// flush sends one pipeline.
func (p *publisher) flush(list []*outbound) {
	ctx, cancel := context.WithTimeout(context.Background(), max(p.c.cfg.publishTimeout, 5*time.Second))
	defer cancel()
	pipe := p.c.rdb.Pipeline()
	for _, m := range list {
		if !m.state.CompareAndSwap(queued, sent) {
			continue
		}
		args := append(make([]any, 0, 3+len(m.fields)), "xadd", m.keys.Main, "*")
		for _, f := range m.fields {
			args = append(args, f)
		}
		m.cmd = lua.NewOnce(ctx, args...)
		_ = pipe.Process(ctx, m.cmd) // queued only
	}
	_, err := pipe.Exec(ctx)
	for _, m := range list {
		if m.state.Load() != sent {
			m.done.one()
			continue
		}
		if err != nil && m.cmd.Err() == nil && m.cmd.Val() == nil {
			m.cmd.SetErr(err) // the pipeline ended before this one was answered
		}
		m.done.one()
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
	pub := lua.Publication{DedupeID: m.cfg.dedupe, Window: m.window, Delay: m.cfg.delay, At: m.cfg.at, Random: m.random, Fields: m.fields}
	unsure := false // an earlier try may have stored it: a refusal of a later one does not change that
	for try := 0; ; try++ {
		type answer struct {
			id  string
			dup bool
			err error
		}
		got := make(chan answer, 1)
		go func() { // a borrowed client may not heed a context's end on the wire
			id, dup, err := lua.Publish(ctx, p.c.rdb, m.keys, pub)
			got <- answer{id, dup, err}
		}()
		var a answer
		select {
		case a = <-got:
		case <-ctx.Done():
			return fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrUncertain, context.Cause(ctx))
		}
		if a.err == nil {
			m.id, m.dup = a.id, a.dup
			return nil
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
