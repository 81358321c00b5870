package xstreamq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Reason says why a message is a dead letter.
type Reason string

// Reasons. Others may come with later versions: they are dead letters all the same.
const (
	ReasonRetries   Reason = "retries"   // it failed more often than MaxRetries
	ReasonLost      Reason = "lost"      // more workers than MaxLost died or hung with it
	ReasonRejected  Reason = "rejected"  // its handler said so
	ReasonNoBody    Reason = "no-body"   // an entry without a body
	ReasonOverflow  Reason = "overflow"  // MaxParked was reached
	ReasonCut       Reason = "cut"       // a hundred shutdowns cut its handler
	ReasonMalformed Reason = "malformed" // a parked value that cannot be read; it is in the field raw
	ReasonTooWide   Reason = "too-wide"  // an entry of over 3,900 fields, which cannot be moved
	ReasonExpired   Reason = "expired"   // it was older than ExpireAfter when it would have started
)

// DeadLetter is a message that is not tried again by itself.
type DeadLetter struct {
	Record
	Group  string
	Reason Reason
	Error  string    // the last one
	DiedAt time.Time // by the server's clock
}

// Filter chooses dead letters: all fields given must match. The zero value matches everything, but PurgeAll then wants All.
type Filter struct {
	All           bool     // nothing else is given, and that is meant
	EntryIDs      []string // ErrInvalidOption for what is no entry id; those that are gone match nothing, an empty list neither
	Reason        Reason
	ErrorContains string
	BodyContains  string
	Header        map[string]string     // each of these, with this value
	Before, After time.Time             // of death: at After or later, before Before
	Match         func(DeadLetter) bool // last, on the client
}

func (f Filter) empty() bool {
	return f.EntryIDs == nil && f.Reason == "" && f.ErrorContains == "" && f.BodyContains == "" && len(f.Header) == 0 &&
		f.Before.IsZero() && f.After.IsZero() && f.Match == nil
}

func (f Filter) check() error {
	for _, id := range f.EntryIDs {
		if !isEntryID(id) {
			return invalid("Filter.EntryIDs", id, "the entry id of a dead letter, such as 1700000000000-0,")
		}
	}
	return nil
}

func (f Filter) matches(l letter) bool {
	if f.Reason != "" && f.Reason != l.Reason || !strings.Contains(l.Error, f.ErrorContains) ||
		!bytes.Contains(l.Body, []byte(f.BodyContains)) {
		return false
	}
	for name, want := range f.Header {
		if got, ok := l.Headers[name]; !ok || got != want {
			return false
		}
	}
	if !f.Before.IsZero() && !l.DiedAt.Before(f.Before) || !f.After.IsZero() && l.DiedAt.Before(f.After) {
		return false
	}
	return f.Match == nil || f.Match(l.DeadLetter)
}

// letter is a dead letter with what moving it takes.
type letter struct {
	DeadLetter
	did        string
	redrivable bool // it has a body of its own
	size       int
}

// deadMessage reads an entry of a dead-letter stream. One too wide to be moved is packed: its own fields are shown.
func deadMessage(e storedEntry) (m wire.Message, redrivable bool) {
	m = wire.Parse(e.id, e.fields)
	redrivable = m.HasBody
	if m.Reason != string(ReasonTooWide) || m.HasBody {
		return m, redrivable
	}
	for i := 0; i+1 < len(e.fields); i += 2 {
		if e.fields[i] != wire.Packed {
			continue
		}
		if fields, err := wire.Unpack(e.fields[i+1]); err == nil {
			in := wire.Parse(e.id, fields)
			m.Body, m.HasBody, m.Headers, m.DID, m.From, m.Fields = in.Body, in.HasBody, in.Headers, in.DID, in.From, in.Fields
		}
		break
	}
	return m, redrivable
}

func newLetter(k keys.Group, e storedEntry) letter {
	m, redrivable := deadMessage(e)
	return letter{
		DeadLetter: DeadLetter{
			Record: newRecord(k.Name, m), Group: k.Group, Reason: Reason(m.Reason), Error: m.Err, DiedAt: wire.Time(e.id),
		},
		did: m.DID, redrivable: redrivable, size: e.size,
	}
}

// scanLetters reads what a filter can match, oldest first or newest first, from behind an entry ("" = from the end).
func (g *GroupAdmin) scanLetters(k keys.Group, f Filter, after string, newest bool) *entryScan {
	s := g.c.newScan(k.DLQ, after, newest)
	if f.EntryIDs != nil {
		s.byID = true
		s.ids = slices.Compact(slices.SortedFunc(slices.Values(f.EntryIDs), wire.CompareIDs))
		if newest {
			slices.Reverse(s.ids)
		}
		s.ids = slices.DeleteFunc(s.ids, func(id string) bool {
			c := wire.CompareIDs(id, after)
			return after != "" && (c == 0 || (c < 0) != newest)
		})
		s.end = len(s.ids) == 0
		return s
	}
	first, last := &s.from, &s.to
	if newest {
		first, last = &s.to, &s.from
	}
	if ms := f.After.UnixMilli(); !f.After.IsZero() && ms > 0 && (newest || after == "") {
		*first = strconv.FormatInt(ms, 10)
	}
	if ms := f.Before.UnixMilli(); !f.Before.IsZero() && ms > 0 && (!newest || after == "") {
		*last = strconv.FormatInt(ms, 10)
	}
	return s
}

// newestLetter is the last entry of the dead-letter stream, "" when it is empty.
func (g *GroupAdmin) newestLetter(ctx context.Context, k keys.Group) (string, error) {
	s := g.c.newScan(k.DLQ, "", true)
	list, err := s.next(ctx, 1)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].id, nil
}

// DeadLetters walks those that match, oldest first, reading in steps behind the scenes, up to the newest there is when it
// begins; so the loop may redrive or purge. It yields one error at most, as its last. Errors: ErrInvalidOption.
func (g *GroupAdmin) DeadLetters(ctx context.Context, f Filter) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		stopped := errors.New("stopped")
		err := g.eachLetter(ctx, "dead letters", f, func(l letter) error {
			if !yield(l.DeadLetter, nil) {
				return stopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(DeadLetter{}, err)
		}
	}
}

func (g *GroupAdmin) eachLetter(ctx context.Context, op string, f Filter, visit func(letter) error) error {
	if err := f.check(); err != nil {
		return err
	}
	k, err := g.mustExist(ctx, op)
	if err != nil {
		return err
	}
	last, err := g.newestLetter(ctx, k)
	if err != nil {
		return serverError(g.op(op), err)
	}
	for scan := g.scanLetters(k, f, "", false); last != "" && !scan.end; {
		list, err := scan.next(ctx, stepMost)
		if err != nil {
			return serverError(g.op(op), err)
		}
		for _, e := range list {
			if wire.CompareIDs(e.id, last) > 0 {
				return nil
			}
			l := newLetter(k, e)
			if !f.matches(l) {
				continue
			}
			if err := visit(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// pageScan is how many dead letters one page looks at, at most: few may match.
const pageScan = 10_000

// DeadLetterPage is one page of those that match, for screens; next is After of the next page, "" at the end. A page looks
// at 10,000 dead letters at most, so where few match it may be short, or empty, before the end. Errors: ErrInvalidOption.
func (g *GroupAdmin) DeadLetterPage(ctx context.Context, f Filter, p Page) (page []DeadLetter, next string, err error) {
	limit, err := p.limit()
	if err != nil {
		return nil, "", err
	}
	if err := f.check(); err != nil {
		return nil, "", err
	}
	if p.After != "" && !isEntryID(p.After) {
		return nil, "", invalid("Page.After", p.After, "the next of the page before")
	}
	k, err := g.mustExist(ctx, "dead letters")
	if err != nil {
		return nil, "", err
	}
	scan := g.scanLetters(k, f, p.After, p.Newest)
	for looked, size := 0, 0; !scan.end && looked < pageScan && size < pageBytes; {
		list, err := scan.next(ctx, stepMost)
		if err != nil {
			return nil, "", serverError(g.op("dead letters"), err)
		}
		for _, e := range list {
			next = e.id
			if l := newLetter(k, e); f.matches(l) {
				page = append(page, l.DeadLetter)
				size += l.size
				if len(page) == limit {
					return page, next, nil
				}
			}
		}
		looked += len(list)
	}
	if scan.end {
		next = ""
	}
	return page, next, nil
}

// RedriveOptions change how one dead letter is put back.
type RedriveOptions struct {
	ToStream bool   // publish it anew, for every group of the stream; it gets a new ID
	Body     []byte // replaces the body when not nil; one that has none becomes redrivable
}

// Redrive puts one back for this group: its attempts and lost leases count from 0, its ID, headers and body stay. It
// returns where it went: the name it is parked under until a worker takes it, within about a second, or, with ToStream,
// the new entry of the stream. Errors: ErrNotFound, also when the group itself was removed, ErrUnredrivable, ErrInvalidOption.
func (g *GroupAdmin) Redrive(ctx context.Context, entryID string, opts RedriveOptions) (newEntryID string, err error) {
	k, l, err := g.letter(ctx, "redrive", entryID)
	if err != nil {
		return "", err
	}
	res, err := lua.Redrive(ctx, g.c.rdb, k, []lua.Letter{{EntryID: l.EntryID, ID: l.ID}}, opts.ToStream, opts.Body)
	if err != nil {
		return "", g.redriveError(err)
	}
	switch res[0].Status {
	case lua.Moved:
		return res[0].Detail, nil
	case lua.Unredrivable:
		return "", fmt.Errorf("%s: dead letter %s: %w; RedriveOptions.Body gives it one", g.op("redrive"), entryID, ErrUnredrivable)
	case lua.Gone:
		return "", g.noLetter("redrive", entryID)
	}
	return "", serverError(g.op("redrive")+": dead letter "+entryID, conn.Said(res[0].Detail))
}

func (g *GroupAdmin) redriveError(err error) error {
	if conn.Code(err) == "NOGROUP" {
		return fmt.Errorf("%s: group %w: create it, or redrive to the stream", g.op("redrive"), ErrNotFound)
	}
	return serverError(g.op("redrive"), err)
}

// Purge deletes one, for good, and frees the DedupeID it was published with. Errors: ErrNotFound, ErrInvalidOption.
func (g *GroupAdmin) Purge(ctx context.Context, entryID string) error {
	k, l, err := g.letter(ctx, "purge", entryID)
	if err != nil {
		return err
	}
	n, err := lua.Purge(ctx, g.c.rdb, k, []lua.Letter{{EntryID: l.EntryID, ID: l.ID, DedupeID: l.did}})
	if err != nil {
		return serverError(g.op("purge"), err)
	}
	if n == 0 {
		return g.noLetter("purge", entryID)
	}
	return nil
}

func (g *GroupAdmin) noLetter(op, entryID string) error {
	return fmt.Errorf("%s: dead letter %s: %w", g.op(op), entryID, ErrNotFound)
}

func (g *GroupAdmin) letter(ctx context.Context, op, entryID string) (keys.Group, letter, error) {
	if !isEntryID(entryID) {
		return keys.Group{}, letter{}, invalid("entry id", entryID, "the entry id of a dead letter, such as 1700000000000-0,")
	}
	k, err := g.mustExist(ctx, op)
	if err != nil {
		return k, letter{}, err
	}
	scan := entryScan{c: g.c, key: k.DLQ, ids: []string{entryID}, byID: true}
	list, err := scan.next(ctx, 1)
	if err != nil {
		return k, letter{}, serverError(g.op(op), err)
	}
	if len(list) == 0 {
		return k, letter{}, g.noLetter(op, entryID)
	}
	return k, newLetter(k, list[0]), nil
}

// deadLetter reads one. Errors: ErrNotFound.
func (g *GroupAdmin) deadLetter(ctx context.Context, entryID string) (DeadLetter, error) {
	_, l, err := g.letter(ctx, "dead letter", entryID)
	return l.DeadLetter, err
}
