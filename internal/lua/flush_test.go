package lua

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// counting is a runner that counts the scripts that were sent whole.
type counting struct {
	Runner
	whole *atomic.Int64
}

func (c counting) Process(ctx context.Context, cmd redis.Cmder) error {
	if cmd.Args()[0] == "eval" {
		c.whole.Add(1)
	}
	return c.Runner.Process(ctx, cmd)
}

// TestScriptFlush runs a mixed load, as it ships and by the server's clock, while the script cache is emptied again and
// again: no call fails, and every message is done once all that failed or died was brought back.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t).Client(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k := keys.NewStream(redistest.Prefix(t), "s").Group("g")
	r := counting{c, new(atomic.Int64)}
	if _, _, err := EnsureGroup(ctx, r, k, "0", GroupStart, ""); err != nil {
		t.Fatal(err)
	}

	const messages = 300
	var (
		flushes  atomic.Int64
		done     sync.Map
		left     atomic.Int64
		beside   sync.WaitGroup
		workers  sync.WaitGroup
		finished = make(chan struct{})
	)
	left.Store(messages)
	beside.Go(func() {
		for {
			select {
			case <-finished:
				return
			case <-time.After(3 * time.Millisecond): // beside the load, not in step with it
			}
			if err := c.ScriptFlush(ctx).Err(); err != nil {
				t.Error(err)
				return
			}
			flushes.Add(1)
		}
	})
	for w := range 3 {
		workers.Go(func() {
			l := hand{t: t, ctx: ctx, c: c, r: r, k: k, name: "w" + strconv.Itoa(w), done: &done, left: &left}
			for i := w; i < messages && !t.Failed(); i += 3 {
				l.publish(i)
			}
			l.must(Register(ctx, r, k, l.name, time.Minute, "v"))
			for step := 0; left.Load() > 0 && ctx.Err() == nil && !t.Failed(); step++ {
				l.step(step)
			}
		})
	}
	workers.Wait()
	close(finished)
	beside.Wait()
	if left.Load() != 0 {
		t.Errorf("%d of %d messages are not done", left.Load(), messages)
	}
	if whole := r.whole.Load(); flushes.Load() < 5 || whole < 20 {
		t.Errorf("%d flushes, %d scripts sent whole: this test tests nothing", flushes.Load(), whole)
	}
}

// hand is one worker of the load.
type hand struct {
	t    *testing.T
	ctx  context.Context
	c    *redis.Client
	r    Runner
	k    keys.Group
	name string
	done *sync.Map
	left *atomic.Int64
}

func (l hand) must(ok bool, err error) {
	if err != nil || !ok {
		l.t.Errorf("%s: %v, %v", l.name, ok, err)
	}
}

func (l hand) publish(i int) {
	p := Publication{DedupeID: strconv.Itoa(i), Window: time.Hour, Random: fmt.Sprintf("%016x", i), Fields: []string{"body", strconv.Itoa(i)}}
	if i%3 == 0 {
		p.Delay = time.Millisecond
	}
	first, duplicate, err := Publish(l.ctx, l.r, l.k.Stream, p)
	l.must(!duplicate, err)
	again, duplicate, err := Publish(l.ctx, l.r, l.k.Stream, p)
	l.must(duplicate && first == again, err)
}

// step reads a few, ends each in a way that changes from time to time, and sweeps.
func (l hand) step(n int) {
	list, err := l.c.XReadGroup(l.ctx, &redis.XReadGroupArgs{
		Group: l.k.Group, Consumer: l.name, Streams: []string{l.k.Main, l.k.Retry, ">", ">"}, Count: 5, Block: -1,
	}).Result()
	l.must(err == nil || err == redis.Nil, nil) //nolint:errorlint // as go-redis documents
	var ends []Settlement
	var bodies []string
	for _, s := range list {
		src := map[bool]string{true: Main, false: Retry}[s.Stream == l.k.Main]
		for i, m := range s.Messages {
			end := Settlement{Source: src, EntryID: m.ID, Verb: []string{Ack, Fail, Ack, Release, Snooze, Bury, Cut}[(n+i)%7], Limit: 3, Error: "e", Reason: "rejected"}
			if end.Verb == Ack {
				end.Seen, end.TTL = l.k.Seen(m.ID), time.Hour
			}
			ends, bodies = append(ends, end), append(bodies, m.Values[wire.Body].(string))
		}
	}
	if len(ends) > 0 {
		got, err := Settle(l.ctx, l.r, l.k, l.name, 0, ends)
		l.must(err == nil && len(got) == len(ends), err)
		for i, s := range got {
			switch s.Status {
			case Acked:
				if _, was := l.done.LoadOrStore(bodies[i], true); was {
					l.t.Errorf("%s is done a second time", bodies[i])
				}
				l.left.Add(-1)
			case Lost, Gone, Failed:
				l.t.Errorf("%s: %v", bodies[i], s)
			}
		}
	}
	look, err := Tick(l.ctx, l.r, l.k, l.name, time.Second, Totals{})
	l.must(look.Beat == "ok" && look.State == StateOK, err)
	_, err = PromoteRetries(l.ctx, l.r, l.k)
	l.must(true, err)
	_, err = PromoteDelayed(l.ctx, l.r, l.k)
	l.must(true, err)
	_, err = Compact(l.ctx, l.r, l.k.Stream, false, true)
	l.must(true, err)
	dead, err := l.c.XRangeN(l.ctx, l.k.DLQ, "-", "+", 5).Result()
	l.must(true, err)
	for _, d := range dead {
		_, err := Redrive(l.ctx, l.r, l.k, []Letter{{EntryID: d.ID, ID: d.Values[wire.OID].(string)}}, false, nil)
		l.must(true, err)
	}
}
