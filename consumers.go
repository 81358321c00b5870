package xstreamq

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// PendingEntry is a message in flight.
type PendingEntry struct {
	EntryID, Consumer string
	Idle              time.Duration // since it was read
	Deliveries        int64         // of this entry; after every move it is a new one
	Retry             bool          // it lies in the retry stream
}

// Pending lists what is in flight, by entry id, from the stream and from the retry stream. Page.After is the EntryID of the
// last one before; two that share an id in both streams come on one page, also with Limit 1. Errors: ErrInvalidOption.
func (g *GroupAdmin) Pending(ctx context.Context, p Page) ([]PendingEntry, error) {
	limit, err := p.limit()
	if err != nil {
		return nil, err
	}
	if p.After != "" && !isEntryID(p.After) {
		return nil, invalid("Page.After", p.After, "the EntryID of a pending entry")
	}
	k, err := g.mustExist(ctx, "pending")
	if err != nil {
		return nil, err
	}
	var all []PendingEntry
	for _, key := range []string{k.Main, k.Retry} {
		list, err := g.pendingOf(ctx, key, p, limit)
		if err != nil {
			return nil, serverError(g.op("pending"), keyError(key, err))
		}
		for i := range list {
			list[i].Retry = key == k.Retry
		}
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b PendingEntry) int {
		if p.Newest {
			a, b = b, a
		}
		return wire.CompareIDs(a.EntryID, b.EntryID)
	})
	if len(all) > limit {
		n := limit
		if all[n-1].EntryID == all[n].EntryID { // one id in both streams: After could not tell them apart
			n--
		}
		if n == 0 {
			n = 2
		}
		all = all[:n]
	}
	return all, nil
}

// pendingOf lists one stream's. Redis lists them upward only, so the newest ones are the end of a walk.
func (g *GroupAdmin) pendingOf(ctx context.Context, key string, p Page, limit int) ([]PendingEntry, error) {
	from, to, most := "-", "+", limit
	if p.After != "" && p.Newest {
		to, most = p.After, pageMost
	} else if p.After != "" {
		from = wire.NextID(p.After)
	}
	if p.Newest {
		most = pageMost
	}
	var out []PendingEntry
	for {
		list, err := g.c.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: g.group, Start: from, End: to, Count: int64(most)}).Result()
		if err != nil {
			if missingGroup(err) {
				return nil, nil
			}
			return nil, err
		}
		for _, x := range list {
			if x.ID != p.After {
				out = append(out, PendingEntry{EntryID: x.ID, Consumer: x.Consumer, Idle: max(0, x.Idle), Deliveries: x.RetryCount})
			}
		}
		if p.Newest && len(out) > limit {
			out = slices.Clone(out[len(out)-limit:])
		}
		if !p.Newest || len(list) < most {
			return out, nil
		}
		from = wire.NextID(list[len(list)-1].ID)
	}
}

// ConsumerInfo is one consumer of a group.
type ConsumerInfo struct {
	Name       string
	Pending    int64         // messages it holds, of both streams
	Heartbeat  time.Duration // since the last one, by the server's clock; < 0: not a consumer of ours
	Visibility time.Duration // how long a silence is allowed; 0 = no lease of ours
	Idle       time.Duration // since Redis saw it last; < 0: it does not tell. Some servers count from its last message
}

// Consumers lists all consumers of the group, by name: ours by their lease records, and all that Redis knows.
func (g *GroupAdmin) Consumers(ctx context.Context) ([]ConsumerInfo, error) {
	k, err := g.mustExist(ctx, "consumers")
	if err != nil {
		return nil, err
	}
	now, err := g.c.serverTime(ctx, k.Main)
	if err != nil {
		return nil, serverError(g.op("consumers"), err)
	}
	p := g.c.rdb.Pipeline()
	ask := askConsumers(ctx, p, k)
	if err := execPipeline(ctx, p); err != nil {
		return nil, serverError(g.op("consumers"), err)
	}
	all, err := ask.read(k, now)
	return all, serverError(g.op("consumers"), err)
}

// consumersAsked is what a look at a group's consumers asks.
type consumersAsked struct {
	leases  *redis.MapStringStringCmd
	streams [2]*redis.Cmd
}

func askConsumers(ctx context.Context, p redis.Pipeliner, k keys.Group) consumersAsked {
	return consumersAsked{
		p.HGetAll(ctx, k.Workers),
		[2]*redis.Cmd{askXInfo(ctx, p, "consumers", k.Main, k.Group), askXInfo(ctx, p, "consumers", k.Retry, k.Group)},
	}
}

func (a consumersAsked) read(k keys.Group, now time.Time) ([]ConsumerInfo, error) {
	if err := a.leases.Err(); err != nil {
		return nil, keyError(k.Workers, err)
	}
	all := map[string]*ConsumerInfo{}
	named := func(name string) *ConsumerInfo {
		if all[name] == nil {
			all[name] = &ConsumerInfo{Name: name, Heartbeat: -1, Idle: -1}
		}
		return all[name]
	}
	for i, cmd := range a.streams {
		rows, err := infoRows(cmd)
		if err != nil {
			return nil, keyError([]string{k.Main, k.Retry}[i], err)
		}
		for _, r := range rows {
			c := named(r.text("name"))
			c.Pending += r.number("pending", 0)
			if ms := r.number("idle", -1); ms >= 0 && (c.Idle < 0 || time.Duration(ms)*time.Millisecond < c.Idle) {
				c.Idle = time.Duration(ms) * time.Millisecond
			}
		}
	}
	for name, record := range a.leases.Val() {
		c := named(name)
		// visibility|heartbeat|version|state|suspect, the two in ms
		part := strings.SplitN(record, "|", 5)
		if len(part) < 5 || part[3] == "foreign" {
			continue
		}
		visibility, err1 := strconv.ParseInt(part[0], 10, 64)
		beat, err2 := strconv.ParseInt(part[1], 10, 64)
		if err1 == nil && err2 == nil {
			c.Visibility = time.Duration(visibility) * time.Millisecond
			c.Heartbeat = max(0, now.Sub(time.UnixMilli(beat)))
		}
	}
	out := make([]ConsumerInfo, 0, len(all))
	for c := range maps.Values(all) {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b ConsumerInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// alive says that the consumer's lease has not ended.
func (c ConsumerInfo) alive() bool {
	return c.Heartbeat >= 0 && c.Visibility > 0 && c.Heartbeat <= c.Visibility
}

// lastSeen is when a consumer was seen last, by its heartbeat or else by Redis; zero when neither tells.
func (c ConsumerInfo) lastSeen(now time.Time) time.Time {
	if c.Heartbeat >= 0 {
		return now.Add(-c.Heartbeat)
	}
	if c.Idle >= 0 {
		return now.Add(-c.Idle)
	}
	return time.Time{}
}

// RemoveConsumer takes a consumer that holds nothing out of the group; the look and the removal are one step. A worker that
// still runs under the name goes on under a new one. Errors: ErrNotEmpty, ErrNotFound.
func (g *GroupAdmin) RemoveConsumer(ctx context.Context, name string) error {
	all, err := g.Consumers(ctx)
	if err != nil {
		return err
	}
	op := g.op("remove consumer " + strconv.Quote(name))
	if !slices.ContainsFunc(all, func(c ConsumerInfo) bool { return c.Name == name }) {
		return fmt.Errorf("%s: %w", op, ErrNotFound)
	}
	k, err := g.c.groupKeys(g.stream, g.group)
	if err != nil {
		return err
	}
	held, err := lua.Remove(ctx, g.c.rdb, k, name)
	if err != nil {
		return serverError(op, err)
	}
	if held > 0 {
		return fmt.Errorf("%s: %w: %d; wait until they are settled, or taken over", op, ErrNotEmpty, held)
	}
	return nil
}
