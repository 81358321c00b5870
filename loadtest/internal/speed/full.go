package speed

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// full is how long a publish takes beside a worker whose group has much lying about, and how many commands of the server
// took over 5 ms meanwhile.
type full struct{ p99, slow float64 }

const (
	parkedMost  = 1_000_000
	pendingMost = 100_000
	fullRate    = 2000 // publishes a second
	fillStep    = 1000 // entries of one pipeline
)

// filler puts so much into a group.
type filler func(ctx context.Context, rdb *redis.Client, stream, group string, most int) error

// beside publishes at a leisurely rate while a worker runs; fill puts what lies about.
func beside(ctx context.Context, addr string, span time.Duration, fill filler, most int) (out full, err error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }() // all was confirmed
	c, err := xstreamq.Open("redis://"+addr, xstreamq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return out, err
	}
	defer func() { _ = c.Close() }()
	q := xstreamq.NewQueue[[]byte](c, "full")
	if _, err := c.Admin().Group("full", "g").Create(ctx, xstreamq.Head); err != nil {
		return out, err
	}
	if fill != nil {
		if err := fill(ctx, rdb, "full", "g", most); err != nil {
			return out, err
		}
	}
	_, err = q.Subscribe("g", func(context.Context, *xstreamq.Message[[]byte]) error { return nil },
		xstreamq.VisibilityTimeout(time.Hour))
	if err != nil {
		return out, err
	}
	if err := c.Start(ctx); err != nil {
		return out, err
	}
	if err := rdb.ConfigSet(ctx, "slowlog-log-slower-than", "5000").Err(); err != nil {
		return out, err
	}
	if err := rdb.Do(ctx, "SLOWLOG", "RESET").Err(); err != nil {
		return out, err
	}
	body := text()
	var took []time.Duration
	start := time.Now()
	for n := 0; time.Since(start) < span; n++ {
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / fullRate)))
		at := time.Now()
		if _, err := q.Publish(ctx, body); err != nil {
			return out, err
		}
		took = append(took, time.Since(at))
	}
	slow, err := rdb.Do(ctx, "SLOWLOG", "LEN").Int64()
	return full{quantile(took, .99), float64(slow)}, err
}

// Parked writes retries that are not due for an hour, as docs/wire-format.md describes them.
func Parked(ctx context.Context, rdb *redis.Client, stream, group string, most int) error {
	var b strings.Builder
	b.WriteString("\x01")
	for _, s := range []string{"body", string(text()), "rc", "1", "oid", "1-1"} {
		b.WriteString(strconv.Itoa(len(s)) + ":" + s + ",")
	}
	packed := b.String()
	due := float64(time.Now().Add(time.Hour).UnixMilli())
	for n := 0; n < most; n += fillStep {
		values, scores := make([]any, 0, 2*fillStep), make([]redis.Z, 0, fillStep)
		for i := range min(fillStep, most-n) {
			name := fmt.Sprintf("m/%d-1", n+i+1)
			values = append(values, name, packed)
			scores = append(scores, redis.Z{Score: due, Member: name})
		}
		p := rdb.Pipeline()
		p.HSet(ctx, "{"+stream+"}."+group+".parked", values...)
		p.ZAdd(ctx, "{"+stream+"}."+group+".due", scores...)
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Pending has a consumer read much and say nothing; its lease is an hour.
func Pending(ctx context.Context, rdb *redis.Client, stream, group string, most int) error {
	key := "{" + stream + "}"
	for n := 0; n < most; n += fillStep {
		step := min(fillStep, most-n)
		p := rdb.Pipeline()
		for range step {
			p.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []any{"body", text()}})
		}
		p.XReadGroup(ctx, &redis.XReadGroupArgs{Group: group, Consumer: "busy", Streams: []string{key, ">"}, Count: int64(step), Block: -1})
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
	}
	return rdb.HSet(ctx, key+"."+group+".workers", "busy", fmt.Sprintf("3600000|%d|1|live|", time.Now().UnixMilli())).Err()
}
