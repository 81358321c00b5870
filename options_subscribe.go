package xstreamq

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

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
