package xstreamq

import (
	"fmt"
	"log/slog"
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
