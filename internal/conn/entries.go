package conn

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// rawMost is how large a buffer, in bytes, is kept for the next reply.
const rawMost = 1 << 20

// Entries runs an XREADGROUP and hands over each entry it brought, its fields as name, value, name, value …, in a list that is
// used again for the next. One call at a time. The reply is taken apart here: go-redis would make a value of each part of it,
// five or more an entry, which are most of what a reader costs. An entry is one piece of memory, so that none keeps those beside
// it. For the same reason go-redis does not see what the server refuses, and does not leave a server that became a replica: a
// READONLY is the caller's to act on.
func (r *Reader) Entries(ctx context.Context, each func(stream, id string, fields []string), args ...any) error {
	if r.raw.Reset(); r.raw.Cap() > rawMost {
		r.raw = bytes.Buffer{}
	}
	if err := r.client.Process(ctx, redis.NewRawWriteToCmd(ctx, &r.raw, args...)); err != nil {
		return err
	}
	return (&reply{raw: r.raw.Bytes()}).streams(each)
}

// reply is read from front to back. The first thing that is not as it should be ends it.
type reply struct {
	raw  []byte
	at   int
	err  error
	ends []int    // of the strings of an entry: where each begins and ends
	few  []string // an entry's fields
}

// streams reads the whole: a map by RESP3, an array of pairs by RESP2.
func (p *reply) streams(each func(stream, id string, fields []string)) error {
	kind, n := p.head()
	for range n {
		if kind == '*' && p.list() != 2 || kind != '*' && kind != '%' {
			p.unknown()
		}
		from, to := p.text()
		if p.err != nil {
			return p.err
		}
		stream := string(p.raw[from:to])
		for range p.list() {
			if id, fields := p.entry(); p.err == nil {
				each(stream, id, fields)
			}
		}
	}
	if p.at != len(p.raw) {
		p.unknown()
	}
	return p.err
}

// entry reads an id and its fields, none where the entry was deleted.
func (p *reply) entry() (id string, fields []string) {
	if p.list() < 2 {
		p.unknown()
	}
	from, to := p.text()
	p.ends = append(p.ends[:0], from, to)
	for range p.list() {
		from, to = p.text()
		p.ends = append(p.ends, from, to)
	}
	if p.err != nil {
		return "", nil
	}
	base := p.ends[0]
	whole := string(p.raw[base:p.ends[len(p.ends)-1]])
	p.few = p.few[:0]
	for i := 2; i < len(p.ends); i += 2 {
		p.few = append(p.few, whole[p.ends[i]-base:p.ends[i+1]-base])
	}
	return whole[:p.ends[1]-base], p.few
}

// list reads an array's head; nil has none.
func (p *reply) list() int {
	kind, n := p.head()
	if kind != '*' && kind != '_' {
		p.unknown()
	}
	return n
}

// text is where a string begins and ends.
func (p *reply) text() (from, to int) {
	kind, n := p.head()
	from, to = p.at, p.at+n
	if kind != '$' || to+2 > len(p.raw) || p.raw[to] != '\r' {
		p.unknown()
		return 0, 0
	}
	p.at = to + 2
	return from, to
}

// head reads a line: what follows, and how much of it. Nil is '_', whichever way it was written.
func (p *reply) head() (kind byte, n int) {
	end := p.at
	for end+1 < len(p.raw) && (p.raw[end] != '\r' || p.raw[end+1] != '\n') {
		end++
	}
	if p.err != nil || end+1 >= len(p.raw) || end == p.at {
		p.unknown()
		return 0, 0
	}
	line := p.raw[p.at:end]
	p.at = end + 2
	switch n, err := strconv.Atoi(string(line[1:])); {
	case line[0] == '-':
		p.err = Said(line[1:])
	case line[0] == '_' || err == nil && n == -1:
		return '_', 0
	case err == nil && n >= 0 && n <= len(p.raw):
		return line[0], n
	}
	p.unknown()
	return 0, 0
}

func (p *reply) unknown() {
	if p.err == nil {
		p.err = fmt.Errorf("XREADGROUP: unknown reply %.100q at %d", p.raw[:min(len(p.raw), 100)], p.at)
	}
}
