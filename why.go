package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Whereabouts is where a message is for one group, and what it waits for.
type Whereabouts struct {
	// State is waiting (the group has not read it), delayed (published for later), in-flight (a consumer has it), retrying
	// (parked until its next attempt), dead, done (the group is through with it), or unknown.
	State    string
	Detail   string    // the answer in one to three sentences; text and names from elsewhere are quoted in it
	Ahead    *int64    // waiting: so many are read before it; nil = unknown, or more than 10,000
	Consumer string    // in-flight: who has it
	Due      time.Time // delayed and retrying: due then; in-flight: its consumer's lease ends then if no heartbeat comes; else zero
	Record   *Record   // the message as it lies there; nil when nothing is left of it
}

// Why says where a message is for this group: by the ID that its publish returned, or by an entry id of its own. Of a message
// whose entry was trimmed, only the ID finds the copies. Where an entry id names two messages, one in the stream and one
// among the retries or dead letters, the answer is of the first and names the second. It looks at up to 150,000 messages.
// A group that does not exist is an answer too; ErrNotFound is for a stream that does not.
func (g *GroupAdmin) Why(ctx context.Context, id string) (Whereabouts, error) {
	q, err := g.inquire(ctx)
	if err != nil {
		return Whereabouts{}, err
	}
	w, err := q.answer(ctx, id)
	return w, serverError(g.op("why"), err)
}

// inquiry is what is known of the group when a message is looked for.
type inquiry struct {
	finder
	g         *GroupAdmin
	k         keys.Group
	group     *groupLook // nil: it does not exist
	removed   bool
	retry     *groupLook // of the retry stream
	now       time.Time
	pause     string // the flag; "" = not paused
	consumers []ConsumerInfo
	swept     time.Time // when one of its workers last said so; zero = never
	held      bool      // what is due waits, since the retry stream is full enough
}

func (g *GroupAdmin) inquire(ctx context.Context) (*inquiry, error) {
	k, err := g.c.groupKeys(g.stream, g.group)
	if err != nil {
		return nil, err
	}
	_, look, err := (&StreamAdmin{g.c, g.stream}).mustExist(ctx, "admin: why")
	if err != nil {
		return nil, err
	}
	q := &inquiry{
		finder: finder{c: g.c, stream: k.Stream, groups: []keys.Group{k}},
		g:      g, k: k, group: look.groups[g.group], removed: look.gone[g.group], retry: &groupLook{last: "0-0"},
	}
	if q.now, err = g.c.serverTime(ctx, k.Main); err != nil {
		return nil, serverError(g.op("why"), err)
	}
	if q.group == nil {
		return q, nil
	}
	p := g.c.rdb.Pipeline()
	consumers := askConsumers(ctx, p, k)
	retry, pause, meta := askXInfo(ctx, p, "groups", k.Retry), p.Get(ctx, k.Paused), p.HMGet(ctx, k.Meta, "swept", "held")
	if err := execPipeline(ctx, p); err != nil {
		return nil, serverError(g.op("why"), err)
	}
	if q.consumers, err = consumers.read(k, q.now); err != nil {
		return nil, serverError(g.op("why"), err)
	}
	rows, err := infoRows(retry)
	if err != nil {
		return nil, serverError(g.op("why"), keyError(k.Retry, err))
	}
	for _, r := range rows {
		if l := newGroupLook(r); l.name == g.group {
			q.retry = l
		}
	}
	for key, cmd := range map[string]redis.Cmder{k.Paused: pause, k.Meta: meta} {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, serverError(g.op("why"), keyError(key, err))
		}
	}
	q.pause = pause.Val()
	swept, _ := meta.Val()[0].(string)
	if ms, err := strconv.ParseInt(swept, 10, 64); err == nil {
		q.swept = time.UnixMilli(ms)
	}
	q.held = meta.Val()[1] == "1"
	return q, nil
}

func (q *inquiry) answer(ctx context.Context, id string) (Whereabouts, error) {
	named, err := q.named(ctx, id)
	if err == nil && len(named) == 0 && !isEntryID(id) { // it may have been published with a delay, and be in the stream by now
		var at string
		left := searchNear
		if at, err = q.c.findEntry(ctx, q.k.Main, id, &left); err == nil && at != "" {
			named, err = q.named(ctx, at)
		}
	}
	if err != nil {
		return Whereabouts{}, err
	}
	var entry *sighting // in the stream
	stable, match := id, "*"
	for i, s := range named {
		if s.key == q.k.Main {
			entry, stable, match = &named[i], s.m.ID, "[rx]/*" // its first failure is parked under the entry's own name
		} else if entry != nil && s.m.ID != stable {
			continue // another message, whose entry has the same id
		}
		if w, open, err := q.at(ctx, s); open || err != nil {
			return q.beside(w, id, named), err
		}
	}
	seen, err := q.c.rdb.Exists(ctx, q.k.Seen(stable)).Result()
	if err != nil {
		return Whereabouts{}, err
	}
	if seen == 0 {
		streams := []string{q.k.Retry, q.k.DLQ}
		if entry == nil {
			streams = append(streams, q.k.Main)
		}
		found, err := q.search(ctx, stable, match, streams)
		if err != nil {
			return Whereabouts{}, err
		}
		for i, s := range found {
			if w, open, err := q.at(ctx, s); open || err != nil {
				return w, err
			}
			if s.key == q.k.Main {
				entry = &found[i]
			}
		}
	}
	w, err := q.settled(ctx, id, entry, seen > 0)
	return q.beside(w, id, named), err
}

// beside names a message that shares the entry id of the one in the stream: ids of two streams may be the same.
func (q *inquiry) beside(w Whereabouts, id string, named []sighting) Whereabouts {
	for _, s := range named {
		place := map[string]string{q.k.Retry: "the retry stream", q.k.DLQ: "the dead letters"}[s.key]
		if place != "" && s.m.EntryID == id && named[0].key == q.k.Main && s.m.ID != named[0].m.ID {
			w.Detail += fmt.Sprintf(" Another message, %q, is the entry with this id in %s.", s.m.ID, place)
		}
	}
	return w
}

// at says how a copy stands; false when the group is through with it.
func (q *inquiry) at(ctx context.Context, s sighting) (w Whereabouts, open bool, err error) {
	switch s.key {
	case q.k.Stream.Parked:
		w = q.delayed(s)
	case q.k.Parked:
		w = q.retrying(s)
	case q.k.DLQ:
		w = q.dead(s)
	default:
		group := q.group
		if s.key == q.k.Retry {
			group = q.retry
		}
		if group == nil {
			w = q.missing()
			break
		}
		if wire.CompareIDs(s.m.EntryID, group.last) > 0 {
			w, err = q.waiting(ctx, s, group)
			break
		}
		if w, open, err = q.inFlight(ctx, s.key, s.m.EntryID, s.m); !open || err != nil {
			return w, open, err
		}
	}
	r := s.record(q.g.stream)
	w.Record = &r
	return w, true, err
}

func (q *inquiry) waiting(ctx context.Context, s sighting, group *groupLook) (Whereabouts, error) {
	w := Whereabouts{State: "waiting"}
	ahead, err := q.c.countRange(ctx, s.key, group.last, "("+s.m.EntryID, countMost)
	if err != nil {
		return w, err
	}
	place := "Waits in the stream"
	if s.key == q.k.Retry {
		place = "Waits in the retry stream"
	}
	switch {
	case ahead.Through && ahead.N == 0:
		w.Ahead = &ahead.N
		place += ", next to be read"
	case ahead.Through:
		w.Ahead = &ahead.N
		place += " behind " + counted(ahead.N, "other", "others")
	case ahead.N >= countMost:
		place += " behind more than 10,000 others"
	}
	if h := history(s.m); h != "" {
		place += "," + h
	}
	w.Detail = place + ". " + q.reading()
	return w, nil
}

// inFlight says who has an entry; false when nobody has.
func (q *inquiry) inFlight(ctx context.Context, key, entryID string, m wire.Message) (w Whereabouts, held bool, err error) {
	list, err := q.c.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: q.k.Group, Start: entryID, End: entryID, Count: 1}).Result()
	if missingGroup(err) || err == nil && len(list) == 0 {
		return w, false, nil
	}
	if err != nil {
		return w, false, keyError(key, err)
	}
	w = Whereabouts{State: "in-flight", Consumer: list[0].Consumer}
	c := ConsumerInfo{Heartbeat: -1}
	if i := slices.IndexFunc(q.consumers, func(c ConsumerInfo) bool { return c.Name == w.Consumer }); i >= 0 {
		c = q.consumers[i]
	}
	since := q.when(q.now.Add(-max(0, list[0].Idle)))
	if h := history(m); h != "" {
		since += "," + h
	}
	if c.Heartbeat < 0 || c.Visibility == 0 {
		w.Detail = fmt.Sprintf("Consumer %q, which has no lease of this library, was given it at %s. ", w.Consumer, since)
		if q.live() > 0 {
			w.Detail += "Unless it acknowledges it, a worker takes it over when the longest visibility timeout of the group has passed."
		} else {
			w.Detail += "It stays there until that consumer acknowledges it, or a worker of this library reads the group."
		}
		return w, true, nil
	}
	w.Due = q.now.Add(c.Visibility - c.Heartbeat).UTC()
	w.Detail = fmt.Sprintf("Consumer %q was given it at %s. ", w.Consumer, since)
	switch {
	case c.Heartbeat <= c.Visibility:
		w.Detail += "Its lease is renewed while it lives; without a heartbeat it ends at " + q.when(w.Due) + "."
	case q.live() > 0:
		w.Detail += "Its lease ended at " + q.when(w.Due) + ": another worker takes the message over within seconds."
	default:
		w.Detail += "Its lease ended at " + q.when(w.Due) + ", and no worker lives that could take the message over: start one."
	}
	return w, true, nil
}

// settled is the answer when no copy waits, is parked or is dead. entry is the message in the stream, if it is still there.
func (q *inquiry) settled(ctx context.Context, id string, entry *sighting, seen bool) (Whereabouts, error) {
	w := Whereabouts{State: "done"}
	past := q.group != nil && isEntryID(id) && wire.CompareIDs(id, q.group.last) <= 0
	if entry != nil {
		r := entry.record(q.g.stream)
		w.Record = &r
	} else if isEntryID(id) { // deleted or trimmed under the one who has it
		for _, key := range []string{q.k.Main, q.k.Retry} {
			w, held, err := q.inFlight(ctx, key, id, wire.Message{})
			if held || err != nil {
				w.Detail += " Its entry is no longer in the stream."
				return w, err
			}
		}
	}
	switch {
	case seen:
		w.Detail = "Done: the group handled it."
	case q.short:
		w.State = "unknown"
		w.Detail = "Found neither waiting nor dead" + q.bound() + "; there are more than that."
	case entry != nil:
		w.Detail = "Done: the group was given it, and no copy of it waits, is in flight, parked or dead. It was handled, or purged, or lay before the place where the group began."
	case q.group == nil:
		w = q.missing()
	case past:
		w.Detail = "Done, as far as can be told: it is no longer in the stream, the group is past it, and no copy of it waits or is dead. " +
			"If this is the entry id of a retry or of a dead letter, that entry has moved on: ask with the ID that its publish returned."
	default:
		w.State = "unknown"
		w.Detail = "Nothing has this id: neither the stream nor this group's retries and dead letters."
		if !isEntryID(id) {
			break
		}
		younger, err := q.c.count(ctx, q.k.Main, id, "+", 1)
		if err != nil {
			return w, err
		}
		if younger.N > 0 {
			w.Detail = "The group has not come so far, and the stream has no such entry: it was trimmed or deleted before the group read it, or never was there."
		}
	}
	return w, nil
}
