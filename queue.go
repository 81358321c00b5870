package xstreamq

import (
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// Queue is a typed view of one stream. Making one is free: no I/O, no goroutine, nothing to close.
// A wrong name or option is reported by every method (ErrInvalidName, ErrInvalidOption).
type Queue[T any] struct {
	c    *Client
	name string
	cfg  queueConfig
	body contract[T]
	keys keys.Stream
	err  error
}

// NewQueue binds T to a stream. []byte and json.RawMessage pass untouched, all else is JSON unless WithCodec says otherwise.
func NewQueue[T any](c *Client, stream string, opts ...QueueOption) *Queue[T] {
	q := &Queue[T]{c: c, name: stream, cfg: queueConfig{window: 10 * time.Minute, maxBody: 16 << 20}}
	if q.err = q.configure(opts); q.err == nil && c != nil && c.publisher != nil {
		c.publisher.meet(stream)
	}
	return q
}

// Stream is the name that the queue was made with; "" of a nil queue.
func (q *Queue[T]) Stream() string {
	if q == nil {
		return ""
	}
	return q.name
}

// Decode makes a T of stored bytes, as a subscription does: codec, then validators. For what Admin reads, such as
// DeadLetter.Body; no I/O. Errors: ErrInvalidBody, and what is wrong with the queue.
func (q *Queue[T]) Decode(body []byte) (T, error) {
	if q == nil || q.err != nil || q.body.codec == nil {
		return *new(T), q.ready()
	}
	return q.body.decode(body)
}

func (q *Queue[T]) configure(opts []QueueOption) error {
	if err := keys.CheckName(q.name); err != nil {
		return fmt.Errorf("%w: stream %q %w", ErrInvalidName, q.name, err)
	}
	if err := apply(&q.cfg, opts); err != nil {
		return fmt.Errorf("queue %s: %w", q.name, err)
	}
	q.body.codec = defaultCodec[T]()
	if q.cfg.codec != nil {
		codec, ok := q.cfg.codec.(Codec[T])
		if !ok {
			return fmt.Errorf("queue %s: %w", q.name, invalid("WithCodec", fmt.Sprintf("%T", q.cfg.codec), fmt.Sprintf("a codec of %T", *new(T))))
		}
		q.body.codec = codec
	}
	for _, v := range q.cfg.validators {
		f, ok := v.(func(T) error)
		if !ok {
			return fmt.Errorf("queue %s: %w", q.name, invalid("WithValidator", fmt.Sprintf("%T", v), fmt.Sprintf("a func(%T) error", *new(T))))
		}
		q.body.validate = append(q.body.validate, f)
	}
	q.body.bare = len(q.body.validate) == 0 && bareType[T]()
	if q.c != nil {
		q.keys = keys.NewStream(q.c.prefix, q.name)
	}
	return nil
}

// ready is what stands in the way of any call.
func (q *Queue[T]) ready() error {
	if q == nil {
		return fmt.Errorf("%w: the queue is nil", ErrClosed)
	}
	if q.err != nil {
		return q.err
	}
	return q.c.open()
}
