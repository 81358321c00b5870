// Package scale fills a server with as much as an operator may meet, and measures Admin on it.
package scale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// Size says how much there is. The largest is a million entries.
type Size struct {
	Entries, Dead, Pending, Parked, Delayed, Groups int
}

// Full is what Admin is held to.
var Full = Size{Entries: 1_000_000, Dead: 100_000, Pending: 100_000, Parked: 50_000, Delayed: 100_000, Groups: 200}

const (
	stream  = "big"
	group   = "svc"
	main    = "{" + stream + "}"
	prefix  = main + "." + group
	chunk   = 5000
	readers = 10
)

// World is a filled server.
type World struct {
	Size
	rdb    *redis.Client
	client *xstreamq.Client
	addr   string
	cli    string // its program, once built
	base   int64  // ms of the first entry; one entry a ms
	died   int64  // ms of the first dead letter
}

// fillEntries adds entries of 130 bytes, one a millisecond; every hundredth was published with a delay.
var fillEntries = redis.NewScript(`
for i = ARGV[2], ARGV[3] do
  local id = string.format('%.0f', ARGV[1] + i)
  if i % 100 == 7 then
    redis.call('XADD', KEYS[1], id .. '-0', 'body', ARGV[4], 'oid', 'd-' .. id .. '-00')
  else
    redis.call('XADD', KEYS[1], id .. '-0', 'body', ARGV[4])
  end
end`)

var fillDead = redis.NewScript(`
for i = ARGV[2], ARGV[3] do
  redis.call('XADD', KEYS[1], string.format('%.0f-0', ARGV[1] + i), 'body', ARGV[4], 'rc', '4',
    'oid', string.format('%.0f-0', ARGV[5] + i), 'err', 'connection refused', 'reason', 'retries')
end`)

// fillParked parks values that are due from an hour on.
var fillParked = redis.NewScript(`
for i = ARGV[2], ARGV[3] do
  local id = string.format('%.0f', ARGV[1] + i)
  local name = ARGV[5] .. id .. ARGV[6]
  redis.call('HSET', KEYS[1], name, '\1' .. '4:body,' .. #ARGV[4] .. ':' .. ARGV[4] .. ',2:rc,1:1,')
  redis.call('ZADD', KEYS[2], string.format('%.0f', ARGV[7] + i), name)
end`)

// Fill brings the world about. The server must be empty. The group svc was given the first half of the entries: all are
// acknowledged but the last ones of it, which are pending; the oldest died.
func Fill(ctx context.Context, addr string, size Size) (*World, error) {
	w := &World{Size: size, addr: addr, rdb: redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: time.Minute})}
	var err error
	if w.client, err = xstreamq.New(w.rdb); err != nil {
		return nil, err
	}
	now := time.Now()
	w.base = now.Add(-2 * time.Hour).UnixMilli()
	w.died = now.Add(-90 * time.Minute).UnixMilli()
	body := make([]byte, 128)
	for i := range body {
		body[i] = 'a' + byte(i%26)
	}
	later := now.Add(time.Hour).UnixMilli()
	run := func(s *redis.Script, keys []string, n int, base int64, more ...any) error {
		for from := 0; from < n; from += chunk {
			args := append([]any{base, from, min(n, from+chunk) - 1, body}, more...)
			if err := s.Run(ctx, w.rdb, keys, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
				return fmt.Errorf("scale: fill %v: %w", keys, err)
			}
		}
		return nil
	}
	if err := run(fillEntries, []string{main}, size.Entries, w.base); err != nil {
		return nil, err
	}
	if err := w.groups(ctx); err != nil {
		return nil, err
	}
	if err := w.pending(ctx); err != nil {
		return nil, err
	}
	if err := run(fillDead, []string{prefix + ".dlq"}, size.Dead, w.died, w.base); err != nil {
		return nil, err
	}
	if err := run(fillParked, []string{prefix + ".parked", prefix + ".due"}, size.Parked, w.base+int64(size.Dead), "m/", "-0", later); err != nil {
		return nil, err
	}
	return w, run(fillParked, []string{main + ".parked", main + ".due"}, size.Delayed, w.base, "d-", "-ff", later)
}

// groups makes half of the groups on the stream, spread over it, and half on small streams of their own.
func (w *World) groups(ctx context.Context) error {
	admin := w.client.Admin()
	for i := range w.Groups {
		name, to := stream, "g"+strconv.Itoa(i)
		from := xstreamq.AfterID(w.id(i * (w.Entries / w.Groups)))
		switch {
		case i == 0:
			to, from = group, xstreamq.AfterID(w.id(w.Entries/2-w.Pending))
		case i%2 == 1:
			name, from = "s"+strconv.Itoa(i), xstreamq.Head
			args := redis.XAddArgs{Stream: "{" + name + "}", Values: []string{"body", "x"}}
			for range 20 {
				if err := w.rdb.XAdd(ctx, &args).Err(); err != nil {
					return err
				}
			}
		}
		if _, err := admin.Group(name, to).Create(ctx, from); err != nil {
			return err
		}
	}
	return nil
}

// pending gives entries to consumers that do nothing with them.
func (w *World) pending(ctx context.Context) error {
	const step = 1000
	for i := 0; i < w.Pending; i += step {
		err := w.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: "c" + strconv.Itoa(i/step%readers), Streams: []string{main, ">"}, Count: int64(min(step, w.Pending-i)), Block: -1,
		}).Err()
		if err != nil {
			return fmt.Errorf("scale: pending: %w", err)
		}
	}
	return nil
}

// id is the entry of a number.
func (w *World) id(i int) string { return strconv.FormatInt(w.base+int64(i), 10) + "-0" }

// Close ends the connections.
func (w *World) Close() error {
	if err := w.client.Close(); err != nil {
		return err
	}
	return w.rdb.Close()
}

// Part is a smaller size.
func (s Size) Part(n int) Size {
	n = max(1, n)
	return Size{s.Entries / n, s.Dead / n, s.Pending / n, s.Parked / n, s.Delayed / n, max(2, s.Groups/n)}
}
