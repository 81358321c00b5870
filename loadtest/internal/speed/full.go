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
)

// beside publishes at a leisurely rate while a worker runs; fill puts what lies about.
func beside(ctx context.Context, addr string, span time.Duration, fill func(context.Context, *redis.Client) error) (out full, err error) {
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
		if err := fill(ctx, rdb); err != nil {
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

// parked writes retries that are not due for an hour, as docs/wire-format.md describes them.
func parked(ctx context.Context, rdb *redis.Client) error {
	var b strings.Builder
	b.WriteString("\x01")
	for _, s := range []string{"body", string(text()), "rc", "1", "oid", "1-1"} {
		b.WriteString(strconv.Itoa(len(s)) + ":" + s + ",")
	}
	packed := b.String()
	due := float64(time.Now().Add(time.Hour).UnixMilli())
	const step = 1000
	for n := 0; n < parkedMost; n += step {
		values, scores := make([]any, 0, 2*step), make([]redis.Z, 0, step)
		for i := range step {
			name := fmt.Sprintf("m/%d-1", n+i+1)
			values = append(values, name, packed)
			scores = append(scores, redis.Z{Score: due, Member: name})
		}
		p := rdb.Pipeline()
		p.HSet(ctx, "{full}.g.parked", values...)
		p.ZAdd(ctx, "{full}.g.due", scores...)
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pending has a consumer read much and say nothing; its lease is an hour, as that of the worker.
func pending(ctx context.Context, rdb *redis.Client) error {
	const step = 1000
	body := strings.Repeat("x", Body)
	for range pendingMost / step {
		p := rdb.Pipeline()
		for range step {
			p.XAdd(ctx, &redis.XAddArgs{Stream: "{full}", Values: []string{"body", body}})
		}
		p.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "busy", Streams: []string{"{full}", ">"}, Count: step, Block: -1})
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
	}
	return rdb.HSet(ctx, "{full}.g.workers", "busy", fmt.Sprintf("3600000|%d|1|live|", time.Now().UnixMilli())).Err()
}
