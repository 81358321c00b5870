package growth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

// point is a server with what lies about.
type point struct {
	load
	n      int
	dir    string
	srv    *server.Server
	rdb    *redis.Client
	client *xstreamq.Client // publishes
	queues []*xstreamq.Queue[[]byte]
	body   []byte
}

func prepare(ctx context.Context, l load, n int) (p *point, err error) {
	p = &point{load: l, n: n, body: body(l.size)}
	if p.dir, err = os.MkdirTemp("", "growth"); err != nil {
		return nil, err
	}
	if p.srv, err = server.Start(p.dir, "--appendonly", "no"); err != nil {
		return p, err
	}
	p.rdb = redis.NewClient(&redis.Options{Addr: p.srv.Addr(), ReadTimeout: time.Minute})
	if p.client, err = p.open(); err != nil {
		return p, err
	}
	p.queues = p.queuesOf(p.client)
	for i := range p.queues {
		if _, err := p.client.Admin().Group(streamOf(i), group).Create(ctx, xstreamq.Head); err != nil {
			return p, err
		}
	}
	if p.fill != nil {
		if err := p.fill(ctx, p.rdb, streamOf(0), group, p.lying); err != nil {
			return p, err
		}
	}
	if err := appendAll(ctx, p.rdb, "control", controlled, "body", p.body[:min(len(p.body), 128)]); err != nil {
		return p, err
	}
	return p, p.rdb.ConfigSet(ctx, "slowlog-log-slower-than", strconv.FormatInt(logged.Microseconds(), 10)).Err()
}

func (p *point) close() error {
	var errs []error
	if p.client != nil {
		errs = append(errs, p.client.Close())
	}
	if p.rdb != nil {
		errs = append(errs, p.rdb.Close())
	}
	if p.srv != nil {
		errs = append(errs, p.srv.Kill())
	}
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

func (p *point) open() (*xstreamq.Client, error) {
	return xstreamq.Open("redis://"+p.srv.Addr(), xstreamq.WithLogger(slog.New(slog.DiscardHandler)), xstreamq.DrainTimeout(100*time.Millisecond))
}

func (p *point) queuesOf(c *xstreamq.Client) []*xstreamq.Queue[[]byte] {
	out := make([]*xstreamq.Queue[[]byte], p.subscriptions)
	for i := range out {
		out[i] = xstreamq.NewQueue[[]byte](c, streamOf(i))
	}
	return out
}

// Of the control: entries of a command, and commands of a caller.
const (
	controlled = 1000
	controls   = 50
)

// control is the longest of plain commands, XRANGE of 1,000 entries, under as many callers as keep the machine busy: a command
// is also longer than it is when the system gives the processor to others meanwhile.
func (p *point) control(ctx context.Context) (command, error) {
	return p.watch(ctx, func() error {
		return together(8, func(int) error {
			for range controls {
				if err := p.rdb.XRangeN(ctx, "control", "-", "+", controlled).Err(); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// watch returns the longest command that the server ran during f.
func (p *point) watch(ctx context.Context, f func() error) (c command, err error) {
	if err := p.rdb.Do(ctx, "slowlog", "reset").Err(); err != nil {
		return c, err
	}
	if err := f(); err != nil {
		return c, err
	}
	log, err := p.rdb.Do(ctx, "slowlog", "get", -1).Slice()
	if err != nil {
		return c, err
	}
	for _, entry := range log { // id, time, µs, arguments …; of a client that was unblocked they are gone, which SlowLogGet refuses
		fields, _ := entry.([]any)
		if len(fields) < 4 {
			return c, fmt.Errorf("an entry of the slow log is %v", entry)
		}
		micros, _ := fields[2].(int64)
		args, _ := fields[3].([]any)
		if took := time.Duration(micros) * time.Microsecond; took > c.took {
			c = command{took, which(args)}
		}
	}
	return c, nil
}

func which(args []any) string {
	if len(args) == 0 {
		return "unknown"
	}
	name := strings.ToLower(fmt.Sprint(args[0]))
	if strings.HasPrefix(name, "eval") && len(args) > 3 {
		name += fmt.Sprint(" on ", args[3])
	}
	return name
}

// round publishes and drains; it returns what a message took of each, in µs.
func (p *point) round(ctx context.Context) (publish, drain float64, longest command, err error) {
	longest, err = p.watch(ctx, func() (err error) {
		if publish, err = p.publish(ctx); err == nil {
			drain, err = p.drain(ctx)
		}
		return err
	})
	return publish, drain, longest, err
}

func (p *point) publish(ctx context.Context) (float64, error) {
	runtime.GC()
	var next atomic.Int64
	start := time.Now()
	err := together(callers, func(int) error {
		for i := next.Add(1); i <= int64(p.n); i = next.Add(1) {
			if _, err := p.queues[int(i)%len(p.queues)].Publish(ctx, p.body); err != nil {
				return err
			}
		}
		return nil
	})
	return micros(time.Since(start), p.n), err
}

func micros(d time.Duration, n int) float64 { return d.Seconds() * 1e6 / float64(n) }

// drain is from the first message in its handler to the last, so that it has not in it what a start takes. Handlers keep what
// comes beyond: it goes back when their client stops.
func (p *point) drain(ctx context.Context) (float64, error) {
	var done, first atomic.Int64
	took := make(chan time.Duration, 1)
	base := time.Now()
	stop, err := p.work(ctx, func(ctx context.Context) error {
		switch n := done.Add(1); {
		case n == 1:
			first.Store(int64(time.Since(base)))
		case n == int64(p.n):
			took <- time.Since(base) - time.Duration(first.Load())
		case n > int64(p.n):
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	select {
	case d := <-took:
		return micros(d, p.n-1), stop()
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(2 * time.Minute):
		err = fmt.Errorf("%d of %d messages were handled in two minutes", done.Load(), p.n)
	}
	return 0, errors.Join(err, stop())
}

// rest has workers stand there and start nothing, for so long that they do once what they do now and then: what is done with
// is trimmed, leases are renewed.
func (p *point) rest(ctx context.Context, span time.Duration) (command, error) {
	return p.watch(ctx, func() error {
		stop, err := p.work(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		select {
		case <-time.After(span):
		case <-ctx.Done():
		}
		return errors.Join(ctx.Err(), stop())
	})
}

// work starts the workers.
func (p *point) work(ctx context.Context, handle func(context.Context) error) (stop func() error, err error) {
	clients := make([]*xstreamq.Client, 0, p.workers)
	stop = func() error {
		return together(len(clients), func(i int) error {
			if err := clients[i].Close(); !errors.Is(err, xstreamq.ErrDrainTimeout) {
				return err
			}
			return nil
		})
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	for range p.workers {
		c, err := p.open()
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
		for _, q := range p.queuesOf(c) {
			if _, err := q.Subscribe(group, func(ctx context.Context, _ *xstreamq.Message[[]byte]) error { return handle(ctx) },
				xstreamq.Concurrency(p.concurrency)); err != nil {
				return nil, err
			}
		}
	}
	runtime.GC()
	for _, c := range clients {
		if err := c.Start(ctx); err != nil {
			return nil, err
		}
	}
	return stop, nil
}

// check says whether what lay about still does, and nothing else: a figure beside something that is gone means nothing.
func (p *point) check(ctx context.Context) error {
	var left int64
	for i := range p.queues {
		d, err := p.client.Admin().Group(streamOf(i), group).Depth(ctx)
		if err != nil {
			return err
		}
		if d.Lag == nil {
			return fmt.Errorf("the lag of %s is unknown", streamOf(i))
		}
		left += *d.Lag + d.Pending + d.Retry + d.Retrying + d.Dead
	}
	if left != int64(p.lying) {
		return fmt.Errorf("%d messages lie about at the end, want %d", left, p.lying)
	}
	return nil
}
