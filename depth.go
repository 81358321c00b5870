package xstreamq

import (
	"context"
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
	Length   int64         `json:"length"`   // all entries of the stream, history included
	Lag      *int64        `json:"lag"`      // entries of the stream not yet read; nil = unknown, never a guess
	Pending  int64         `json:"pending"`  // in flight, from the stream and from the retry stream
	Retry    int64         `json:"retry"`    // due for another attempt, not yet read
	Retrying int64         `json:"retrying"` // parked: failed, waiting out their backoff
	Delayed  int64         `json:"delayed"`  // published for later; the stream's, the same for every group
	Dead     int64         `json:"dead"`     // dead letters
	Paused   bool          `json:"paused"`
	Oldest   time.Duration `json:"-"` // age, by the server's clock, of the oldest entry that waits or is in flight; 0 = none
}

// What a stream holds is counted in steps on the server, up to a bound; for a lag beyond it the server's own word is taken,
// if it gives one.
const (
	countStep = 500
	countMost = 10_000
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
	return s.c.depths(ctx, s.name, registered, false)
}

// depths reads a stream's groups. all keeps what is registered and not there, which is an error otherwise.
func (c *Client) depths(ctx context.Context, stream string, registered []string, all bool) ([]Depth, error) {
	op := "admin: depths of " + stream
	k, err := c.streamKeys(stream)
	if err != nil {
		return nil, err
	}
	look, err := c.look(ctx, k)
	if err != nil {
		return nil, serverError(op, err)
	}
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
			return nil, serverError(op, err)
		}
		if look.empty() && len(dead) == 0 {
			return nil, fmt.Errorf("%s: stream %w", op, ErrNotFound)
		}
		names = append(names, dead...)
	}
	if len(names) == 0 {
		return []Depth{{GroupRef: GroupRef{Stream: stream}, Length: look.length, Delayed: look.delayed}}, nil
	}
	now, err := c.serverTime(ctx, k.Main)
	if err != nil {
		return nil, serverError(op, err)
	}
	slices.Sort(names)
	out := make([]Depth, 0, len(names))
	for _, n := range names { // a foreign group's name may be one that we refuse; reading by it does no harm
		d, err := c.depth(ctx, k.Group(n), now)
		if err != nil {
			return out, serverError("admin: depth of "+stream+"/"+n, err)
		}
		out = append(out, d)
	}
	return out, nil
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
	ask := askLook(ctx, p, k.Stream)
	pending, again := p.XPending(ctx, k.Main, k.Group), p.XPending(ctx, k.Retry, k.Group)
	retry, parked, dead := p.XLen(ctx, k.Retry), p.HLen(ctx, k.Parked), p.XLen(ctx, k.DLQ)
	paused := p.StrLen(ctx, k.Paused) // an empty flag pauses nothing
	if err := execPipeline(ctx, p); err != nil {
		return Depth{}, err
	}
	look, err := ask.read(k.Stream)
	if err != nil {
		return Depth{}, err
	}
	for key, cmd := range map[string]redis.Cmder{k.Retry: retry, k.Parked: parked, k.DLQ: dead, k.Paused: paused} {
		if err := cmd.Err(); err != nil {
			return Depth{}, keyError(key, err)
		}
	}
	main, err := pendingSummary(pending)
	if err != nil {
		return Depth{}, keyError(k.Main, err)
	}
	second, err := pendingSummary(again)
	if err != nil {
		return Depth{}, keyError(k.Retry, err)
	}
	d := Depth{
		GroupRef: GroupRef{k.Name, k.Group}, Length: look.length, Pending: main.Count + second.Count,
		Retry: max(0, retry.Val()-second.Count), Retrying: parked.Val(), Delayed: look.delayed, Dead: dead.Val(), Paused: paused.Val() > 0,
	}
	var unread string
	if g := look.groups[k.Group]; g != nil || look.length == 0 {
		if d.Lag, unread, err = c.lag(ctx, k.Main, g, look.length); err != nil {
			return Depth{}, err
		}
	}
	waiting := ""
	if retry.Val() > 0 { // all that lies there waits or is in flight
		if _, waiting, _, err = c.count(ctx, k.Retry, "0-0", "+", 1); err != nil {
			return Depth{}, err
		}
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

// lag counts what g has not read, and finds the first of it. The server's own figure is only used for what counting does
// not reach: deleted entries make it wrong or make it vanish. nil = unknown.
func (c *Client) lag(ctx context.Context, stream string, g *groupLook, length int64) (lag *int64, first string, err error) {
	if length == 0 {
		return new(int64), "", nil
	}
	total, first, _, err := c.count(ctx, stream, g.last, "+", 1)
	if err != nil || first == "" {
		return nil, "", err
	}
	if total == 0 {
		return new(int64), "", nil
	}
	_, head, _, err := c.count(ctx, stream, "0-0", "+", 1)
	if err != nil {
		return nil, "", err
	}
	if head == first { // nothing before it is left
		return &length, first, nil
	}
	total, through, err := c.countRange(ctx, stream, g.last, "+", countMost)
	if err != nil {
		return nil, "", err
	}
	if through {
		return &total, first, nil
	}
	if g.lag >= total && g.lag < length {
		return &g.lag, first, nil
	}
	return nil, first, nil
}

// countRange counts what lies behind after, up to to, in bounded steps; through says that this is all, else there are more.
func (c *Client) countRange(ctx context.Context, stream, after, to string, most int64) (total int64, through bool, err error) {
	for step := int64(0); !through && total < most && step < 2*most/countStep; step++ { // a step of large bodies counts few
		var n int64
		if n, after, through, err = c.count(ctx, stream, after, to, countStep); err != nil || after == "" {
			return total, false, err
		}
		total += n
	}
	return total, through, nil
}

// count is lua.Count; last is "" where the user may not run scripts.
func (c *Client) count(ctx context.Context, stream, after, to string, most int) (n int64, last string, through bool, err error) {
	n, last, through, err = lua.Count(ctx, c.rdb, stream, after, to, most)
	if conn.Code(err) == "NOPERM" {
		return 0, "", true, nil
	}
	return n, last, through, err
}
