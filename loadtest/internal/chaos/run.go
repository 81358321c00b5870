package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/plan"
	"github.com/xstreamq/xstreamq/loadtest/internal/producer"
	"github.com/xstreamq/xstreamq/loadtest/internal/proxy"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

const (
	stream = "orders"
	group  = "svc"

	producerTime = 2 * time.Second // for an answer
)

// Trial is one run of a profile.
type Trial struct {
	Profile  Profile
	Seed     uint64
	Self     string // the program that is a worker when its first argument is "worker"
	Dir      string // for the ledger, the logs and the server's data
	Progress io.Writer
}

// Run runs it and reports what it found. The error is about the trial itself: nothing could be judged.
func (t *Trial) Run(ctx context.Context) (*Report, error) {
	p := &t.Profile
	deeds := plan.Plan{Seed: t.Seed, Fail: p.Fail, MaxRetries: p.MaxRetries, MaxWork: p.Work}
	where, err := t.site()
	if err != nil {
		return nil, err
	}
	defer where.end()
	url, addr := where.url, where.addr
	var px *proxy.Proxy
	if p.Proxied {
		if px, err = proxy.Start(where.nodes[0].Addr()); err != nil {
			return nil, err
		}
		defer px.Close()
		url, addr = "redis://"+px.Addr(), func() (string, error) { return px.Addr(), nil }
	}
	fl := newFleet(t.Self, t.Dir, p.Workers, worker.Spec{
		URL: url, Stream: stream, Group: group, Plan: deeds, Visibility: p.Visibility, DrainTimeout: drainTime / 2,
		Concurrency: p.Concurrency, DedupeTTL: p.Dedupe,
	}, func(name string) int64 {
		at, err := where.addr()
		if err != nil {
			return -1
		}
		return heldBy(at, stream, group, name)
	})
	fl.longer, fl.intakes = p.Longer, p.Intakes
	if p.Sample {
		fl.spec.Sample = p.For / 60
	}
	defer fl.endAll(0)
	if err := fl.startAll(); err != nil {
		return nil, err
	}
	book, err := ledger.Create(filepath.Join(t.Dir, "p-0.log"))
	if err != nil {
		return nil, err
	}
	pr := &producer.Producer{
		Addr: addr, Stream: stream, Confirm: p.Messages, Rate: p.Rate, Conns: 4, Batch: 16,
		Timeout: producerTime, Replicas: p.Replicas, Plan: deeds, Ledger: book,
	}
	st := &striker{fleet: fl, site: where, proxy: px, stream: stream, group: group, outages: make(chan Outage), counts: make(chan Kind)}
	if p.Sample {
		st.spared = 1
	}
	r := &Report{Profile: p.Name, Seed: t.Seed, Dedupe: p.Dedupe > 0, Faults: map[Kind]int{}}
	begin := time.Now()
	if err := t.fire(ctx, begin, pr, st, r); err != nil {
		return nil, err
	}
	calm := time.Now()
	if err := book.Close(); err != nil {
		return nil, err
	}
	depth, err := t.drain(ctx, where.url)
	if err != nil {
		return nil, err
	}
	r.Drain, r.Depth = time.Since(calm), depth
	if r.Remains, err = settle(where, p.Workers, 2*max(p.Visibility, p.Longer)+5*time.Second); err != nil {
		return nil, err
	}
	fl.endAll(drainTime)
	return r, t.judge(r, fl, where, deeds, ledger.Span{From: begin.UnixNano(), To: calm.UnixNano()})
}

func (t *Trial) site() (*site, error) {
	switch t.Profile.Site {
	case "sentinel":
		return sentinels(t.Dir)
	case "cluster":
		return cluster(t.Dir)
	}
	return single(t.Dir, t.Profile.Fsync)
}

// fire publishes and breaks things, until both are through.
func (t *Trial) fire(ctx context.Context, begin time.Time, pr *producer.Producer, st *striker, r *Report) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lanes := map[string][]Event{}
	for _, e := range t.Profile.Schedule(t.Seed) {
		lanes[e.Kind.lane()] = append(lanes[e.Kind.lane()], e)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs error
	do := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = errors.Join(errs, err)
				cancel(err)
			}
		})
	}
	do(func() error { return pr.Run(ctx) })
	for _, list := range lanes {
		do(func() error { return st.lane(ctx, begin, list) })
	}
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	stock := make(chan Remains)
	if t.Profile.Sample {
		go takeStock(st.site, t.Profile.For/60, stock, over)
	}
	tell := time.NewTicker(5 * time.Second)
	defer tell.Stop()
	for {
		select {
		case o := <-st.outages:
			r.CPU = max(r.CPU, o.CPU)
			r.Outages = append(r.Outages, o)
		case m := <-stock:
			r.Stock = append(r.Stock, m)
		case k := <-st.counts:
			r.Faults[k]++
		case <-tell.C:
			fmt.Fprintf(t.Progress, "%4.0f s  %d confirmed, faults %v\n", time.Since(begin).Seconds(), pr.Confirmed(), r.Faults)
		case <-over:
			return errs
		}
	}
}

// takeStock looks at the server from time to time; what does not answer is passed over.
func takeStock(where *site, every time.Duration, to chan<- Remains, over <-chan struct{}) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-over:
			return
		case <-t.C:
		}
		addr, err := where.addr()
		if err != nil {
			continue
		}
		m, err := remains(addr)
		if err != nil {
			continue
		}
		select {
		case to <- m:
		case <-over:
			return
		}
	}
}

// drain waits until nothing is left to do, by the library's own count, and returns it. The profile's bound is judged later:
// this waits for three times as long.
func (t *Trial) drain(ctx context.Context, url string) (xstreamq.Depth, error) {
	client, err := xstreamq.Open(url)
	if err != nil {
		return xstreamq.Depth{}, err
	}
	defer func() { _ = client.Close() }() // nothing runs on it
	admin := client.Admin().Group(stream, group)
	deadline := time.Now().Add(3 * t.Profile.Bounds.Drain)
	said := time.Now()
	for quiet := 0; ; {
		d, err := admin.Depth(ctx)
		if err != nil && ctx.Err() != nil {
			return d, context.Cause(ctx)
		}
		if err == nil && d.Lag != nil && *d.Lag+d.Pending+d.Retry+d.Retrying+d.Delayed == 0 {
			quiet++
		} else {
			quiet = 0
		}
		if quiet == 2 || time.Now().After(deadline) {
			return d, err
		}
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			fmt.Fprintf(t.Progress, "draining: pending %d, retry %d, retrying %d, dead %d, lag known %v, %v\n", d.Pending, d.Retry, d.Retrying, d.Dead, d.Lag != nil, err)
		}
		if !pause(ctx, 50*time.Millisecond) {
			return d, context.Cause(ctx)
		}
	}
}

// judge reads the end and fills the report in.
func (t *Trial) judge(r *Report, fl *fleet, where *site, deeds plan.Plan, chaos ledger.Span) error {
	addr, err := where.addr()
	if err != nil {
		return err
	}
	c, err := resp.Dial(addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	dead, err := letters(c, stream, group)
	if err != nil {
		return err
	}
	book, err := ledger.Read(t.Dir)
	if err != nil {
		return err
	}
	for name, at := range fl.gone {
		book.Gone(name, at)
	}
	trial := ledger.Trial{Plan: deeds, Letters: dead, Asleep: fl.asleep, Reruns: t.Profile.Bounds.Reruns}
	for _, o := range r.Outages {
		switch o.Kind {
		case Failover: // what waited for the replica when the master was killed was not confirmed
			trial.Unsure = append(trial.Unsure, ledger.Span{From: o.From - int64(producerTime) - int64(time.Second), To: o.To})
		case Delete:
			trial.Admit = append(trial.Admit, ledger.Span{To: o.To})
		case PowerCut:
			trial.Admit = append(trial.Admit, ledger.Span{From: o.From - int64(powerLoses) - int64(200*time.Millisecond), To: o.To})
		}
	}
	r.Verdict = ledger.Judge(book, trial)
	r.Trouble = fl.trouble
	for _, u := range fl.undrained {
		if !r.during(u.From, u.To) {
			r.Trouble = append(r.Trouble, "worker "+u.worker+" ran into its drain timeout though the server answered")
		}
	}
	if r.LogLines, err = logLines(t.Dir); err != nil {
		return err
	}
	if t.Profile.Sample {
		r.Growth, r.Sampled = growth(book.Samples["0.1"], r.Stock)
	}
	r.measure(book, fl.born, fl.deaths, chaos)
	r.Workers = len(fl.gone)
	r.Length = time.Duration(chaos.To - chaos.From)
	r.hold(&t.Profile)
	return nil
}

// logLines counts what the workers logged.
func logLines(dir string) (int, error) {
	list, err := filepath.Glob(filepath.Join(dir, "w-*.err"))
	n := 0
	for _, path := range list {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		n += bytes.Count(text, []byte("\n"))
	}
	return n, err
}
