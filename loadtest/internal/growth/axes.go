// Package growth measures what a message costs as there is more of something: it publishes and drains the same work beside
// little and beside much, draws what it found, and judges it.
package growth

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/loadtest/internal/speed"
)

// axis is what there is more and more of.
type axis struct {
	name  string
	bytes bool // its points are sizes
	at    []int
	full  int // a point more, for who has the time; 0 = none
	load  func(at int) load
}

// load is what is worked on at a point, and what lies about meanwhile.
type load struct {
	fill                                filler
	lying                               int // messages that the filler leaves to the group, and that are still there at the end
	subscriptions, workers, concurrency int
	size                                int // of a body, in bytes
}

type filler func(ctx context.Context, rdb *redis.Client, stream, group string, n int) error

const (
	handlers = 64
	callers  = 64
)

func usual() load {
	return load{subscriptions: 1, workers: 1, concurrency: handlers, size: speed.Body}
}

func beside(fill filler) func(int) load {
	return func(at int) load {
		l := usual()
		l.fill, l.lying = fill, at
		return l
	}
}

func with(change func(l *load, at int)) func(int) load {
	return func(at int) load {
		l := usual()
		change(&l, at)
		return l
	}
}

var axes = []axis{
	{"queue length", false, []int{1e3, 1e4, 1e5, 1e6}, 1e7, beside(waiting)},
	{"pending", false, []int{1e2, 1e3, 1e4, 1e5}, 0, beside(speed.Pending)},
	{"parked retries", false, []int{1e3, 1e4, 1e5, 1e6}, 0, beside(speed.Parked)},
	{"dead letters", false, []int{1e3, 1e4, 1e5, 1e6}, 0, beside(dead)},
	{"subscriptions in one process", false, []int{1, 4, 16, 64, 200}, 0, with(func(l *load, at int) { l.subscriptions = at })},
	{"workers of a group", false, []int{1, 2, 4, 8, 16}, 0, with(func(l *load, at int) { l.workers = at })},
	{"body", true, []int{16, 256, 4 << 10, 64 << 10, 1 << 20}, 0, with(func(l *load, at int) { l.size = at })},
	{"handlers at once", false, []int{1, 8, 64, 512, 4096}, 0, with(func(l *load, at int) { l.concurrency = at })},
}

// Names are the axes, in order.
func Names() []string {
	out := make([]string, len(axes))
	for i, a := range axes {
		out[i] = a.name
	}
	return out
}

// add appends entries that are all the same.
var add = redis.NewScript(`for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', unpack(ARGV, 2)) end`)

func appendAll(ctx context.Context, rdb *redis.Client, key string, n int, fields ...any) error {
	const step = 5000
	for done := 0; done < n; done += step {
		err := add.Run(ctx, rdb, []string{key}, append([]any{min(step, n-done)}, fields...)...).Err()
		if err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("filling %s: %w", key, err)
		}
	}
	return nil
}

// waiting is what nobody has read yet.
func waiting(ctx context.Context, rdb *redis.Client, stream, _ string, n int) error {
	return appendAll(ctx, rdb, "{"+stream+"}", n, "body", body(speed.Body))
}

func dead(ctx context.Context, rdb *redis.Client, stream, group string, n int) error {
	return appendAll(ctx, rdb, "{"+stream+"}."+group+".dlq", n,
		"body", body(speed.Body), "rc", 6, "oid", "1-1", "err", "connection refused", "reason", "retries")
}
