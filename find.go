package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// searchMost bounds a search by stable id: no index leads from it to where the message lies now.
const (
	searchMost = 150_000
	searchNear = 5_000 // where a message that was published with a delay is looked for first
)

// Get finds a message by its entry id, the name it is parked under, or its stable id: in the stream, and, of each group, in
// the retry stream, the parked ones and the dead letters, and among the delayed ones. Where copies stand in several places,
// an entry id finds the stream's own first, a stable id that is no entry id the live one. A search by stable id looks at up
// to 150,000 messages in all, of large ones at fewer. Errors: ErrNotFound.
func (s *StreamAdmin) Get(ctx context.Context, id string) (Record, error) {
	k, look, err := s.mustExist(ctx, "admin: get")
	if err != nil {
		return Record{}, err
	}
	registered, err := s.c.registeredGroups(ctx, k.Name)
	if err != nil {
		return Record{}, err
	}
	var groups []keys.Group
	for name := range look.groups {
		groups = append(groups, k.Group(name))
	}
	for _, name := range registered {
		if look.groups[name] == nil {
			groups = append(groups, k.Group(name))
		}
	}
	slices.SortFunc(groups, func(a, b keys.Group) int { return strings.Compare(a.Group, b.Group) })
	f := finder{c: s.c, stream: k, groups: groups}
	found, err := f.named(ctx, id)
	if err == nil && len(found) == 0 {
		found, err = f.search(ctx, id, "*", append(f.streams()[1:], k.Main)) // live ones first
	}
	if err != nil {
		return Record{}, serverError("admin: get of "+s.name, err)
	}
	if len(found) == 0 {
		return Record{}, fmt.Errorf("admin: get of %s: message %q%s: %w", s.name, id, f.bound(), ErrNotFound)
	}
	return found[0].record(s.name), nil
}

// finder looks for one message in all places of a stream.
type finder struct {
	c      *Client
	stream keys.Stream
	groups []keys.Group
	short  bool // a search ended at its bound
}

// bound says how far a search went that ended at its bound.
func (f *finder) bound() string {
	if f.short {
		return fmt.Sprintf(" among the first %d looked at", searchMost)
	}
	return ""
}

// sighting is a copy of a message, and the key that has it.
type sighting struct {
	key string
	m   wire.Message
	due time.Time // of parked ones
}

func (s sighting) record(stream string) Record {
	r := newRecord(stream, s.m)
	r.DueAt = s.due
	return r
}

// streams are those that may hold the message: the queue, then the retry streams, then the dead letters.
func (f *finder) streams() []string {
	list := []string{f.stream.Main}
	for _, g := range f.groups {
		list = append(list, g.Retry)
	}
	for _, g := range f.groups {
		list = append(list, g.DLQ)
	}
	return list
}

// named are the copies that the id itself names: as an entry of the streams, as a name it is parked under.
func (f *finder) named(ctx context.Context, id string) ([]sighting, error) {
	p := lookup{c: f.c, p: f.c.rdb.Pipeline()}
	if isEntryID(id) {
		for _, key := range f.streams() {
			p.entry(ctx, key, id)
		}
	}
	p.parked(ctx, f.stream.Due, f.stream.Parked, id)
	for _, g := range f.groups {
		p.parked(ctx, g.Due, g.Parked, id, "m/"+id, "m/"+id+"/2", "r/"+id, "x/"+id)
	}
	return p.sightings(ctx)
}

// search looks for copies that carry the id, among the parked ones of the groups whose names match, then in streams. It ends
// with the first.
func (f *finder) search(ctx context.Context, id, match string, streams []string) ([]sighting, error) {
	left := searchMost
	p := f.c.rdb.Pipeline()
	sizes := map[string]*redis.IntCmd{}
	for _, g := range f.groups {
		sizes[g.Parked] = p.HLen(ctx, g.Parked)
	}
	for _, key := range streams {
		sizes[key] = p.XLen(ctx, key)
	}
	if err := execPipeline(ctx, p); err != nil {
		return nil, err
	}
	for key, n := range sizes {
		if n.Err() != nil {
			return nil, keyError(key, n.Err())
		}
	}
	one := lookup{c: f.c, p: f.c.rdb.Pipeline()}
	for _, g := range f.groups {
		size := int(sizes[g.Parked].Val())
		for cursor := ""; size > 0 && left > 0; left -= min(size, stepMost) {
			member, next, err := lua.FindParked(ctx, f.c.rdb, g.Parked, id, cursor, match, stepMost)
			if err != nil {
				return nil, err
			}
			if member != "" {
				one.parked(ctx, g.Due, g.Parked, member)
				return one.sightings(ctx)
			}
			if cursor = next; next == "" {
				break
			}
		}
	}
	for _, key := range streams {
		if sizes[key].Val() == 0 {
			continue
		}
		entryID, err := f.c.findEntry(ctx, key, id, &left)
		if err != nil {
			return nil, err
		}
		if entryID != "" {
			one.entry(ctx, key, entryID)
			return one.sightings(ctx)
		}
	}
	f.short = left <= 0
	return nil, nil
}

// findEntry looks for a stable id in a stream; "" = not found. It begins at the time that the id tells: copies are younger
// than the message, but where the clock was set back. It reads whole entries, since a script would hold the server for longer
// than it takes to send them; so 2 KiB count as one message.
func (c *Client) findEntry(ctx context.Context, key, id string, left *int) (string, error) {
	laps := [][2]string{{"-", "+"}}
	if t := wire.Time(id); !t.IsZero() {
		start := strconv.FormatInt(t.UnixMilli(), 10) + "-0"
		laps = [][2]string{{start, "+"}, {"-", "(" + start}}
	}
	for _, lap := range laps {
		scan := &entryScan{c: c, key: key, from: lap[0], to: lap[1]}
		for !scan.end && *left > 0 {
			list, err := scan.next(ctx, stepMost)
			if err != nil {
				return "", err
			}
			bytes := 0
			for _, e := range list {
				if wire.Parse(e.id, e.fields).ID == id {
					return e.id, nil
				}
				bytes += e.size
			}
			*left -= max(len(list), bytes>>11)
		}
	}
	return "", nil
}

// lookup reads copies by name, in one pipeline.
type lookup struct {
	c     *Client
	p     redis.Pipeliner
	asked []ask
}

type ask struct {
	key, due string
	members  []string
	entries  *redis.Cmd
	values   *redis.SliceCmd
}

func (p *lookup) entry(ctx context.Context, key, id string) {
	p.asked = append(p.asked, ask{key: key, entries: p.p.Do(ctx, "xrange", key, id, id)})
}

func (p *lookup) parked(ctx context.Context, due, key string, members ...string) {
	p.asked = append(p.asked, ask{key: key, due: due, members: members, values: p.p.HMGet(ctx, key, members...)})
}

func (p *lookup) sightings(ctx context.Context) ([]sighting, error) {
	if err := execPipeline(ctx, p.p); err != nil {
		return nil, err
	}
	var out []sighting
	for _, a := range p.asked {
		if a.entries != nil {
			if err := a.entries.Err(); err != nil {
				return nil, keyError(a.key, err)
			}
			for _, e := range storedEntries(a.entries.Val()) {
				m, _ := deadMessage(e)
				out = append(out, sighting{key: a.key, m: m})
			}
			continue
		}
		if err := a.values.Err(); err != nil {
			return nil, keyError(a.key, err)
		}
		for i, v := range a.values.Val() {
			value, ok := v.(string)
			if !ok {
				continue
			}
			score, err := p.c.rdb.ZScore(ctx, a.due, a.members[i]).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return nil, keyError(a.due, err)
			}
			out = append(out, sighting{a.key, parkedMessage(a.members[i], value), dueTime(score)})
		}
	}
	return out, nil
}
