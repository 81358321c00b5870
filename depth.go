package xstreamq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Depth counts what a group has before it and what it holds.
type Depth struct {
	GroupRef
	Length   int64  `json:"length"`   // all entries of the stream, history included
	Lag      *int64 `json:"lag"`      // entries of the stream not yet read; nil = unknown, never a guess
	Pending  int64  `json:"pending"`  // in flight, from the stream and from the retry stream
	Retry    int64  `json:"retry"`    // due for another attempt, not yet read
	Retrying int64  `json:"retrying"` // parked: failed, waiting out their backoff
	Delayed  int64  `json:"delayed"`  // published for later; the stream's, the same for every group
	Dead     int64  `json:"dead"`     // dead letters
	Paused   bool   `json:"paused"`
	Pause    *Pause `json:"-"` // why and since when; nil = not paused
	Read     *int64 `json:"-"` // entries of the stream ever read, as the server counts them (Redis 7); nil = it does not tell
	// Consumers are the names that read as the group, those of dead workers included until a sweep.
	Consumers int64         `json:"-"`
	Totals    Totals        `json:"-"`
	Oldest    time.Duration `json:"-"` // age, by the server's clock, of the oldest entry that waits or is in flight; 0 = none
}

// What a stream holds is counted in steps on the server, up to a bound; for a lag beyond it the server's own word is taken,
// if it gives one.
const (
	countStep = 250
	countMost = 10_000
	countAll  = 40_000 // for the depths of many streams, shared among them
)

// Depths is the depth of each group of the stream, sorted; one with Group "" when it has none.
func (s *StreamAdmin) Depths(ctx context.Context) ([]Depth, error) {
	k, err := s.c.streamKeys(s.name)
	if err != nil {
		return nil, err
	}
	registered, err := s.c.registeredGroups(ctx, k.Name)
	if err != nil {
		return nil, err
	}
	return s.c.depths(ctx, []streamGroups{{s.name, registered}}, false)
}

// streamGroups is a stream and what the registry has of its groups.
type streamGroups struct {
	stream string
	groups []string
}

// depths reads the groups of streams: two pipelines for all of them, then what a lag takes. all keeps what is registered and
// not there, which is an error otherwise. What could be read is returned beside an error.
func (c *Client) depths(ctx context.Context, list []streamGroups, all bool) ([]Depth, error) {
	type stream struct {
		k    keys.Stream
		ask  lookCommands
		look *streamLook
		of   []depthCommands
	}
	streams := make([]stream, len(list))
	first, second := c.rdb.Pipeline(), c.rdb.Pipeline()
	for i := range streams {
		k, err := c.streamKeys(list[i].stream)
		if err != nil {
			return nil, err
		}
		streams[i].k, streams[i].ask = k, askLook(ctx, first, k)
	}
	whole := execPipeline(ctx, first)
	var errs []error
	for i := range streams {
		s := &streams[i]
		var names []string
		var err error
		if s.look, err = s.ask.read(s.k); err == nil {
			names, err = c.groupNames(ctx, s.k, s.look, list[i].groups, all)
		}
		if err != nil {
			s.look = nil
			errs = append(errs, serverError("admin: depths of "+s.k.Name, err))
			continue
		}
		for _, n := range names { // a foreign group's name may be one that we refuse; reading by it does no harm
			s.of = append(s.of, askDepth(ctx, second, s.k.Group(n)))
		}
	}
	if whole != nil && len(errs) == len(streams) {
		return nil, serverError("admin: depths", whole)
	}
	whole = execPipeline(ctx, second)
	most := min(countMost, max(countStep, int64(countAll/max(1, len(streams)))))
	var out []Depth
	var now time.Time
	_, cluster := c.rdb.(*redis.ClusterClient) // each of its servers has a time of its own
	for _, s := range streams {
		if s.look == nil {
			continue
		}
		if len(s.of) == 0 {
			out = append(out, Depth{GroupRef: GroupRef{Stream: s.k.Name}, Length: s.look.length, Delayed: s.look.delayed})
			continue
		}
		var err error
		if now.IsZero() || cluster {
			now, err = c.serverTime(ctx, s.k.Main)
		}
		from := len(out)
		slices.SortFunc(s.of, func(a, b depthCommands) int { return s.look.later(a.k.Group, b.k.Group) })
		for _, ask := range s.of {
			var d Depth
			if err == nil {
				d, err = c.readDepth(ctx, ask, s.look, now, most)
			}
			if err != nil {
				errs = append(errs, serverError("admin: depth of "+printable(s.k.Name+"/"+ask.k.Group), err))
				break
			}
			out = append(out, d)
		}
		slices.SortFunc(out[from:], func(a, b Depth) int { return compareRefs(a.GroupRef, b.GroupRef) })
	}
	if whole != nil && len(out) == 0 {
		return nil, serverError("admin: depths", whole)
	}
	return out, errors.Join(errs...)
}

// groupNames are the groups to read of a stream, sorted.
func (c *Client) groupNames(ctx context.Context, k keys.Stream, look *streamLook, registered []string, all bool) ([]string, error) {
	names := slices.Collect(maps.Keys(look.groups))
	if all {
		for _, n := range registered {
			if look.groups[n] == nil && !look.gone[n] {
				names = append(names, n)
			}
		}
	} else {
		dead, err := c.deadOnly(ctx, k, look, registered)
		if err != nil {
			return nil, err
		}
		if look.empty() && len(dead) == 0 {
			return nil, fmt.Errorf("stream %w", ErrNotFound)
		}
		names = append(names, dead...)
	}
	slices.Sort(names)
	return names, nil
}

// Depth counts the group's messages. The counts are of one moment, but for Lag and Oldest, which may be a little younger.
func (g *GroupAdmin) Depth(ctx context.Context) (Depth, error) {
	k, err := g.mustExist(ctx, "depth")
	if err != nil {
		return Depth{}, err
	}
	now, err := g.c.serverTime(ctx, k.Main)
	if err != nil {
		return Depth{}, serverError(g.op("depth"), err)
	}
	d, err := g.c.depth(ctx, k, now)
	return d, serverError(g.op("depth"), err)
}

func (c *Client) depth(ctx context.Context, k keys.Group, now time.Time) (Depth, error) {
	p := c.rdb.Pipeline()
	ask, of := askLook(ctx, p, k.Stream), askDepth(ctx, p, k)
	if err := execPipeline(ctx, p); err != nil {
		return Depth{}, err
	}
	look, err := ask.read(k.Stream)
	if err != nil {
		return Depth{}, err
	}
	return c.readDepth(ctx, of, look, now, countMost)
}

// depthCommands is what a depth asks beside the look at its stream, in one pipeline.
type depthCommands struct {
	k                   keys.Group
	pending, again      *redis.XPendingCmd
	retry, parked, dead *redis.IntCmd
	paused              *redis.StringCmd
	totals              *redis.SliceCmd
}

func askDepth(ctx context.Context, p redis.Pipeliner, k keys.Group) depthCommands {
	return depthCommands{
		k: k, pending: p.XPending(ctx, k.Main, k.Group), again: p.XPending(ctx, k.Retry, k.Group),
		retry: p.XLen(ctx, k.Retry), parked: p.HLen(ctx, k.Parked), dead: p.XLen(ctx, k.DLQ), paused: p.Get(ctx, k.Paused),
		totals: askTotals(ctx, p, k),
	}
}

func (c *Client) readDepth(ctx context.Context, a depthCommands, look *streamLook, now time.Time, most int64) (Depth, error) {
	k := a.k
	for key, cmd := range map[string]redis.Cmder{k.Retry: a.retry, k.Parked: a.parked, k.DLQ: a.dead, k.Paused: a.paused, k.Meta: a.totals} {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return Depth{}, keyError(key, err)
		}
	}
	main, err := pendingSummary(a.pending)
	if err != nil {
		return Depth{}, keyError(k.Main, err)
	}
	second, err := pendingSummary(a.again)
	if err != nil {
		return Depth{}, keyError(k.Retry, err)
	}
	d := Depth{
		GroupRef: GroupRef{k.Name, k.Group}, Length: look.length, Pending: main.Count + second.Count,
		Retry: max(0, a.retry.Val()-second.Count), Retrying: a.parked.Val(), Delayed: look.delayed, Dead: a.dead.Val(),
		Totals: readTotals(a.totals.Val()),
	}
	if flag := a.paused.Val(); flag != "" { // an empty one pauses nothing
		d.Paused, d.Pause = true, readPause(flag)
	}
	var unread string
	g := look.groups[k.Group]
	if g != nil {
		d.Read, d.Consumers = g.read, g.consumers
	}
	if g != nil || look.length == 0 {
		if d.Lag, unread, err = c.lag(ctx, k.Main, g, look, most); err != nil {
			return Depth{}, err
		}
	}
	waiting := ""
	if a.retry.Val() > 0 { // all that lies there waits or is in flight
		n, err := c.count(ctx, k.Retry, "0-0", "+", 1)
		if err != nil {
			return Depth{}, err
		}
		waiting = n.First
	}
	for _, id := range []string{unread, waiting, main.Lower, second.Lower} {
		if t := wire.Time(id); !t.IsZero() {
			d.Oldest = max(d.Oldest, now.Sub(t))
		}
	}
	return d, nil
}

// pendingSummary is an XPENDING summary, empty where there is no such group or stream.
func pendingSummary(cmd *redis.XPendingCmd) (redis.XPending, error) {
	p, err := cmd.Result()
	if err != nil {
		if missingGroup(err) {
			err = nil
		}
		return redis.XPending{}, err
	}
	return *p, nil
}

// lagMark is what is known of the group that was counted before, which stands where this one stands or behind it.
type lagMark struct {
	at, first string
	lag       int64
	through   bool // lag is all there is behind it, else there is more
}

// later orders groups by where they stand, the one that has read most first: what lies behind one lies behind all before it,
// and is counted once.
func (s *streamLook) later(a, b string) int {
	x, y := s.groups[a], s.groups[b]
	if x == nil || y == nil {
		return cmp.Compare(a, b)
	}
	return wire.CompareIDs(y.last, x.last)
}

// lag counts what g has not read, and finds the first of it. The server's own figure is only used for what counting does
// not reach: deleted entries make it wrong or make it vanish. nil = unknown.
func (c *Client) lag(ctx context.Context, stream string, g *groupLook, look *streamLook, most int64) (lag *int64, first string, err error) {
	if look.length == 0 {
		return new(int64), "", nil
	}
	m := look.mark
	if m.first == "" || m.at != g.last {
		if m, err = c.markLag(ctx, stream, g, look, most); err != nil || m.first == "" {
			return nil, "", err
		}
		look.mark = m
	}
	switch {
	case m.through && m.lag == 0:
		return new(int64), "", nil
	case m.first == look.head: // nothing before it is left
		return &look.length, m.first, nil
	case m.through:
		return &m.lag, m.first, nil
	case g.lag >= m.lag && g.lag < look.length:
		return &g.lag, m.first, nil
	}
	return nil, m.first, nil
}

// markLag counts what lies behind g: up to the mark, where there is one behind it, and no more in all than for one group.
func (c *Client) markLag(ctx context.Context, stream string, g *groupLook, look *streamLook, most int64) (m lagMark, err error) {
	one, err := c.count(ctx, stream, g.last, "+", 1)
	if err != nil || one.Last == "" {
		return lagMark{}, err
	}
	m = lagMark{at: g.last, first: one.Last, through: true}
	if one.N == 0 {
		return m, nil
	}
	if look.head == "" {
		head, err := c.count(ctx, stream, "0-0", "+", 1)
		if err != nil {
			return lagMark{}, err
		}
		look.head = head.Last
	}
	if look.head == m.first {
		m.through = false // the length is the lag: it need not be counted
		return m, nil
	}
	to, before := "+", lagMark{through: true}
	if look.mark.first != "" && wire.CompareIDs(g.last, look.mark.at) < 0 {
		to, before = look.mark.at, look.mark
	}
	if m.lag, m.through = before.lag, before.through; m.through {
		n, err := c.countRange(ctx, stream, g.last, to, most-before.lag)
		if err != nil {
			return lagMark{}, err
		}
		m.lag, m.through = m.lag+n.N, n.Through
	}
	return m, nil
}

// countRange counts what lies behind after, up to to, in bounded steps. Not through: there are more, or Last is "".
func (c *Client) countRange(ctx context.Context, stream, after, to string, most int64) (all lua.Counted, err error) {
	all.Last = after
	for step := int64(0); !all.Through && all.N < most && step <= 2*most/countStep; step++ { // a step of large bodies counts few
		n, err := c.count(ctx, stream, all.Last, to, countStep)
		if err != nil {
			return all, err
		}
		all.N, all.Through, all.Last, all.First = all.N+n.N, n.Through, n.Last, cmp.Or(all.First, n.First)
		if n.Last == "" {
			break
		}
	}
	return all, nil
}

// count is lua.Count; Last is "" where the user may not run scripts.
func (c *Client) count(ctx context.Context, stream, after, to string, most int) (lua.Counted, error) {
	n, err := lua.Count(ctx, c.rdb, stream, after, to, most)
	if conn.Code(err) == "NOPERM" {
		return lua.Counted{}, nil
	}
	return n, err
}
