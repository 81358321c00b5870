package xstreamq_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

func ids(list []xstreamq.Record) string {
	var out []string
	for _, r := range list {
		out = append(out, r.EntryID)
	}
	return strings.Join(out, " ")
}

// walk reads all pages and holds that none is larger than asked.
func (d *desk) walk(p xstreamq.Page, page func(xstreamq.Page) (xstreamq.Records, error)) string {
	d.t.Helper()
	var out []xstreamq.Record
	for {
		r, err := page(p)
		d.must(err)
		if len(r.Items) > p.Limit {
			d.t.Fatalf("%d items, asked for %d", len(r.Items), p.Limit)
		}
		out = append(out, r.Items...)
		if r.Next == "" {
			return ids(out)
		}
		p.After = r.Next
	}
}

func TestAdminPeekPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var up, down []string
	for i := range 250 {
		id := fmt.Sprintf("%d-0", i+1)
		d.add(d.k.Main, id, "body", id)
		up = append(up, id)
		down = append([]string{id}, down...)
	}
	peek := func(p xstreamq.Page) (xstreamq.Records, error) { return d.stream().Peek(t.Context(), p) }
	for _, limit := range []int{1, 7, 100, 250, 1000} {
		d.equal("oldest first", d.walk(xstreamq.Page{Limit: limit}, peek), strings.Join(up, " "))
		d.equal("newest first", d.walk(xstreamq.Page{Limit: limit, Newest: true}, peek), strings.Join(down, " "))
	}
	first, err := peek(xstreamq.Page{})
	d.must(err)
	d.equal("default limit", len(first.Items), 100)
	d.equal("next", first.Next, "100-0")
	d.do("xdel", d.k.Main, "100-0")
	second, err := peek(xstreamq.Page{After: first.Next, Limit: 2})
	d.must(err)
	d.equal("after an entry that went", ids(second.Items), "101-0 102-0")
	for _, bad := range []int{-1, 1001} {
		_, err := peek(xstreamq.Page{Limit: bad})
		d.is(err, xstreamq.ErrInvalidOption, "Page.Limit", fmt.Sprint(bad))
	}
}

func TestAdminPeekAfterStableID(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(d.k.Main, "1-0", "body", "a")
	d.add(d.k.Main, "2-0", "body", "b", "oid", "d-7-aa")
	d.add(d.k.Main, "3-0", "body", "c", "oid", "own")
	d.add(d.k.Main, "4-0", "body", "d")
	after := func(id string) string {
		t.Helper()
		r, err := d.stream().Peek(t.Context(), xstreamq.Page{After: id})
		d.must(err)
		return ids(r.Items)
	}
	d.equal("entry id", after("1-0"), "2-0 3-0 4-0")
	d.equal("of a delayed one", after("d-7-aa"), "3-0 4-0")
	d.equal("a producer's", after("own"), "4-0")
	for _, missing := range []string{"d-8-bb", "nonsense", "99999999999999999999-0"} {
		_, err := d.stream().Peek(t.Context(), xstreamq.Page{After: missing})
		d.is(err, xstreamq.ErrNotFound, missing)
	}
}

func TestAdminPeekBoundsBytes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	body := strings.Repeat("x", 4<<20)
	var want []string
	for range 20 {
		want = append(want, d.add(d.k.Main, "*", "body", body))
	}
	r, err := d.stream().Peek(t.Context(), xstreamq.Page{})
	d.must(err)
	if len(r.Items) >= 20 || len(r.Items) == 0 || r.Next == "" {
		t.Errorf("a page of %d entries of 4 MiB", len(r.Items))
	}
	got := d.walk(xstreamq.Page{Limit: 100}, func(p xstreamq.Page) (xstreamq.Records, error) { return d.stream().Peek(t.Context(), p) })
	d.equal("all pages", got, strings.Join(want, " "))
}

func TestAdminRecordOfForeignEntry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(d.k.Main, "1700000000000-5", "", "", "k", "1", "body", "a\x00\xff\r\n", "k", "2", "rc", "3", "lost", "2", "body", "second", "headers", `{"a":"b"}`)
	d.add(d.k.Main, "1700000000001-0", "foo", "bar", "rc", "nan", "headers", "[]")
	d.add(d.k.Main, "1700000000002-0", "body", "")
	page, err := d.stream().Peek(t.Context(), xstreamq.Page{})
	d.must(err)
	r := page.Items[0]
	if !bytes.Equal(r.Body, []byte("a\x00\xff\r\n")) {
		t.Errorf("body %q", r.Body)
	}
	d.equal("fields", fmt.Sprintf("%q", r.Fields), `[["" ""] ["k" "1"] ["k" "2"]]`)
	d.equal("the rest", []any{r.ID, r.EntryID, r.Stream, r.Attempts, r.Lost, r.Headers, r.PublishedAt.UnixMilli(), r.DueAt.IsZero()},
		[]any{"1700000000000-5", "1700000000000-5", "s", 3, 2, map[string]string{"a": "b"}, 1700000000000, true})
	r = page.Items[1]
	if r.Body != nil || r.Attempts != 0 || r.Headers != nil {
		t.Errorf("%+v", r)
	}
	if r = page.Items[2]; r.Body == nil || len(r.Body) != 0 {
		t.Errorf("an empty body is one: %#v", r.Body)
	}
}

func TestAdminGetFindsEverywhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.make("h")
	d.add(d.k.Main, "1-0", "body", "main")
	d.add(d.k.Main, "2-0", "body", "promoted", "oid", "d-5-aa")
	d.add(d.k.Main, "3-0", "body", "to fail")
	d.add(d.k.Main, "4-0", "body", "history of a dead one", "oid", "d-5-cc")
	h := d.k.Stream.Group("h")
	d.add(h.Retry, "7-0", "body", "retry", "oid", "d-5-bb")
	d.add(h.DLQ, "8-0", "body", "dead", "oid", "d-5-cc", "reason", "lost", "rc", "4")
	delayed, _, err := lua.Publish(t.Context(), d.rdb, d.k.Stream, lua.Publication{Delay: time.Hour, Random: "ff", Fields: []string{"body", "delayed"}})
	d.must(err)
	d.read(d.k.Main, "g", "c", 3)
	d.fail("3-0", time.Hour, 5, "boom")
	d.fail("2-0", time.Hour, 5, "boom")
	d.do("hset", d.k.Parked, "x/9-0", wire.Pack([]string{"body", "3:oid,6:d-9-zz, is text here"}), "x/9-1", wire.Pack([]string{"body", "packed", "oid", "d-9-zz"}))
	d.do("hset", d.k.Parked, "m/10-0", wire.Pack([]string{"body", "without oid"}), "r/11-0", wire.Pack([]string{"body", "from the retry stream"}))
	d.do("xdel", d.k.Main, "3-0")
	for id, want := range map[string]string{
		"1-0": "main 1-0", "2-0": "promoted 2-0", "d-5-aa": "promoted m/2-0", "7-0": "retry 7-0", "d-5-bb": "retry 7-0",
		"8-0": "dead 8-0", "d-5-cc": "dead 8-0", delayed: "delayed " + delayed, "3-0": "to fail m/3-0", "m/3-0": "to fail m/3-0",
		"d-9-zz": "packed x/9-1", "10-0": "without oid m/10-0", "11-0": "from the retry stream r/11-0", "4-0": "history of a dead one 4-0",
	} {
		r, err := d.stream().Get(t.Context(), id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		d.equal(id, string(r.Body)+" "+r.EntryID, want)
	}
	r, err := d.stream().Get(t.Context(), "d-5-cc")
	d.must(err)
	d.equal("a dead letter's", []any{r.ID, r.Attempts, r.PublishedAt.UnixMilli()}, []any{"d-5-cc", 4, 5})
	r, err = d.stream().Get(t.Context(), delayed)
	d.must(err)
	if until := time.Until(r.DueAt); until < 50*time.Minute || until > 70*time.Minute {
		t.Errorf("due in %v", until)
	}
	for _, missing := range []string{"", "99-0", "d-5-dd", "nonsense", "18446744073709551616-0"} {
		_, err := d.stream().Get(t.Context(), missing)
		d.is(err, xstreamq.ErrNotFound, fmt.Sprintf("%q", missing))
	}
}

// A search goes on over many steps, of a stream and of a hash.
func TestAdminGetSearchesFar(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.fill(1700, "1")
	d.add(d.k.Main, "*", "body", "last", "oid", "far")
	args := []any{"hset", d.k.Parked}
	for i := range 1700 {
		args = append(args, fmt.Sprintf("m/1-%d", i), wire.Pack([]string{"body", "x", "oid", fmt.Sprintf("p%d", i)}))
	}
	d.do(args...)
	r, err := d.stream().Get(t.Context(), "far")
	d.must(err)
	d.equal("in the stream", string(r.Body), "last")
	for _, i := range []int{0, 1, 850, 1698, 1699} {
		r, err := d.stream().Get(t.Context(), fmt.Sprintf("p%d", i))
		d.must(err)
		d.equal("in the hash", r.EntryID, fmt.Sprintf("m/1-%d", i))
	}
}

func TestAdminDelayedAndRetryingPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	var want []string
	put := func(k1, k2, member string, due int64) {
		d.do("hset", k2, member, wire.Pack([]string{"body", member}))
		d.do("zadd", k1, due, member)
	}
	base := time.Now().Add(time.Hour).UnixMilli()
	for i := range 230 { // many due in the same millisecond
		member := fmt.Sprintf("d-1-%03d", i)
		put(d.k.Stream.Due, d.k.Stream.Parked, member, base+int64(i/60))
		put(d.k.Due, d.k.Parked, member, base+int64(i/60))
		want = append(want, member)
	}
	d.do("zadd", d.k.Stream.Due, base+1, "value-is-gone")
	down := make([]string, len(want))
	for i, m := range want {
		down[len(want)-1-i] = m
	}
	delayed := func(p xstreamq.Page) (xstreamq.Records, error) { return d.stream().Delayed(t.Context(), p) }
	retrying := func(p xstreamq.Page) (xstreamq.Records, error) { return d.group().Retrying(t.Context(), p) }
	for _, page := range []func(xstreamq.Page) (xstreamq.Records, error){delayed, retrying} {
		for _, limit := range []int{1, 33, 1000} {
			d.equal("soonest first", d.walk(xstreamq.Page{Limit: limit}, page), strings.Join(want, " "))
			d.equal("last first", d.walk(xstreamq.Page{Limit: limit, Newest: true}, page), strings.Join(down, " "))
		}
	}
	first, err := delayed(xstreamq.Page{Limit: 130})
	d.must(err)
	for _, m := range want[125:131] { // some of those passed leave, the cursor's own and one to come, too
		d.do("zrem", d.k.Stream.Due, m)
		d.do("hdel", d.k.Stream.Parked, m)
	}
	rest, err := delayed(xstreamq.Page{Limit: 1000, After: first.Next})
	d.must(err)
	d.equal("after the cursor left", ids(rest.Items), strings.Join(want[131:], " "))
	byID, err := delayed(xstreamq.Page{Limit: 2, After: want[20]})
	d.must(err)
	d.equal("after an id", ids(byID.Items), strings.Join(want[21:23], " "))
	d.equal("due", byID.Items[0].DueAt.UnixMilli(), base)
	_, err = delayed(xstreamq.Page{After: "d-0-0"})
	d.is(err, xstreamq.ErrNotFound, "d-0-0")
	_, err = retrying(xstreamq.Page{Limit: 1001})
	d.is(err, xstreamq.ErrInvalidOption)
}

func TestAdminRetryingShowsFailuresAndMalformed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.add(d.k.Main, "1-0", "body", "x", "k", "v", "headers", `{"a":"b"}`)
	d.read(d.k.Main, "g", "c", 1)
	d.fail("1-0", time.Hour, 5, "boom")
	d.do("hset", d.k.Parked, "m/2-0", "raw \xff value")
	d.do("zadd", d.k.Due, time.Now().Add(2*time.Hour).UnixMilli(), "m/2-0")
	r, err := d.group().Retrying(t.Context(), xstreamq.Page{})
	d.must(err)
	d.equal("both", ids(r.Items), "m/1-0 m/2-0")
	one := r.Items[0]
	d.equal("a failure", []any{one.ID, string(one.Body), one.Attempts, one.Error, one.Fields, one.Headers}, []any{"1-0", "x", 1, "boom", [][2]string{{"k", "v"}}, map[string]string{"a": "b"}})
	two := r.Items[1]
	d.equal("what cannot be read", []any{two.ID, two.Body == nil, fmt.Sprintf("%q", two.Fields)}, []any{"2-0", true, `[["raw" "raw \xff value"]]`})
}

func TestAdminCancelDelayed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	publish := func(random, dedupe string) (string, bool) {
		t.Helper()
		fields := []string{"body", "x"}
		if dedupe != "" {
			fields = append(fields, "did", dedupe)
		}
		id, duplicate, err := lua.Publish(t.Context(), d.rdb, d.k.Stream, lua.Publication{
			DedupeID: dedupe, Window: time.Hour, Delay: time.Hour, Random: random, Fields: fields,
		})
		d.must(err)
		return id, duplicate
	}
	plain, _ := publish("a", "")
	keep, _ := publish("b", "")
	once, _ := publish("c", "o-1")
	d.must(d.stream().CancelDelayed(t.Context(), plain))
	d.must(d.stream().CancelDelayed(t.Context(), once))
	r, err := d.stream().Delayed(t.Context(), xstreamq.Page{})
	d.must(err)
	d.equal("left", ids(r.Items), keep)
	d.is(d.stream().CancelDelayed(t.Context(), plain), xstreamq.ErrNotFound, plain)
	again, duplicate := publish("d", "o-1")
	d.equal("its dedupe id is free", []any{duplicate, again != once}, []any{false, true})
	d.do("set", d.k.Sent("o-1"), "another")
	d.must(d.stream().CancelDelayed(t.Context(), again))
	d.equal("another's marker stays", d.do("get", d.k.Sent("o-1")), "another")
	d.equal("due", d.rdb.ZCard(t.Context(), d.k.Stream.Due).Val(), 1)
}
