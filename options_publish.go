package xstreamq

import (
	"fmt"
	"maps"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

type queueConfig struct {
	codec      any
	validators []any
	retain     string
	window     time.Duration
	maxBody    int
}

// WithCodec sets how bodies are encoded; default JSON, []byte and json.RawMessage untouched. A codec of another type than the
// queue's is ErrInvalidOption.
func WithCodec[T any](c Codec[T]) QueueOption {
	return func(q *queueConfig) error {
		if c == nil {
			return invalid("WithCodec", "nil", "a codec")
		}
		q.codec = c
		return nil
	}
}

// WithValidator adds a check of bodies, in both directions, after T's own Validate method.
func WithValidator[T any](f func(T) error) QueueOption {
	return func(q *queueConfig) error {
		if f == nil {
			return invalid("WithValidator", "nil", "a function")
		}
		q.validators = append(q.validators, f)
		return nil
	}
}

// Retain keeps history for d after all groups are done with it; default none, at most 10 years. It is stored with the stream
// by its workers.
func Retain(d time.Duration) QueueOption {
	return func(q *queueConfig) error {
		q.retain = fmt.Sprint(d.Milliseconds())
		return between("Retain", d, 0, maxDelay)
	}
}

// RetainForever keeps all history: finished messages are never compacted away, and [GroupAdmin.Seek] may replay them. It is
// stored as Retain is; [StreamAdmin.SetRetention] changes it.
func RetainForever() QueueOption {
	return func(q *queueConfig) error {
		q.retain = "forever"
		return nil
	}
}

// DedupeWindow is how long a DedupeID is remembered; default 10 min, 1 ms to 10 years.
func DedupeWindow(d time.Duration) QueueOption {
	return func(q *queueConfig) error {
		q.window = d
		return between("DedupeWindow", d, minDelay, maxDelay)
	}
}

// MaxBody is the largest body in bytes that may be published; default 16 MiB, 1 byte to 512 MiB.
func MaxBody(bytes int) QueueOption {
	return func(q *queueConfig) error {
		q.maxBody = bytes
		return between("MaxBody", bytes, 1, 512<<20)
	}
}

type publishConfig struct {
	delay    time.Duration
	at       time.Time
	dedupe   string
	headers  map[string]string
	replicas int
}

// Delay delivers no earlier than d from now by the server's clock; <= 0: now. At most 10 years.
func Delay(d time.Duration) PublishOption {
	return func(p *publishConfig) error {
		p.delay, p.at = d, time.Time{}
		if d > 0 {
			return between("Delay", d, minDelay, maxDelay)
		}
		return nil
	}
}

// DeliverAt delivers no earlier than t by the server's clock; past: now. At most 10 years ahead.
func DeliverAt(t time.Time) PublishOption {
	return func(p *publishConfig) error {
		p.at, p.delay = t, 0
		if time.Until(t) > maxDelay {
			return invalid("DeliverAt", t, "a time within 10 years")
		}
		return nil
	}
}

// DedupeID makes repeated publishes of one id, within the queue's DedupeWindow, one message. 1 to 200 bytes. Not for
// PublishBatch, where it would make all one.
func DedupeID(id string) PublishOption {
	return func(p *publishConfig) error {
		if err := keys.CheckDedupeID(id); err != nil {
			return fmt.Errorf("%w: dedupe id %w", ErrInvalidName, err)
		}
		p.dedupe = id
		return nil
	}
}

// Header adds a header to the message.
func Header(key, value string) PublishOption {
	return func(p *publishConfig) error {
		if key == "" {
			return invalid("Header", `""`, "a name")
		}
		p.headers = maps.Clone(p.headers)
		if p.headers == nil {
			p.headers = map[string]string{}
		}
		p.headers[key] = value
		return nil
	}
}

// Headers adds headers to the message; of one name the last given stands. A header without a name, or text that is not
// UTF-8, is ErrInvalidOption.
func Headers(h map[string]string) PublishOption {
	return func(p *publishConfig) error {
		for k, v := range h {
			if err := Header(k, v)(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// WaitReplicas confirms a publish only when n replicas have it too; 0 (the default) to 100. When they have not by the end of the
// call's time the error is ErrNotReplicated, and the message is published all the same.
func WaitReplicas(n int) PublishOption {
	return func(p *publishConfig) error {
		p.replicas = n
		return between("WaitReplicas", n, 0, 100)
	}
}
