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

	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// parkedMessage reads a parked value. One that cannot be read is shown whole, in a field raw.
func parkedMessage(member, value string) wire.Message {
	fields, err := wire.Unpack(value)
	if err != nil {
		fields = []string{wire.Raw, value}
	}
	m := wire.Parse(member, fields)
	if m.ID == member { // no oid: the name tells, "d-…" itself or the source of a retry
		if kind, rest, ok := strings.Cut(member, "/"); ok && (kind == "m" || kind == "r" || kind == "x") {
			m.ID, _, _ = strings.Cut(rest, "/")
		}
	}
	return m
}

func dueTime(score float64) time.Time {
	if score > 0 && score < 1<<53 {
		return time.UnixMilli(int64(score)).UTC()
	}
	return time.Time{}
}

// Delayed lists the messages published for later, the soonest due first. Page.After may also be a message's id.
func (s *StreamAdmin) Delayed(ctx context.Context, p Page) (Records, error) {
	limit, err := p.limit()
	if err != nil {
		return Records{}, err
	}
	k, _, err := s.mustExist(ctx, "admin: delayed")
	if err != nil {
		return Records{}, err
	}
	r, err := s.c.parkedPage(ctx, s.name, k.Due, k.Parked, p, limit)
	return r, serverError("admin: delayed of "+s.name, err)
}

// Retrying lists the messages of the group that failed and wait out their backoff, the soonest due first. Page.After may
// also be the EntryID of one.
func (g *GroupAdmin) Retrying(ctx context.Context, p Page) (Records, error) {
	limit, err := p.limit()
	if err != nil {
		return Records{}, err
	}
	k, err := g.mustExist(ctx, "retrying")
	if err != nil {
		return Records{}, err
	}
	r, err := g.c.parkedPage(ctx, g.stream, k.Due, k.Parked, p, limit)
	return r, serverError(g.op("retrying"), err)
}

// CancelDelayed takes back a message that is not yet due, by the id that its publish returned; its DedupeID is free again.
// Errors: ErrNotFound, also when it became due meanwhile.
func (s *StreamAdmin) CancelDelayed(ctx context.Context, id string) error {
	op := "admin: cancel in " + s.name
	k, _, err := s.mustExist(ctx, "admin: cancel")
	if err != nil {
		return err
	}
	value, err := s.c.rdb.HGet(ctx, k.Parked, id).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return serverError(op, keyError(k.Parked, err))
	}
	if err == nil {
		did := ""
		if fields, err := wire.Unpack(value); err == nil {
			did = wire.Parse(id, fields).DID
		}
		there, err := lua.Cancel(ctx, s.c.rdb, k, id, did)
		if err != nil {
			return serverError(op, err)
		}
		if there {
			return nil
		}
	}
	return fmt.Errorf("%s: delayed message %q: %w", op, id, ErrNotFound)
}

// parkedCursor names a place among the parked: score, blank, member. Members may leave while their list is being paged.
type parkedCursor struct {
	score  float64
	member string
}

func (pc parkedCursor) String() string {
	return strconv.FormatFloat(pc.score, 'f', -1, 64) + " " + pc.member
}

// passed says that z stands at the cursor or before it.
func (pc parkedCursor) passed(z redis.Z, newest bool) bool {
	member, _ := z.Member.(string)
	if z.Score != pc.score {
		return (z.Score < pc.score) != newest
	}
	return member == pc.member || (member < pc.member) != newest
}

func (c *Client) parseCursor(ctx context.Context, due, after string) (*parkedCursor, error) {
	if score, member, ok := strings.Cut(after, " "); ok {
		if f, err := strconv.ParseFloat(score, 64); err == nil {
			return &parkedCursor{f, member}, nil
		}
	}
	f, err := c.rdb.ZScore(ctx, due, after).Result()
	if errors.Is(err, redis.Nil) {
		err = fmt.Errorf("message %q: %w", after, ErrNotFound)
	}
	return &parkedCursor{f, after}, err
}

// parkedOffset is the rank behind the cursor. Ranks shift while members leave, so it is asked anew for every step.
func (c *Client) parkedOffset(ctx context.Context, due string, at *parkedCursor, newest bool) (int64, error) {
	if at == nil {
		return 0, nil
	}
	rank, score := c.rdb.ZRank, strconv.FormatFloat(at.score, 'f', -1, 64)
	from, to := "-inf", "("+score
	if newest {
		rank, from, to = c.rdb.ZRevRank, "("+score, "+inf"
	}
	n, err := rank(ctx, due, at.member).Result()
	if errors.Is(err, redis.Nil) { // it left: from the first of its score, those passed are left out
		return c.rdb.ZCount(ctx, due, from, to).Result()
	}
	return n + 1, err
}

// parkedPage reads parked messages in the order of their due times. What no due time names is not listed: the sweeps give it one.
func (c *Client) parkedPage(ctx context.Context, stream, due, parked string, p Page, limit int) (Records, error) {
	var at *parkedCursor
	if p.After != "" {
		var err error
		if at, err = c.parseCursor(ctx, due, p.After); err != nil {
			return Records{}, err
		}
	}
	read := c.rdb.ZRangeWithScores
	if p.Newest {
		read = c.rdb.ZRevRangeWithScores
	}
	var out Records
	var steps steps
	for size := 0; len(out.Items) < limit && size < pageBytes; {
		n := steps.next(stepMost)
		offset, err := c.parkedOffset(ctx, due, at, p.Newest)
		if err != nil {
			return Records{}, keyError(due, err)
		}
		list, err := read(ctx, due, offset, offset+int64(n)-1).Result()
		if err != nil {
			return Records{}, keyError(due, err)
		}
		if len(list) == 0 {
			return out, nil
		}
		end := len(list) < n
		fresh := list
		if at != nil {
			fresh = slices.DeleteFunc(slices.Clone(list), func(z redis.Z) bool { return at.passed(z, p.Newest) })
		}
		if room := limit - len(out.Items); len(fresh) > room {
			fresh, end = fresh[:room], false
		}
		got, bytes, err := c.parkedValues(ctx, stream, parked, fresh)
		if err != nil {
			return Records{}, keyError(parked, err)
		}
		out.Items = append(out.Items, got...)
		size += bytes
		steps.got(len(fresh), bytes)
		if end {
			return out, nil
		}
		z := list[len(list)-1]
		if len(fresh) > 0 {
			z = fresh[len(fresh)-1]
		}
		member, _ := z.Member.(string)
		at = &parkedCursor{z.Score, member}
	}
	out.Next = at.String()
	return out, nil
}

// parkedValues reads what members stand for; a member whose value is gone stands for nothing.
func (c *Client) parkedValues(ctx context.Context, stream, parked string, list []redis.Z) (records []Record, size int, err error) {
	if len(list) == 0 {
		return nil, 0, nil
	}
	members := make([]string, len(list))
	for i, z := range list {
		members[i], _ = z.Member.(string)
	}
	values, err := c.rdb.HMGet(ctx, parked, members...).Result()
	if err != nil {
		return nil, 0, err
	}
	for i, v := range values {
		if s, ok := v.(string); ok {
			records = append(records, sighting{m: parkedMessage(members[i], s), due: dueTime(list[i].Score)}.record(stream))
			size += len(s)
		}
	}
	return records, size, nil
}
