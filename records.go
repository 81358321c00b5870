package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/wire"
)

func newRecord(stream string, m wire.Message) Record {
	r := Record{
		ID: m.ID, EntryID: m.EntryID, Stream: stream, PublishedAt: wire.Time(m.ID),
		Attempts: m.RC, Lost: m.Lost, Error: m.Err, Headers: wire.ParseHeaders(m.Headers), Fields: wire.Unknown(m.Fields),
	}
	if m.HasBody {
		r.Body = []byte(m.Body)
	}
	return r
}

// storedEntry is an entry of a stream with all its fields, in order: the map that go-redis makes of them loses both order
// and repeated names.
type storedEntry struct {
	id     string
	fields []string
	size   int
}

func storedEntries(v any) []storedEntry {
	list, _ := v.([]any)
	out := make([]storedEntry, 0, len(list))
	for _, e := range list {
		pair, _ := e.([]any)
		if len(pair) < 2 {
			continue
		}
		var s storedEntry
		s.id, _ = pair[0].(string)
		flat, _ := pair[1].([]any)
		s.fields = make([]string, len(flat))
		for i, f := range flat {
			s.fields[i], _ = f.(string)
			s.size += len(s.fields[i])
		}
		out = append(out, s)
	}
	return out
}

// steps chooses how much to ask for: bodies may be large, and a server cannot be asked for bytes.
type steps struct{ ask int }

const (
	stepFirst = 10
	stepMost  = 200      // huge bodies may follow small ones
	stepAim   = 1 << 20  // bytes of one answer
	pageBytes = 32 << 20 // bytes after which a page ends early
)

func (s *steps) next(most int) int {
	if s.ask == 0 {
		s.ask = stepFirst
	}
	return min(s.ask, most)
}

func (s *steps) got(n, size int) {
	if n > 0 {
		s.ask = max(1, min(stepMost, stepAim/max(1, size/n), 4*s.ask))
	}
}

// entryScan reads a range of a stream, or the entries of given ids, step by step.
type entryScan struct {
	c        *Client
	key      string
	from, to string // as XRANGE, or XREVRANGE when newest, takes them
	newest   bool
	ids      []string // instead of a range, when byID
	byID     bool
	end      bool // nothing more to read
	steps    steps
}

func (s *entryScan) next(ctx context.Context, most int) ([]storedEntry, error) {
	n := s.steps.next(most)
	var out []storedEntry
	if s.byID {
		n = min(n, len(s.ids))
		p := s.c.rdb.Pipeline()
		asked := make([]*redis.Cmd, n)
		for i, id := range s.ids[:n] {
			asked[i] = p.Do(ctx, "xrange", s.key, id, id)
		}
		if n > 0 {
			if err := execPipeline(ctx, p); err != nil {
				return nil, err
			}
		}
		for _, cmd := range asked {
			if err := cmd.Err(); err != nil {
				return nil, keyError(s.key, err)
			}
			out = append(out, storedEntries(cmd.Val())...)
		}
		s.ids = s.ids[n:]
		s.end = len(s.ids) == 0
	} else {
		verb := "xrange"
		if s.newest {
			verb = "xrevrange"
		}
		v, err := s.c.rdb.Do(ctx, verb, s.key, s.from, s.to, "count", n).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, keyError(s.key, err)
		}
		out = storedEntries(v)
		s.end = len(out) < n
		if len(out) > 0 {
			s.from = "(" + out[len(out)-1].id
		}
	}
	size := 0
	for _, e := range out {
		size += e.size
	}
	s.steps.got(len(out), size)
	return out, nil
}

// newScan reads a whole stream from one of its ends, or from behind an entry.
func (c *Client) newScan(key, after string, newest bool) *entryScan {
	s := &entryScan{c: c, key: key, from: "-", to: "+", newest: newest}
	if newest {
		s.from, s.to = "+", "-"
	}
	if after != "" {
		s.from = "(" + after
	}
	return s
}

// isEntryID is wire.IsEntryID for ids that are to be sent: Redis refuses numbers over 64 bits.
func isEntryID(id string) bool {
	ms, seq, _ := strings.Cut(id, "-")
	_, err := strconv.ParseUint(ms, 10, 64)
	_, err2 := strconv.ParseUint(seq, 10, 64)
	return wire.IsEntryID(id) && err == nil && err2 == nil
}

// Peek reads the stream itself, history included, oldest first. Page.After may also be the stable id or the entry id of a
// message in it, to begin behind that.
func (s *StreamAdmin) Peek(ctx context.Context, p Page) (Records, error) {
	limit, err := p.limit()
	if err != nil {
		return Records{}, err
	}
	op := "admin: peek of " + s.name
	k, _, err := s.mustExist(ctx, "admin: peek")
	if err != nil {
		return Records{}, err
	}
	after := p.After
	if after != "" && !isEntryID(after) {
		left := searchMost
		if after, err = s.c.findEntry(ctx, k.Main, p.After, &left); err != nil {
			return Records{}, serverError(op, err)
		}
		if after == "" {
			return Records{}, fmt.Errorf("%s: %q in the stream: %w", op, p.After, ErrNotFound)
		}
	}
	scan := s.c.newScan(k.Main, after, p.Newest)
	var out Records
	for size := 0; !scan.end && len(out.Items) < limit && size < pageBytes; {
		list, err := scan.next(ctx, limit-len(out.Items))
		if err != nil {
			return Records{}, serverError(op, err)
		}
		for _, e := range list {
			out.Items = append(out.Items, newRecord(s.name, wire.Parse(e.id, e.fields)))
			size += e.size
		}
	}
	if !scan.end && len(out.Items) > 0 {
		out.Next = out.Items[len(out.Items)-1].EntryID
	}
	return out, nil
}
