package xstreamq

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// One option type for each call that takes options, so that a misplaced one does not compile. A setting is a bare noun;
// With… plugs in an object whose type owns the noun. Later options win. Wrong values: ErrInvalidOption from the call.
type (
	// ClientOption is for Open and New.
	ClientOption func(*clientConfig) error
	// QueueOption is for NewQueue.
	QueueOption func(*queueConfig) error
	// PublishOption is for Publish, PublishBatch and Batch.Add.
	PublishOption func(*publishConfig) error
	// SubscribeOption is for Subscribe, SubscribeBatch and Pull; an option that one of them has no use for is refused there, but
	// not in SubscribeDefaults.
	SubscribeOption func(*subscribeConfig) error
)

// invalid names an option, its value and what would do.
func invalid(option string, value any, want string) error {
	return fmt.Errorf("%w: %s(%v): %s is needed", ErrInvalidOption, option, value, want)
}

func between[T int | time.Duration](option string, v, least, most T) error {
	if v < least || v > most {
		return invalid(option, v, fmt.Sprintf("%v to %v", least, most))
	}
	return nil
}

// apply runs options in order; a nil one is refused.
func apply[C any, O ~func(*C) error](cfg *C, opts []O) error {
	for i, o := range opts {
		if o == nil {
			return fmt.Errorf("%w: option %d is nil", ErrInvalidOption, i+1)
		}
		if err := o(cfg); err != nil {
			return err
		}
	}
	return nil
}

type clientConfig struct {
	prefix         string
	consumerPrefix string
	drain          time.Duration
	publishTimeout time.Duration
	interval       time.Duration
	concurrency    int // over all subscriptions; 0 = no cap
	redis          []func(*redis.UniversalOptions)
	log            *slog.Logger
	hooks          []Hooks
	subscribe      []SubscribeOption
	publish        []PublishOption
}

// Prefix goes before every key, verbatim; default none. At most 200 bytes without braces, white space or control characters.
func Prefix(p string) ClientOption {
	return func(c *clientConfig) error {
		if err := keys.CheckPrefix(p); err != nil {
			return fmt.Errorf("%w: prefix %q %w", ErrInvalidName, p, err)
		}
		c.prefix = p
		return nil
	}
}

// ConsumerPrefix goes before the random part of consumer names; default <host>-<pid>, 1 to 200 bytes, bounded as a stream's
// name. It is never the whole name: two processes of one name would take each other's messages.
func ConsumerPrefix(p string) ClientOption {
	return func(c *clientConfig) error {
		if err := keys.CheckName(p); err != nil {
			return fmt.Errorf("%w: consumer prefix %q %w", ErrInvalidName, p, err)
		}
		c.consumerPrefix = p
		return nil
	}
}

// DrainTimeout is how long handlers may go on when a client stops; default 30 s, at most 24 h, 0 cuts them at once.
func DrainTimeout(d time.Duration) ClientOption {
	return func(c *clientConfig) error {
		c.drain = d
		return between("DrainTimeout", d, 0, 24*time.Hour)
	}
}

// PublishTimeout bounds a publish whose context has no deadline; default 10 s, 1 ms to 24 h.
func PublishTimeout(d time.Duration) ClientOption {
	return func(c *clientConfig) error {
		c.publishTimeout = d
		return between("PublishTimeout", d, time.Millisecond, 24*time.Hour)
	}
}

// SweepInterval is how often workers look for what is due, for lost leases and for a pause; default 1 s, 50 ms to 1 min. A
// short visibility timeout makes it shorter: a quarter of it at most.
func SweepInterval(d time.Duration) ClientOption {
	return func(c *clientConfig) error {
		c.interval = d
		return between("SweepInterval", d, 50*time.Millisecond, time.Minute)
	}
}

// MaxConcurrency caps how many handlers run at once over all of the client's subscriptions, which then take turns; default no
// cap, 1 to 100,000. A batch counts as one. Of what the cap keeps from starting, a subscription reads one message ahead, and
// hands it back after a second. What Pull hands over does not count.
func MaxConcurrency(n int) ClientOption {
	return func(c *clientConfig) error {
		c.concurrency = n
		return between("MaxConcurrency", n, 1, 100_000)
	}
}

// RedisOptions changes what Open connects with. New refuses it: a borrowed client has its own.
func RedisOptions(f func(*redis.UniversalOptions)) ClientOption {
	return func(c *clientConfig) error {
		if f == nil {
			return invalid("RedisOptions", "nil", "a function")
		}
		c.redis = append(c.redis, f)
		return nil
	}
}

// WithLogger sets where the client logs; default slog.Default(). It logs warnings and errors, a kind once a minute. What go-redis
// itself writes to standard error, failed dials above all, is set for the whole program, by redis.SetLogger.
func WithLogger(l *slog.Logger) ClientOption {
	return func(c *clientConfig) error {
		if l == nil {
			return invalid("WithLogger", "nil", "a logger")
		}
		c.log = l
		return nil
	}
}

// WithHooks adds hooks; any number, called in the order given.
func WithHooks(h Hooks) ClientOption {
	return func(c *clientConfig) error {
		c.hooks = append(c.hooks, h)
		return nil
	}
}

// SubscribeDefaults stand under each subscription's own options.
func SubscribeDefaults(opts ...SubscribeOption) ClientOption {
	return func(c *clientConfig) error {
		c.subscribe = append(c.subscribe, opts...)
		return apply(&subscribeConfig{}, opts)
	}
}

// PublishDefaults stand under each publish's own options.
func PublishDefaults(opts ...PublishOption) ClientOption {
	return func(c *clientConfig) error {
		c.publish = append(c.publish, opts...)
		return apply(&publishConfig{}, opts)
	}
}

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

// Defaults of a subscription.
const (
	defaultVisibility = 30 * time.Second
	defaultMaxRetries = 5
	defaultMaxLost    = 10
	defaultPrefetch   = 1000
	defaultBatchSize  = 100
	defaultBatchWait  = 100 * time.Millisecond
)

type subscribeConfig struct {
	visibility     time.Duration
	noVisibility   bool
	handlerTimeout time.Duration
	maxRetries     int
	maxLost        int
	backoff        Backoff
	concurrency    int
	prefetch       int
	from           Position
	dedupeTTL      time.Duration
	expireAfter    time.Duration
	maxParked      int
	onDeadLetter   []func(context.Context, DeadLetter)
	middleware     []Middleware
	batchSize      int
	batchWait      time.Duration
	own            []string // of the options given to the call itself, those that not every intake takes
}

// elsewhere says, by intake, which options it has no use for and what to do instead.
var elsewhere = map[string]map[string]string{
	"Subscribe": {
		"BatchSize": "SubscribeBatch takes it", "BatchWait": "SubscribeBatch takes it",
	},
	"SubscribeBatch": {
		"WithMiddleware": "wrap the handler in a function, or use Subscribe",
	},
	"Pull": {
		"BatchSize": "Receive takes the most it shall return", "BatchWait": "Receive returns as soon as it has one message",
		"Concurrency":    "call Receive from as many goroutines as shall work",
		"HandlerTimeout": "bound your own work with context.WithTimeout", "Prefetch": "Receive takes the most it shall read",
		"WithMiddleware": "wrap your own work in a function, or use Subscribe",
	},
}

// fits refuses an option that would do nothing.
func (s *subscribeConfig) fits(call string) error {
	for _, name := range s.own {
		if instead, bad := elsewhere[call][name]; bad {
			return fmt.Errorf("%w: %s is not for %s: %s", ErrInvalidOption, name, call, instead)
		}
	}
	return nil
}

func newSubscribeConfig() subscribeConfig {
	return subscribeConfig{
		visibility: defaultVisibility, maxRetries: defaultMaxRetries, maxLost: defaultMaxLost, backoff: Exponential{},
		concurrency: 4 * runtime.GOMAXPROCS(0), prefetch: defaultPrefetch, from: Head,
		batchSize: defaultBatchSize, batchWait: defaultBatchWait,
	}
}

// VisibilityTimeout is how soon a dead worker's messages are taken over; default 30 s, 1 s to 12 h. It does not bound a
// handler: see HandlerTimeout.
func VisibilityTimeout(d time.Duration) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.visibility, s.noVisibility = d, false
		return between("VisibilityTimeout", d, time.Second, 12*time.Hour)
	}
}

// NoVisibilityTimeout gives handlers no end, unless HandlerTimeout does; a worker that was silent for a minute still counts
// as dead.
func NoVisibilityTimeout() SubscribeOption {
	return func(s *subscribeConfig) error {
		s.noVisibility = true
		return nil
	}
}

// HandlerTimeout bounds one run of the handler; default the visibility timeout. The lease is renewed meanwhile, however long.
// Past it the run is a failed attempt. 1 ms to 30 days.
func HandlerTimeout(d time.Duration) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.handlerTimeout, s.own = d, append(s.own, "HandlerTimeout")
		return between("HandlerTimeout", d, time.Millisecond, maxBackoff)
	}
}

// MaxRetries is how many failures a message survives; default 5, at most 1,000,000, 0 = the first failure is dead.
func MaxRetries(n int) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.maxRetries = n
		if n < 0 || n > 1_000_000 {
			return invalid("MaxRetries", n, "0 to 1000000 (RetryForever has no end)")
		}
		return nil
	}
}

// RetryForever never dead-letters a message for its failures.
func RetryForever() SubscribeOption {
	return func(s *subscribeConfig) error {
		s.maxRetries = -1
		return nil
	}
}

// MaxLost is how many leases lost in a row a message survives, its workers having died; default 10, at most 1,000,000, 0 = the
// first one is dead.
func MaxLost(n int) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.maxLost = n
		return between("MaxLost", n, 0, 1_000_000)
	}
}

// WithBackoff sets how long failures wait; default Exponential{}.
func WithBackoff(b Backoff) SubscribeOption {
	return func(s *subscribeConfig) error {
		if b == nil {
			return invalid("WithBackoff", "nil", "a backoff")
		}
		s.backoff = b
		return nil
	}
}

// Concurrency is how many handlers run at once, batches with SubscribeBatch; default 4 × GOMAXPROCS, 1 to 100,000.
func Concurrency(n int) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.concurrency, s.own = n, append(s.own, "Concurrency")
		return between("Concurrency", n, 1, 100_000)
	}
}

// Prefetch is the most that may be read ahead of free handlers; default 1,000, at most 100,000, 0 = none. Below it the
// subscription reads about 20 ms of work ahead, so nothing when handlers are slow.
func Prefetch(n int) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.prefetch, s.own = n, append(s.own, "Prefetch")
		return between("Prefetch", n, 0, 100_000)
	}
}

// StartFrom is where a group begins that does not exist yet; default Head. It does not move an existing group.
func StartFrom(p Position) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.from = p
		return p.check()
	}
}

// DedupeTTL skips what this group finished within d: a redelivery after a success whose ack was lost. Default off;
// 1 ms to 10 years.
func DedupeTTL(d time.Duration) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.dedupeTTL = d
		return between("DedupeTTL", d, minDelay, maxDelay)
	}
}

// ExpireAfter makes a dead letter, with reason "expired", of a message that is older than d when it would start: each time
// before the handler, by the server's clock, on retries too. It spends no attempt and is no failure. The age counts from the
// publish, from the end of its delay where it had one, and from a redrive anew. What [DedupeTTL] skips is done, however old. A
// handler that has started may go on: see [HandlerTimeout]. Default off; 1 ms to 10 years.
func ExpireAfter(d time.Duration) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.expireAfter = d
		return between("ExpireAfter", d, minDelay, maxDelay)
	}
}

// MaxParked caps how many failures wait for their retry; past it a failure is dead with reason "overflow". Default no cap; at
// least 1.
func MaxParked(n int) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.maxParked = n
		if n < 1 {
			return invalid("MaxParked", n, "1 or more")
		}
		return nil
	}
}

// OnDeadLetter is called at most once for a dead letter, in the worker that buried it, after the fact: the dead-letter queue
// is the record.
func OnDeadLetter(f func(context.Context, DeadLetter)) SubscribeOption {
	return func(s *subscribeConfig) error {
		if f == nil {
			return invalid("OnDeadLetter", "nil", "a function")
		}
		s.onDeadLetter = append(slices.Clip(s.onDeadLetter), f)
		return nil
	}
}

// WithMiddleware adds middleware; the first one given is the outermost.
func WithMiddleware(m ...Middleware) SubscribeOption {
	return func(s *subscribeConfig) error {
		for _, f := range m {
			if f == nil {
				return invalid("WithMiddleware", "nil", "a function")
			}
		}
		s.middleware, s.own = append(slices.Clip(s.middleware), m...), append(s.own, "WithMiddleware")
		return nil
	}
}

// BatchSize is the most messages that SubscribeBatch hands over at once; default 100, 1 to 10,000.
func BatchSize(n int) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.batchSize, s.own = n, append(s.own, "BatchSize")
		return between("BatchSize", n, 1, 10_000)
	}
}

// BatchWait is how long SubscribeBatch waits for a batch to fill, from its first message on; default 100 ms, at most 1 min, 0 =
// not at all.
func BatchWait(d time.Duration) SubscribeOption {
	return func(s *subscribeConfig) error {
		s.batchWait, s.own = d, append(s.own, "BatchWait")
		return between("BatchWait", d, 0, time.Minute)
	}
}
