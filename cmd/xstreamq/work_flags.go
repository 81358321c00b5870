package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/xstreamq/xstreamq"
)

type workOptions struct {
	a      *app
	stream string
	group  string
	argv   []string

	concurrency    int
	visibility     time.Duration
	handlerTimeout time.Duration
	maxRetries     string
	backoff        string
	maxLost        int
	dedupeTTL      time.Duration
	from           string
	drain          time.Duration
	untilEmpty     bool
}

func (o *workOptions) register(f *pflag.FlagSet) {
	f.IntVar(&o.concurrency, "concurrency", 0, "commands at once; 0 is four a CPU")
	f.DurationVar(&o.visibility, "visibility", 30*time.Second, "how soon the messages of a dead worker are taken over")
	f.DurationVar(&o.handlerTimeout, "handler-timeout", 0, "longest run of CMD; 0 is the visibility timeout")
	f.StringVar(&o.maxRetries, "max-retries", "5", "retries after the first failure: `N`, or forever")
	f.StringVar(&o.backoff, "backoff", "", "`INITIAL[,MULTIPLIER[,MAX]]` between retries (default: the visibility timeout,2,5m)")
	f.IntVar(&o.maxLost, "max-lost", 10, "lost leases in a row that a message survives")
	f.DurationVar(&o.dedupeTTL, "dedupe-ttl", 0, "skip messages that this group finished within that time; 0 is never")
	f.StringVar(&o.from, "from", "head", "where a new group begins: `head` or tail")
	f.DurationVar(&o.drain, "drain", 30*time.Second, "longest wait for running commands at the end")
	f.BoolVar(&o.untilEmpty, "until-empty", false, "end once nothing of the group waits, is in flight anywhere or retries; delayed messages do not count")
}

// parallel is how many commands run at once.
func (o *workOptions) parallel() int {
	if o.concurrency > 0 {
		return o.concurrency
	}
	return 4 * runtime.GOMAXPROCS(0)
}

func (o *workOptions) subscribeOptions() ([]xstreamq.SubscribeOption, error) {
	from, err := parsePosition(o.from)
	if err != nil {
		return nil, err
	}
	opts := []xstreamq.SubscribeOption{
		xstreamq.VisibilityTimeout(o.visibility),
		xstreamq.MaxLost(o.maxLost),
		xstreamq.StartFrom(from),
	}
	if o.maxRetries == "forever" {
		opts = append(opts, xstreamq.RetryForever())
	} else {
		n, err := strconv.Atoi(o.maxRetries)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("--max-retries %q is no number", o.maxRetries), hint: "--max-retries 5, or --max-retries forever"}
		}
		opts = append(opts, xstreamq.MaxRetries(n))
	}
	if o.concurrency < 0 {
		return nil, usagef("--concurrency is %d: it must not be below 0", o.concurrency)
	}
	opts = append(opts, xstreamq.Concurrency(o.parallel()))
	if o.handlerTimeout < 0 || o.dedupeTTL < 0 || o.drain < 0 {
		return nil, usagef("--handler-timeout, --dedupe-ttl and --drain must not be below 0")
	}
	if o.handlerTimeout > 0 {
		opts = append(opts, xstreamq.HandlerTimeout(o.handlerTimeout))
	}
	if o.dedupeTTL > 0 {
		opts = append(opts, xstreamq.DedupeTTL(o.dedupeTTL))
	}
	if o.backoff != "" {
		b, err := parseBackoff(o.backoff)
		if err != nil {
			return nil, err
		}
		opts = append(opts, xstreamq.WithBackoff(b))
	}
	return opts, nil
}

// parseBackoff reads INITIAL[,MULTIPLIER[,MAX]].
func parseBackoff(s string) (b xstreamq.Exponential, err error) {
	parts := strings.Split(s, ",")
	if len(parts) > 3 {
		err = errors.New("too many parts")
	}
	for i, p := range parts {
		p = strings.TrimSpace(p)
		switch {
		case err != nil:
		case i == 0:
			b.Initial, err = positive(p)
		case i == 1:
			if b.Multiplier, err = strconv.ParseFloat(p, 64); err == nil && !(b.Multiplier >= 1 && b.Multiplier <= 1000) {
				err = errors.New("the multiplier must be from 1 to 1000")
			}
		case i == 2:
			b.Max, err = positive(p)
		}
	}
	if err != nil {
		return b, &usageError{err: fmt.Errorf("--backoff %q: %w", s, err), hint: "--backoff 1s,2,5m"}
	}
	return b, nil
}

func positive(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%s must be above 0", s)
	}
	return d, err
}
