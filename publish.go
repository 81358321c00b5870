package xstreamq

import (
	"context"
	"fmt"
)

// Published is what Redis confirmed.
type Published struct {
	ID        string // stable for the message's whole life: Message.ID, through delay, retries and redrives
	Duplicate bool   // DedupeID was seen before; ID is the first one's
}

// Publish returns once Redis confirmed. Without a deadline in ctx, PublishTimeout bounds it.
// Errors: ErrInvalidName, ErrInvalidOption, ErrInvalidBody, ErrTooLarge, ErrClosed, ErrUnavailable, ErrAuth,
// ErrUncertain (also wraps ctx's error) when it may or may not have been stored, and ErrNotReplicated (see WaitReplicas) when it
// was: the result has its id.
func (q *Queue[T]) Publish(ctx context.Context, body T, opts ...PublishOption) (Published, error) {
	if err := q.ready(); err != nil {
		return Published{}, err
	}
	m, err := q.prepare(body, opts)
	if err != nil {
		return Published{}, err
	}
	err = q.c.publisher.send(ctx, m)
	return m.result(), err
}

// PublishBatch publishes all bodies with the same options. Nothing is sent when one body is invalid; what fails later is
// named by index in a BatchErrors, the results of the others stand, one for each body in their order. Any number of bodies: they
// share round trips. Errors: as Publish's, alone when nothing was sent, else in the BatchErrors.
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
	m := &outbound{keys: q.keys, window: q.cfg.window}
	if err := apply(&m.cfg, q.c.cfg.publish); err != nil {
		return nil, err
	}
	if err := apply(&m.cfg, opts); err != nil {
		return nil, err
	}
	var err error
	if m.body, err = q.body.encode(body); err != nil {
		return nil, fmt.Errorf("queue %s: %w", q.name, err)
	}
	if len(m.body) > q.cfg.maxBody {
		return nil, fmt.Errorf("queue %s: %w: %d bytes, MaxBody is %d", q.name, ErrTooLarge, len(m.body), q.cfg.maxBody)
	}
	return m, nil
}
