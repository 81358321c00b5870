package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// From when on the doctor speaks up.
const (
	aheadAllowed   = 10 * time.Second // of ids: clocks of two servers differ a little
	unreadAllowed  = 5 * time.Minute  // a deploy may take as long
	leaseOverdue   = time.Minute      // after a lease's end: takeovers are quick
	strangerIdle   = time.Hour        // with messages, or reading a group that is not ours
	leftoverIdle   = 24 * time.Hour   // without
	dyingWithin    = time.Hour
	longStream     = 10_000
	endlessHistory = "forever"
)

// unread says why what is stored could not be looked at, or not all of it.
func (e *examination) unread(why string) {
	for _, check := range storedChecks {
		e.note(check, levelUnknown, "Let the user read the keys of streams and groups; mend keys of the wrong type.", "%s", why)
	}
}

// count counts what lies behind an id, up to 250; where the user may not run scripts, the check is unknown.
func (e *examination) count(ctx context.Context, check, key, after string, most int) (n int64, first string, err error) {
	got, err := e.c.count(ctx, key, after, "+", most)
	if err == nil && got.Last == "" {
		e.note(check, levelUnknown, "Let the user run scripts.", "it takes a script to count, and scripts are refused")
	}
	return got.N, got.First, err
}

// streams looks at what is stored. A stream that cannot be read makes the checks unknown, and does not stop the others.
func (e *examination) streams(ctx context.Context, refs []GroupRef) error {
	groups, streams := 0, 0
	for len(refs) > 0 {
		n := slices.IndexFunc(refs, func(r GroupRef) bool { return r.Stream != refs[0].Stream })
		if n < 0 {
			n = len(refs)
		}
		e.where = fmt.Sprintf("stream %q: ", refs[0].Stream)
		looked, err := e.stream(ctx, keys.NewStream(e.c.prefix, refs[0].Stream))
		if err != nil && (ctx.Err() != nil || !conn.Refused(err)) {
			return err
		}
		if err != nil {
			e.unread(err.Error())
		}
		refs, groups, streams = refs[n:], groups+looked, streams+1
		if len(refs) > 0 && groups >= doctorMost {
			e.where = ""
			e.unread(fmt.Sprintf("only the first %d groups were looked at", groups))
			return nil
		}
	}
	e.where = ""
	for check, calm := range map[string]string{
		checkClock: "no id is ahead of the server's clock", checkTTL: "no key expires", checkConsumers: "none",
		checkPins: "none", checkDeadLetters: "none in the last hour", checkCompaction: "every long stream has a worker that trims it",
	} {
		e.note(check, levelOK, "", "%s (%s, %s)", calm, counted(int64(streams), "stream", "streams"), counted(int64(groups), "group", "groups"))
	}
	return nil
}

// ward is a group as the doctor finds it.
type ward struct {
	*groupLook
	k         keys.Group
	asked     consumersAsked
	swept     *redis.StringCmd
	letters   *redis.IntCmd
	consumers []ConsumerInfo
	alive     bool      // somebody reads it
	seen      time.Time // by somebody
}

func (e *examination) stream(ctx context.Context, k keys.Stream) (groups int, err error) {
	look, err := e.c.look(ctx, k)
	if err != nil {
		return 0, err
	}
	now, err := e.c.serverTime(ctx, k.Main)
	if err != nil {
		return 0, err
	}
	p := e.c.rdb.Pipeline()
	meta := p.HMGet(ctx, k.Meta, "retain", "by")
	lasting := map[string]*redis.DurationCmd{}
	for _, key := range []string{k.Main, k.Due, k.Parked, k.Groups, k.Meta} {
		lasting[key] = p.PTTL(ctx, key)
	}
	names := slices.Sorted(maps.Keys(look.groups))
	wards := make([]ward, len(names))
	for i, name := range names {
		g := k.Group(name)
		wards[i] = ward{groupLook: look.groups[name], k: g, asked: askConsumers(ctx, p, g), swept: p.HGet(ctx, g.Meta, "swept"), letters: p.XLen(ctx, g.DLQ)}
		for _, key := range []string{g.Retry, g.DLQ, g.Due, g.Parked, g.Workers, g.Meta} {
			lasting[key] = p.PTTL(ctx, key)
		}
	}
	if err := execPipeline(ctx, p); err != nil {
		return 0, err
	}
	for _, key := range slices.Sorted(maps.Keys(lasting)) {
		if err := lasting[key].Err(); err != nil {
			return 0, keyError(key, err)
		}
		if left := lasting[key].Val(); left > 0 {
			e.note(checkTTL, levelFail, "PERSIST the key, and find out who sets its expiry.", "key %q expires in %s, with all it holds", key, ago(left))
		}
	}
	if err := meta.Err(); err != nil {
		return 0, keyError(k.Meta, err)
	}
	if err := e.clock(ctx, k, look, now); err != nil {
		return 0, err
	}
	trims := false
	for i := range wards {
		if err := e.group(ctx, &wards[i], now); err != nil {
			return 0, err
		}
		trims = trims || wards[i].alive && wards[i].recorded
	}
	retain, _ := meta.Val()[0].(string)
	const compact = "Start a worker, or compact it now and then (xstreamq compact)."
	switch {
	case look.length < longStream:
	case len(wards) == 0:
		e.note(checkCompaction, levelWarn, "Make the group that is to read it, or delete the stream.", "%d entries and no group: nothing is ever trimmed", look.length)
	case retain == endlessHistory && meta.Val()[1] == "found":
		e.note(checkCompaction, levelWarn, "Say how long its history is to stay (xstreamq retain).",
			"%d entries, all kept, since it had a history before its first group", look.length)
	case retain == endlessHistory:
	case !trims:
		e.note(checkCompaction, levelWarn, compact, "%d entries, and no worker that would trim what is done", look.length)
	}
	return max(1, len(wards)), nil
}

// clock looks for ids that the server's clock has not reached, among entries and among what groups were given.
func (e *examination) clock(ctx context.Context, k keys.Stream, look *streamLook, now time.Time) error {
	limit := strconv.FormatInt(now.Add(aheadAllowed).UnixMilli(), 10) + "-0"
	n, first, err := e.count(ctx, checkClock, k.Main, limit, 1)
	if err != nil {
		return err
	}
	for _, g := range look.groups {
		if n == 0 && isEntryID(g.last) && wire.CompareIDs(g.last, limit) > 0 {
			n, first = 1, g.last
		}
	}
	if n == 0 {
		return nil
	}
	by := "by centuries"
	if t := wire.Time(first); !t.IsZero() {
		by = "by " + ago(t.Sub(now))
	}
	e.note(checkClock, levelWarn, "Publish with id * only, and keep the servers' clocks in step; new ids go on from there until the clock has caught up.",
		"%s is ahead of the server's clock %s: ages and retention by time are wrong", first, by)
	return nil
}

func (e *examination) group(ctx context.Context, w *ward, now time.Time) error {
	where := e.where
	e.where = fmt.Sprintf("%q: ", w.k.Name+"/"+w.name)
	defer func() { e.where = where }()
	var err error
	if w.consumers, err = w.asked.read(w.k, now); err != nil {
		return err
	}
	for _, cmd := range []redis.Cmder{w.swept, w.letters} {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return keyError(w.k.Meta+" or "+w.k.DLQ, err)
		}
	}
	w.seen = w.created
	if ms, err := strconv.ParseInt(w.swept.Val(), 10, 64); err == nil {
		w.seen = time.UnixMilli(ms)
	}
	for _, c := range w.consumers {
		if t := c.lastSeen(now); t.After(w.seen) {
			w.seen = t
		}
		w.alive = w.alive || c.alive() || !w.recorded && c.Idle >= 0 && c.Idle < strangerIdle
		e.consumer(c)
	}
	if err := e.pin(ctx, w, now); err != nil {
		return err
	}
	return e.dying(ctx, w, now)
}

func (e *examination) consumer(c ConsumerInfo) {
	switch {
	case c.Visibility > 0 && c.Pending > 0 && c.Heartbeat > c.Visibility+leaseOverdue:
		e.note(checkConsumers, levelWarn, "Start a worker: it takes over what the dead hold.",
			"%q holds %d, its lease ended %s ago, and nobody took over", c.Name, c.Pending, ago(c.Heartbeat-c.Visibility))
	case c.Visibility == 0 && c.Pending > 0 && c.Idle > strangerIdle:
		e.note(checkConsumers, levelWarn, "Start it, or a worker of this library in its place.",
			"%q holds %d, and was last seen %s ago", c.Name, c.Pending, ago(c.Idle))
	case c.Pending == 0 && !c.alive() && c.Idle > leftoverIdle:
		e.note(checkConsumers, levelWarn, "Remove it (xstreamq consumers rm).", "%q holds nothing, and was last seen %s ago", c.Name, ago(c.Idle))
	}
}

// pin looks for groups that need what nobody reads for them.
func (e *examination) pin(ctx context.Context, w *ward, now time.Time) error {
	if !w.there {
		e.note(checkPins, levelFail, "Start a worker: it makes the group again where it stood. Or delete the group.",
			"Redis has lost the group: until it is made again nothing of the stream is trimmed")
		return nil
	}
	if w.alive || now.Sub(w.seen) < unreadAllowed {
		return nil
	}
	needs := w.pending
	if needs == 0 {
		var err error
		if needs, _, err = e.count(ctx, checkPins, w.k.Main, w.last, 1); err != nil || needs == 0 {
			return err
		}
	}
	seen := "nobody ever read it"
	if !w.seen.IsZero() {
		seen = "nobody has read it for " + ago(now.Sub(w.seen))
	}
	e.note(checkPins, levelWarn, "Start its worker, or delete the group (xstreamq group rm).", "%s, and it needs messages: the stream is kept for it", seen)
	return nil
}

// dying looks for dead letters of the last hour.
func (e *examination) dying(ctx context.Context, w *ward, now time.Time) error {
	all := w.letters.Val()
	if all == 0 {
		return nil
	}
	n, _, err := e.count(ctx, checkDeadLetters, w.k.DLQ, strconv.FormatInt(now.Add(-dyingWithin).UnixMilli(), 10)+"-0", countStep)
	if err != nil || n == 0 {
		return err
	}
	fresh := strconv.FormatInt(n, 10)
	if n == countStep {
		fresh += " or more"
	}
	e.note(checkDeadLetters, levelWarn, "Read them (xstreamq dlq ls), mend the cause, then redrive or purge.",
		"%s in the last hour, %d in all", fresh, all)
	return nil
}
