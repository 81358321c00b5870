package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// searchMost bounds a search by stable id: no index leads from it to where the message lies now.
const (
	searchMost = 100_000
	searchStep = 500
)

// Get finds a message by its entry id, the name it is parked under, or its stable id: in the stream, and, of each group, in
// the retry stream, the parked ones and the dead letters, and among the delayed ones. Where copies stand in several places,
// an entry id finds the stream's own first, a stable id that is no entry id the live one. A search by stable id looks at up
// to 100,000 messages in all. Errors: ErrNotFound.
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
	f := finder{c: s.c, stream: k, groups: groups, id: id}
	r, err := f.direct(ctx)
	if err == nil && r == nil {
		r, err = f.search(ctx)
	}
	if err != nil {
		return Record{}, serverError("admin: get of "+s.name, err)
	}
	if r == nil {
		return Record{}, fmt.Errorf("admin: get of %s: message %q: %w", s.name, id, ErrNotFound)
	}
	return *r, nil
}

// finder looks for one message in all places of a stream.
type finder struct {
	c      *Client
	stream keys.Stream
	groups []keys.Group
	id     string
}

// direct looks where the id itself is the name.
func (f *finder) direct(ctx context.Context) (*Record, error) {
	if isEntryID(f.id) {
		for _, key := range f.streams() {
			if r, err := f.entry(ctx, key, f.id); r != nil || err != nil {
				return r, err
			}
		}
	}
	if r, err := f.parked(ctx, f.stream.Due, f.stream.Parked, f.id); r != nil || err != nil {
		return r, err
	}
	for _, g := range f.groups {
		for _, member := range []string{f.id, "m/" + f.id, "r/" + f.id, "x/" + f.id} {
			if r, err := f.parked(ctx, g.Due, g.Parked, member); r != nil || err != nil {
				return r, err
			}
		}
	}
	return nil, nil
}

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

// search looks for copies that carry the id: where live ones are first.
func (f *finder) search(ctx context.Context) (*Record, error) {
	left := searchMost
	for _, g := range f.groups {
		for cursor := ""; left > 0; {
			member, next, err := lua.FindParked(ctx, f.c.rdb, g.Parked, f.id, cursor, stepMost)
			if err != nil {
				return nil, err
			}
			if member != "" {
				return f.parked(ctx, g.Due, g.Parked, member)
			}
			if left -= stepMost; next == "" {
				break
			}
			cursor = next
		}
	}
	streams := f.streams()
	for _, key := range append(streams[1:], streams[0]) {
		entryID, err := f.c.findEntry(ctx, key, f.id, &left)
		if err != nil {
			return nil, err
		}
		if entryID != "" {
			return f.entry(ctx, key, entryID)
		}
	}
	return nil, nil
}

// findEntry looks for a stable id in a stream; "" = not found.
func (c *Client) findEntry(ctx context.Context, key, id string, left *int) (string, error) {
	for from := ""; *left > 0; *left -= searchStep {
		entryID, next, err := lua.FindEntry(ctx, c.rdb, key, id, from, searchStep)
		if err != nil || entryID != "" || next == "" {
			return entryID, err
		}
		from = next
	}
	return "", nil
}

func (f *finder) entry(ctx context.Context, key, id string) (*Record, error) {
	scan := entryScan{c: f.c, key: key, ids: []string{id}, byID: true}
	list, err := scan.next(ctx, 1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	m, _ := deadMessage(list[0])
	r := newRecord(f.stream.Name, m)
	return &r, nil
}

func (f *finder) parked(ctx context.Context, due, parked, member string) (*Record, error) {
	p := f.c.rdb.Pipeline()
	value, score := p.HGet(ctx, parked, member), p.ZScore(ctx, due, member)
	if err := execPipeline(ctx, p); err != nil {
		return nil, err
	}
	if errors.Is(value.Err(), redis.Nil) {
		return nil, nil
	}
	if err := value.Err(); err != nil {
		return nil, keyError(parked, err)
	}
	r := parkedRecord(f.stream.Name, member, value.Val(), score.Val())
	return &r, nil
}
