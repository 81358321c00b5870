package dash

import (
	"context"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

const (
	historyMost = 150              // samples that are kept of a group: five minutes at the default interval
	groupsMost  = 1000             // groups whose history is kept
	linger      = 15 * time.Second // after the last viewer: somebody who only goes to another page comes back
	sampleLimit = 30 * time.Second // one sample
)

// point is one sample of one group, as charts need it. A rate below 0 is not known.
type point struct {
	At       int64   `json:"at"` // Unix milliseconds
	In       float64 `json:"in"`
	Out      float64 `json:"out"`
	Lag      int64   `json:"lag"` // -1: not known
	Pending  int64   `json:"pending"`
	Retrying int64   `json:"retrying"`
	Dead     int64   `json:"dead"`
}

// row is one group in a snapshot: the counts of the command line's depth, and rates.
type row struct {
	xstreamq.Depth
	Pause     *xstreamq.Pause `json:"pause"` // null: not paused
	Consumers int64           `json:"consumers"`
	OldestMS  int64           `json:"oldest_ms"`
	InRate    *float64        `json:"in_rate"`  // messages a second; null: not known yet
	OutRate   *float64        `json:"out_rate"` // done a second
}

// snapshot is the state of all groups at one moment. It is never changed.
type snapshot struct {
	At       time.Time
	Rows     []row
	Err      error     // of the newest try; Rows are then as of At, or what could be read
	ErrSince time.Time // the first of the failures in a row
	Took     time.Duration
	encoded  func() []byte
}

type history struct {
	points []point
	seen   int // number of the last sample that had the group
}

// sampler asks Redis for all depths while somebody looks, once for all who do.
type sampler struct {
	ctx      context.Context //nolint:containedctx // the handler's life
	read     func(context.Context) ([]xstreamq.Depth, error)
	interval time.Duration
	linger   time.Duration
	rateOver int

	mu      sync.Mutex
	viewers int
	stop    context.CancelFunc // of the loop that runs, else nil
	snap    *snapshot
	changed chan struct{} // closed by the next sample
	samples int
	last    map[xstreamq.GroupRef][]counted
	past    map[xstreamq.GroupRef]*history
}

func newSampler(ctx context.Context, read func(context.Context) ([]xstreamq.Depth, error), interval time.Duration) *sampler {
	return &sampler{
		ctx: ctx, read: read, interval: interval, linger: linger, rateOver: rateOver, changed: make(chan struct{}),
		last: map[xstreamq.GroupRef][]counted{}, past: map[xstreamq.GroupRef]*history{},
	}
}

// join counts a viewer; the first one starts the sampling. leave may be called once.
func (s *sampler) join() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers++
	if s.stop == nil {
		ctx, stop := context.WithCancel(s.ctx)
		s.stop = stop
		go s.run(ctx)
	}
	return func() { time.AfterFunc(s.linger, s.leave) }
}

func (s *sampler) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers--; s.viewers == 0 {
		s.stop()
		s.stop = nil
	}
}

func (s *sampler) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		call, cancel := context.WithTimeout(ctx, sampleLimit)
		all, err := s.read(call)
		cancel()
		if ctx.Err() != nil {
			return
		}
		took := time.Since(began)
		s.add(all, err, took)
		select {
		case <-ctx.Done():
		case <-time.After(max(s.interval-took, 9*took)):
		}
	}
}

// add makes the next snapshot of what was read.
func (s *sampler) add(all []xstreamq.Depth, err error, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := &snapshot{At: time.Now(), Err: err, Took: took}
	if err != nil {
		next.ErrSince = next.At
		if s.snap != nil && s.snap.Err != nil {
			next.ErrSince = s.snap.ErrSince
		}
	}
	if err != nil && len(all) == 0 && s.snap != nil { // nothing new is known: what was, and since when it is old
		next.At, next.Rows = s.snap.At, s.snap.Rows
	} else {
		s.samples++
		next.Rows = make([]row, len(all))
		for i, d := range all {
			next.Rows[i] = s.addRow(d, next.At)
		}
		s.forget()
	}
	next.encoded = sync.OnceValue(func() []byte { return mustEncode(next.json(nil)) })
	s.snap = next
	close(s.changed)
	s.changed = make(chan struct{})
}

// forget drops the history of groups that are gone.
func (s *sampler) forget() {
	for ref, h := range s.past {
		if h.seen != s.samples {
			delete(s.past, ref)
			delete(s.last, ref)
		}
	}
}

func (s *sampler) addRow(d xstreamq.Depth, at time.Time) row {
	out := row{Depth: d, Pause: d.Pause, Consumers: d.Consumers, OldestMS: d.Oldest.Milliseconds()}
	if d.Group == "" {
		return out
	}
	h := s.past[d.GroupRef]
	if h == nil {
		if len(s.past) >= groupsMost {
			return out
		}
		h = &history{}
		s.past[d.GroupRef] = h
	}
	h.seen = s.samples
	out.InRate, out.OutRate = s.rates(d, at)
	p := point{At: at.UnixMilli(), In: -1, Out: -1, Lag: -1, Pending: d.Pending, Retrying: d.Retry + d.Retrying, Dead: d.Dead}
	if d.Lag != nil {
		p.Lag = *d.Lag
	}
	if out.InRate != nil {
		p.In = *out.InRate
	}
	if out.OutRate != nil {
		p.Out = *out.OutRate
	}
	if len(h.points) >= historyMost {
		h.points = append(h.points[:0], h.points[1:]...)
	}
	h.points = append(h.points, p)
	return out
}

// current is the newest snapshot, unless it is from before somebody looked: the first viewer waits for one.
func (s *sampler) current(ctx context.Context) (*snapshot, error) {
	return s.await(ctx, func(n *snapshot) bool {
		return n.Err != nil || time.Since(n.At) < 3*max(s.interval, 10*n.Took)
	})
}

// next waits for a snapshot after the given one; nil: for a current one.
func (s *sampler) next(ctx context.Context, after *snapshot) (*snapshot, error) {
	if after == nil {
		return s.current(ctx)
	}
	return s.await(ctx, func(n *snapshot) bool { return n != after })
}

func (s *sampler) await(ctx context.Context, good func(*snapshot) bool) (*snapshot, error) {
	for {
		s.mu.Lock()
		snap, changed := s.snap, s.changed
		s.mu.Unlock()
		if snap != nil && good(snap) {
			return snap, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.ctx.Done():
			return nil, xstreamq.ErrClosed
		}
	}
}

// points is a copy of a group's history, at most the newest n.
func (s *sampler) points(ref xstreamq.GroupRef, n int) []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.past[ref]
	if h == nil {
		return []point{}
	}
	return append([]point{}, h.points[max(0, len(h.points)-n):]...)
}
