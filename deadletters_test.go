package xstreamq_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// dead lists what a filter matches, as entry ids.
func (d *desk) dead(f xstreamq.Filter) string {
	d.t.Helper()
	var out []string
	for l, err := range d.group().DeadLetters(d.t.Context(), f) {
		d.must(err)
		out = append(out, l.EntryID)
	}
	return strings.Join(out, " ")
}

func TestDeadLetterFields(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.add(d.k.Main, "1-0", "k", "1", "body", "a\x00\xff", "k", "2", "headers", `{"a":"b"}`)
	d.read(d.k.Main, "g", "c", 1)
	settled := d.fail("1-0", 0, 0, "boom")
	for l, err := range d.group().DeadLetters(t.Context(), xstreamq.Filter{}) {
		d.must(err)
		d.equal("dead letter", []any{l.ID, l.EntryID, l.Stream, l.Group, l.Reason, l.Error, l.Attempts, l.Headers, fmt.Sprintf("%q %q", l.Body, l.Fields)},
			[]any{"1-0", settled.DeadID, "s", "g", xstreamq.ReasonRetries, "boom", 1, map[string]string{"a": "b"}, `"a\x00\xff" [["k" "1"] ["k" "2"]]`})
		if age := time.Since(l.DiedAt); age < -time.Minute || age > time.Minute {
			t.Errorf("died %v ago", age)
		}
		d.equal("published", l.PublishedAt.UnixMilli(), 1)
	}
}

func TestDeadLetterFilters(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.add(d.k.DLQ, "1000-0", "body", "apple", "reason", "retries", "err", "timeout after 3 s", "headers", `{"tenant":"acme","x":""}`)
	d.add(d.k.DLQ, "2000-0", "body", "pear", "reason", "lost", "err", "timeout after 4 s", "headers", `{"tenant":"other"}`)
	d.add(d.k.DLQ, "3000-0", "reason", "no-body")
	d.add(d.k.DLQ, "3000-1", "body", "apple pie", "reason", "retries", "err", "refused")
	at := time.UnixMilli
	const all = "1000-0 2000-0 3000-0 3000-1"
	for _, c := range []struct {
		name string
		f    xstreamq.Filter
		want string
	}{
		{"nothing given", xstreamq.Filter{}, all},
		{"all", xstreamq.Filter{All: true}, all},
		{"ids, twice, out of order, one gone", xstreamq.Filter{EntryIDs: []string{"3000-1", "1000-0", "3000-1", "9-9"}}, "1000-0 3000-1"},
		{"no ids", xstreamq.Filter{EntryIDs: []string{}}, ""},
		{"ids and more", xstreamq.Filter{EntryIDs: []string{"3000-1", "1000-0"}, ErrorContains: "timeout"}, "1000-0"},
		{"reason", xstreamq.Filter{Reason: xstreamq.ReasonRetries}, "1000-0 3000-1"},
		{"another reason", xstreamq.Filter{Reason: "cut"}, ""},
		{"error", xstreamq.Filter{ErrorContains: "timeout"}, "1000-0 2000-0"},
		{"body", xstreamq.Filter{BodyContains: "apple"}, "1000-0 3000-1"},
		{"header", xstreamq.Filter{Header: map[string]string{"tenant": "acme"}}, "1000-0"},
		{"empty header", xstreamq.Filter{Header: map[string]string{"x": ""}}, "1000-0"},
		{"two headers", xstreamq.Filter{Header: map[string]string{"tenant": "acme", "x": "y"}}, ""},
		{"before", xstreamq.Filter{Before: at(3000)}, "1000-0 2000-0"},
		{"after", xstreamq.Filter{After: at(2000)}, "2000-0 3000-0 3000-1"},
		{"just after", xstreamq.Filter{After: at(2000).Add(1)}, "3000-0 3000-1"},
		{"between", xstreamq.Filter{After: at(1500), Before: at(3000)}, "2000-0"},
		{"before all", xstreamq.Filter{Before: at(-1)}, ""},
		{"match", xstreamq.Filter{Match: func(l xstreamq.DeadLetter) bool { return l.Body == nil }}, "3000-0"},
		{"all at once", xstreamq.Filter{
			Reason: xstreamq.ReasonRetries, ErrorContains: "3 s", BodyContains: "pp", Header: map[string]string{"tenant": "acme"},
			Before: at(1001), After: at(1000), Match: func(l xstreamq.DeadLetter) bool { return l.ID == "1000-0" },
		}, "1000-0"},
	} {
		d.equal(c.name, d.dead(c.f), c.want)
		page, next, err := d.group().DeadLetterPage(t.Context(), c.f, xstreamq.Page{})
		d.must(err)
		d.equal(c.name+": page", letterIDs(page)+next, c.want)
		page, _, err = d.group().DeadLetterPage(t.Context(), c.f, xstreamq.Page{Newest: true})
		d.must(err)
		words := strings.Fields(letterIDs(page))
		for i, j := 0, len(words)-1; i < j; i, j = i+1, j-1 {
			words[i], words[j] = words[j], words[i]
		}
		d.equal(c.name+": newest first", strings.Join(words, " "), c.want)
	}
	calls := 0
	d.dead(xstreamq.Filter{Reason: xstreamq.ReasonLost, Match: func(xstreamq.DeadLetter) bool { calls++; return true }})
	d.equal("Match is asked last", calls, 1)
	for _, id := range []string{"", "nonsense", "d-7-aa", "1000", "99999999999999999999-0"} {
		for _, err := range d.group().DeadLetters(t.Context(), xstreamq.Filter{EntryIDs: []string{id}}) {
			d.is(err, xstreamq.ErrInvalidOption, "EntryIDs", id)
		}
		_, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{EntryIDs: []string{id}}, xstreamq.Bulk{})
		d.is(err, xstreamq.ErrInvalidOption)
	}
}

func letterIDs(page []xstreamq.DeadLetter) string {
	var out []string
	for _, l := range page {
		out = append(out, l.EntryID)
	}
	return strings.Join(out, " ")
}

func TestDeadLetterPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	var up, down []string
	for i := range 330 {
		reason := "retries"
		if i%3 == 0 {
			reason = "lost"
		}
		id := d.add(d.k.DLQ, fmt.Sprintf("%d-0", i+1), "body", "x", "reason", reason)
		if reason == "lost" {
			up = append(up, id)
			down = append([]string{id}, down...)
		}
	}
	f := xstreamq.Filter{Reason: xstreamq.ReasonLost}
	for _, limit := range []int{1, 9, 110, 1000} {
		for _, newest := range []bool{false, true} {
			var got []string
			for p := (xstreamq.Page{Limit: limit, Newest: newest}); ; {
				page, next, err := d.group().DeadLetterPage(t.Context(), f, p)
				d.must(err)
				if len(page) > limit {
					t.Fatalf("%d of %d", len(page), limit)
				}
				got = append(got, strings.Fields(letterIDs(page))...)
				if next == "" {
					break
				}
				p.After = next
			}
			want := up
			if newest {
				want = down
			}
			d.equal("pages", strings.Join(got, " "), strings.Join(want, " "))
		}
	}
	page, _, err := d.group().DeadLetterPage(t.Context(), xstreamq.Filter{EntryIDs: []string{"4-0", "7-0", "10-0"}}, xstreamq.Page{After: "4-0"})
	d.must(err)
	d.equal("ids after", letterIDs(page), "7-0 10-0")
	page, _, err = d.group().DeadLetterPage(t.Context(), xstreamq.Filter{EntryIDs: []string{"4-0", "7-0", "10-0"}}, xstreamq.Page{After: "7-0", Newest: true})
	d.must(err)
	d.equal("ids before", letterIDs(page), "4-0")
	_, _, err = d.group().DeadLetterPage(t.Context(), f, xstreamq.Page{After: "nonsense"})
	d.is(err, xstreamq.ErrInvalidOption, "nonsense")
	_, _, err = d.group().DeadLetterPage(t.Context(), f, xstreamq.Page{Limit: -1})
	d.is(err, xstreamq.ErrInvalidOption)
}

// The loop's body may move what it sees, may end early, and never meets what dies meanwhile.
func TestDeadLettersWhileTheyMove(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for range 150 {
		d.bury("x")
	}
	n := 0
	for l, err := range d.group().DeadLetters(t.Context(), xstreamq.Filter{}) {
		d.must(err)
		n++
		d.bury("another")
		d.must(d.group().Purge(t.Context(), l.EntryID))
	}
	d.equal("met", n, 150)
	n = 0
	for _, err := range d.group().DeadLetters(t.Context(), xstreamq.Filter{}) {
		d.must(err)
		if n++; n == 3 {
			break
		}
	}
	d.equal("broke off at", n, 3)
}

func TestDeadLettersRawAndPacked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	wide := []string{"body", "wide", "headers", `{"a":"b"}`, "did", "o-1"}
	for i := range 3950 {
		wide = append(wide, fmt.Sprintf("f%d", i), "v")
	}
	d.add(d.k.Main, "1-0", wide...)
	d.read(d.k.Main, "g", "c", 1)
	settled := d.fail("1-0", 0, 5, "boom")
	d.do("hset", d.k.Parked, "m/2-0", "unreadable")
	d.do("zadd", d.k.Due, 1, "m/2-0")
	_, err := lua.PromoteRetries(t.Context(), d.rdb, d.k)
	d.must(err)
	d.bury("", "packed", "not a parked value", "reason", "too-wide")
	var seen []xstreamq.DeadLetter
	for l, err := range d.group().DeadLetters(t.Context(), xstreamq.Filter{}) {
		d.must(err)
		seen = append(seen, l)
	}
	l := seen[0]
	d.equal("too wide", []any{l.ID, string(l.Body), l.Reason, l.Error, l.Attempts, l.Headers, len(l.Fields), l.Fields[0]},
		[]any{"1-0", "wide", xstreamq.ReasonTooWide, "boom", 1, map[string]string{"a": "b"}, 3950, [2]string{"f0", "v"}})
	l = seen[1]
	d.equal("malformed", []any{l.Reason, l.Body == nil, l.Fields}, []any{xstreamq.ReasonMalformed, true, [][2]string{{"raw", "unreadable"}, {"member", "m/2-0"}}})
	d.equal("found by its body", d.dead(xstreamq.Filter{BodyContains: "wide"}), settled.DeadID)

	_, err = d.group().Redrive(t.Context(), settled.DeadID, xstreamq.RedriveOptions{})
	d.is(err, xstreamq.ErrUnredrivable, settled.DeadID)
	d.do("set", d.k.Sent("o-1"), "1-0")
	d.must(d.group().Purge(t.Context(), settled.DeadID))
	d.equal("purge frees the dedupe id of a packed one", d.rdb.Exists(t.Context(), d.k.Sent("o-1")).Val(), 0)
}

func TestRedriveOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.make("h")
	id := d.bury("x", "k", "v", "oid", "1-0", "rc", "6", "headers", `{"a":"b"}`, "err", "boom")
	d.do("set", d.k.Seen("1-0"), "1")
	where, err := d.group().Redrive(t.Context(), id, xstreamq.RedriveOptions{})
	d.must(err)
	r, err := d.stream().Get(t.Context(), where)
	d.must(err)
	d.equal("put back", []any{r.ID, r.Attempts, string(r.Body), r.Fields, r.Headers}, []any{"1-0", 0, "x", [][2]string{{"k", "v"}}, map[string]string{"a": "b"}})
	d.equal("its marker", d.rdb.Exists(t.Context(), d.k.Seen("1-0")).Val(), 0)
	d.equal("nothing for the others", d.rdb.XLen(t.Context(), d.k.Main).Val(), 0)
	_, err = d.group().Redrive(t.Context(), id, xstreamq.RedriveOptions{})
	d.is(err, xstreamq.ErrNotFound, id)
	promoted, err := lua.PromoteRetries(t.Context(), d.rdb, d.k)
	d.must(err)
	d.equal("due at once", promoted.Moved, 1)

	id = d.bury("x", "oid", "2-0", "rc", "6")
	where, err = d.group().Redrive(t.Context(), id, xstreamq.RedriveOptions{ToStream: true, Body: []byte("new\x00")})
	d.must(err)
	r, err = d.stream().Get(t.Context(), where)
	d.must(err)
	d.equal("published anew", []any{r.EntryID, r.ID, r.Attempts, string(r.Body)}, []any{where, where, 0, "new\x00"})

	id = d.add(d.k.DLQ, "*", "k", "v", "reason", "no-body")
	_, err = d.group().Redrive(t.Context(), id, xstreamq.RedriveOptions{})
	d.is(err, xstreamq.ErrUnredrivable, id)
	_, err = d.group().Redrive(t.Context(), id, xstreamq.RedriveOptions{Body: []byte{}})
	d.must(err)
	d.equal("all gone", d.dead(xstreamq.Filter{}), "")
	_, err = d.group().Redrive(t.Context(), "d-7-aa", xstreamq.RedriveOptions{})
	d.is(err, xstreamq.ErrInvalidOption, "d-7-aa")
}

func TestRedriveForGroupThatIsGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.bury("x")
	_, err := d.group().Redrive(t.Context(), id, xstreamq.RedriveOptions{})
	d.is(err, xstreamq.ErrNotFound, "group", "s/g")
	_, err = d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{})
	d.is(err, xstreamq.ErrNotFound, "group")
	d.equal("it stays", d.dead(xstreamq.Filter{}), id)
	_, err = d.group().Redrive(t.Context(), id, xstreamq.RedriveOptions{ToStream: true})
	d.must(err)
}

func TestPurgeOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	id, other := d.bury("x", "oid", "1-0", "did", "o-1"), d.bury("y", "did", "o-2")
	d.do("set", d.k.Sent("o-1"), "1-0")
	d.do("set", d.k.Sent("o-2"), "another message")
	d.must(d.group().Purge(t.Context(), id))
	d.must(d.group().Purge(t.Context(), other))
	d.equal("its marker is free", d.rdb.Exists(t.Context(), d.k.Sent("o-1")).Val(), 0)
	d.equal("another's stays", d.rdb.Exists(t.Context(), d.k.Sent("o-2")).Val(), 1)
	d.is(d.group().Purge(t.Context(), id), xstreamq.ErrNotFound, id)
	if err := d.group().Purge(t.Context(), "nonsense"); !errors.Is(err, xstreamq.ErrInvalidOption) {
		t.Error(err)
	}
}

// A parked value written by hand into a dead letter is shown, whatever it holds.
func TestDeadLetterPackedByHand(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.add(d.k.DLQ, "5-0", "packed", wire.Pack([]string{"k", "v"}), "reason", "too-wide")
	for l, err := range d.group().DeadLetters(t.Context(), xstreamq.Filter{}) {
		d.must(err)
		d.equal("no body inside either", []any{l.Body == nil, l.Fields}, []any{true, [][2]string{{"k", "v"}}})
	}
}
