package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// What each operation is held to.
const (
	Runs        = 5
	MostTime    = time.Second
	MostCommand = 5 * time.Millisecond
	controlled  = 1000 // entries of a command of the control
)

// Row is one operation. A command is longer than it is when the system gives the processor to others meanwhile; so, right
// before each run, plain commands (XRANGE of 1,000 entries) are run as a control, as many but 100 at most.
type Row struct {
	Name     string
	Time     time.Duration // median of the runs
	CPU      time.Duration // of the server, the least of the runs: what other load on the machine does not change much
	Commands int           // that the server ran for it, those in scripts too; counted in runs of their own, since the log costs time
	Longest  time.Duration // of these, in the best of the runs
	Which    string        // its name, and of a script the first keys and arguments too
	Usual    time.Duration // 99 of 100 commands of all runs took no longer
	Control  time.Duration // the longest of the control, in the best of the runs
}

// TooSlow says that it took too long.
func (r Row) TooSlow() bool { return r.Time > MostTime }

// TooLong says that a command of it held the server up for too long, and that it was not the machine.
func (r Row) TooLong() bool {
	return r.Longest > MostCommand && r.Longest > r.Control
}

type operation struct {
	name string
	run  func(context.Context) error
}

// Measure runs every operation on the world.
func (w *World) Measure(ctx context.Context) ([]Row, error) {
	var rows []Row
	for _, o := range append(w.operations(), w.commands()...) {
		row, err := w.measure(ctx, o)
		if err != nil {
			return rows, fmt.Errorf("scale: %s: %w", o.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (w *World) measure(ctx context.Context, o operation) (Row, error) {
	row := Row{Name: o.name}
	var times, all []time.Duration
	for i := range Runs {
		n := min(100, max(10, row.Commands)) // of the run before
		plain, err := w.logged(ctx, func(ctx context.Context) error {
			for range n {
				if err := w.rdb.XRangeN(ctx, main, "-", "+", controlled).Err(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return row, err
		}
		before, err := w.cpu(ctx)
		if err != nil {
			return row, err
		}
		start := time.Now()
		if err := o.run(ctx); err != nil {
			return row, err
		}
		took := time.Since(start)
		after, err := w.cpu(ctx)
		if err != nil {
			return row, err
		}
		if used := after - before; i == 0 || used < row.CPU {
			row.CPU = used
		}
		log, err := w.logged(ctx, o.run)
		if err != nil {
			return row, err
		}
		times = append(times, took)
		row.Commands = len(log)
		for _, l := range log {
			all = append(all, l.Duration)
		}
		if c := longest(plain).Duration; i == 0 || c < row.Control {
			row.Control = c
		}
		if l := longest(log); i == 0 || l.Duration < row.Longest {
			row.Longest, row.Which = l.Duration, which(l)
		}
	}
	slices.Sort(times)
	slices.Sort(all)
	row.Time, row.Usual = times[len(times)/2], all[(len(all)-1)*99/100]
	return row, nil
}

// cpu is what the server's main thread has used so far.
func (w *World) cpu(ctx context.Context) (time.Duration, error) {
	info, err := w.rdb.Info(ctx, "cpu").Result()
	var used float64
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user_main_thread" || name == "used_cpu_sys_main_thread" {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			used += f
		}
	}
	return time.Duration(used * float64(time.Second)), err
}

var errNone = errors.New("the server ran no command")

func longest(log []redis.SlowLog) redis.SlowLog {
	return slices.MaxFunc(log, func(a, b redis.SlowLog) int { return cmp.Compare(a.Duration, b.Duration) })
}

// logged runs f and returns every command that the server ran meanwhile.
func (w *World) logged(ctx context.Context, f func(context.Context) error) ([]redis.SlowLog, error) {
	p := w.rdb.Pipeline()
	p.ConfigSet(ctx, "slowlog-max-len", "200000")
	p.ConfigSet(ctx, "slowlog-log-slower-than", "0")
	p.Do(ctx, "slowlog", "reset")
	if _, err := p.Exec(ctx); err != nil {
		return nil, err
	}
	if err := f(ctx); err != nil {
		return nil, err
	}
	if err := w.rdb.ConfigSet(ctx, "slowlog-log-slower-than", "-1").Err(); err != nil {
		return nil, err
	}
	log, err := w.rdb.SlowLogGet(ctx, -1).Result()
	log = slices.DeleteFunc(log, func(l redis.SlowLog) bool {
		return slices.Contains([]string{"config", "slowlog"}, strings.ToLower(l.Args[0]))
	})
	if err == nil && len(log) == 0 {
		err = errNone
	}
	return log, err
}

func which(l redis.SlowLog) string {
	name := strings.ToLower(l.Args[0])
	if strings.HasPrefix(name, "eval") && len(l.Args) > 3 {
		name += " " + strings.Join(l.Args[3:min(len(l.Args), 6)], " ")
	}
	return name
}

func (w *World) operations() []operation {
	admin := w.client.Admin()
	s, g := admin.Stream(stream), admin.Group(stream, group)
	page := func(p xstreamq.Page) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Peek(ctx, p); return err }
	}
	get := func(id string, found bool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.Get(ctx, id)
			if !found && errors.Is(err, xstreamq.ErrNotFound) {
				return nil
			}
			return err
		}
	}
	why := func(id, state string) func(context.Context) error {
		return func(ctx context.Context) error {
			at, err := g.Why(ctx, id)
			if err == nil && at.State != state {
				err = fmt.Errorf("%s is %s, want %s: %s", id, at.State, state, at.Detail)
			}
			return err
		}
	}
	letters := func(f xstreamq.Filter, p xstreamq.Page) func(context.Context) error {
		return func(ctx context.Context) error { _, _, err := g.DeadLetterPage(ctx, f, p); return err }
	}
	later := func(i int) string { i -= i%100 - 7; return "d-" + strconv.FormatInt(w.base+int64(i), 10) + "-00" }
	half := w.Entries / 2
	return []operation{
		{"Depths of all", func(ctx context.Context) error {
			all, err := admin.Depths(ctx)
			if err == nil && len(all) != w.Groups {
				err = fmt.Errorf("%d depths, want %d", len(all), w.Groups)
			}
			return err
		}},
		{"Depths of the stream", func(ctx context.Context) error { _, err := s.Depths(ctx); return err }},
		{"Depth", func(ctx context.Context) error { _, err := g.Depth(ctx); return err }},
		{"Doctor", func(ctx context.Context) error { _, err := admin.Doctor(ctx); return err }},
		{"DeadLetterPage", letters(xstreamq.Filter{}, xstreamq.Page{})},
		{"DeadLetterPage, newest, 1,000", letters(xstreamq.Filter{}, xstreamq.Page{Newest: true, Limit: 1000})},
		{"DeadLetterPage, none matches", letters(xstreamq.Filter{ErrorContains: "no such text"}, xstreamq.Page{})},
		{"Why: next to be read", why(w.id(half+1), "waiting")},
		{"Why: far behind", why(w.id(w.Entries-1), "waiting")},
		{"Why: in flight", why(w.id(half-1), "in-flight")},
		{"Why: dead, oldest", why(w.id(0), "dead")},
		{"Why: dead, newest", why(w.id(w.Dead-1), "dead")},
		{"Why: retrying", why(w.id(w.Dead+w.Parked/2), "retrying")},
		{"Why: done", why(w.id(w.Dead+w.Parked+50), "done")},
		{"Why: was delayed, waits", why(later(w.Entries-200), "waiting")},
		{"Why: was delayed, done", why(later(w.Dead+w.Parked+300), "done")},
		{"Why: never was", why("d-1-00", "unknown")},
		{"Peek", page(xstreamq.Page{})},
		{"Peek, newest, 1,000", page(xstreamq.Page{Newest: true, Limit: 1000})},
		{"Peek, after a stable id", page(xstreamq.Page{After: later(w.Entries - 200)})},
		{"Get: by entry id", get(w.id(half), true)},
		{"Get: was delayed", get(later(half), true)},
		{"Get: nowhere", get("d-1-00", false)},
		{"Pending", func(ctx context.Context) error { _, err := g.Pending(ctx, xstreamq.Page{}); return err }},
		{"Pending, newest", func(ctx context.Context) error {
			_, err := g.Pending(ctx, xstreamq.Page{Newest: true})
			return err
		}},
		{"Delayed", func(ctx context.Context) error { _, err := s.Delayed(ctx, xstreamq.Page{}); return err }},
		{"Delayed, newest, 1,000", func(ctx context.Context) error {
			_, err := s.Delayed(ctx, xstreamq.Page{Newest: true, Limit: 1000})
			return err
		}},
		{"Retrying", func(ctx context.Context) error { _, err := g.Retrying(ctx, xstreamq.Page{}); return err }},
		{"Consumers", func(ctx context.Context) error { _, err := g.Consumers(ctx); return err }},
	}
}
