package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// parkedBodies are the bodies of what is parked for the group, sorted.
func (d *desk) parkedBodies() []string {
	d.t.Helper()
	var out []string
	for _, v := range d.rdb.HVals(d.t.Context(), d.k.Parked).Val() {
		fields, err := wire.Unpack(v)
		d.must(err)
		out = append(out, wire.Parse("", fields).Body)
	}
	slices.Sort(out)
	return out
}

func (d *desk) buryMany(n int) []string {
	d.t.Helper()
	var bodies []string
	for i := range n {
		bodies = append(bodies, fmt.Sprintf("%04d", i))
		d.bury(bodies[i])
	}
	return bodies
}

func TestRedriveAllMovesEachOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	bodies := d.buryMany(450)
	without := d.add(d.k.DLQ, "*", "k", "v", "reason", "no-body")
	var told []string
	res, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{
		Progress: func(done, matched int) { told = append(told, fmt.Sprintf("%d/%d", done, matched)) },
	})
	d.must(err)
	d.equal("result", res, xstreamq.BulkResult{Done: 450, Remaining: 1, Unredrivable: []string{without}})
	d.equal("moved", d.parkedBodies(), bodies)
	if len(told) < 5 || told[len(told)-1] != "450/451" || told[0] != "100/451" {
		t.Errorf("progress %v", told)
	}
	res, err = d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{})
	d.must(err)
	d.equal("again", res, xstreamq.BulkResult{Remaining: 1, Unredrivable: []string{without}})
	d.equal("nothing twice", d.parkedBodies(), bodies)
}

func TestRedriveAllToStream(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.buryMany(120)
	res, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{ToStream: true})
	d.must(err)
	d.equal("result", res, xstreamq.BulkResult{Done: 120})
	d.equal("published anew", d.rdb.XLen(t.Context(), d.k.Main).Val(), 120)
	d.equal("not parked", len(d.parkedBodies()), 0)
}

// Markers would make a group skip what was redriven, and swallow a publish after a purge.
func TestBulkFreesMarkers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.bury("x", "oid", "1-0", "did", "o-1")
	d.do("set", d.k.Seen("1-0"), "1")
	d.do("set", d.k.Sent("o-1"), "1-0")
	_, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{})
	d.must(err)
	d.equal("seen, sent after a redrive", []any{d.rdb.Exists(t.Context(), d.k.Seen("1-0")).Val(), d.rdb.Exists(t.Context(), d.k.Sent("o-1")).Val()}, []any{0, 1})
	d.bury("x", "oid", "1-0", "did", "o-1")
	_, err = d.group().PurgeAll(t.Context(), xstreamq.Filter{All: true}, xstreamq.Bulk{})
	d.must(err)
	d.equal("sent after a purge", d.rdb.Exists(t.Context(), d.k.Sent("o-1")).Val(), 0)
}

func TestBulkLimitAndFilter(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for i := range 300 {
		reason := []string{"retries", "lost", "rejected"}[i%3]
		d.bury(fmt.Sprintf("%04d", i), "reason", reason)
	}
	lost := xstreamq.Filter{Reason: xstreamq.ReasonLost}
	var told string
	res, err := d.group().RedriveAll(t.Context(), lost, xstreamq.Bulk{Limit: 30, Progress: func(done, matched int) { told = fmt.Sprintf("%d/%d", done, matched) }})
	d.must(err)
	d.equal("limited", res, xstreamq.BulkResult{Done: 30, Remaining: 270})
	d.equal("progress", told, "30/30")
	d.equal("the oldest ones", strings.Join(d.parkedBodies()[:3], " "), "0001 0004 0007")
	res, err = d.group().PurgeAll(t.Context(), lost, xstreamq.Bulk{Limit: 1000})
	d.must(err)
	d.equal("the rest", res, xstreamq.BulkResult{Done: 70, Remaining: 200})
	res, err = d.group().PurgeAll(t.Context(), xstreamq.Filter{All: true}, xstreamq.Bulk{Limit: 101})
	d.must(err)
	d.equal("limit over a batch", res, xstreamq.BulkResult{Done: 101, Remaining: 99})
	d.equal("none of them lost", d.dead(lost), "")
}

func TestBulkByEntryIDs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	a, b, c := d.bury("a"), d.bury("b"), d.bury("c")
	res, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{EntryIDs: []string{b, a, "1-1", a}}, xstreamq.Bulk{})
	d.must(err)
	d.equal("redriven", res, xstreamq.BulkResult{Done: 2, Remaining: 1})
	for _, gone := range [][]string{{a}, {}} {
		res, err = d.group().RedriveAll(t.Context(), xstreamq.Filter{EntryIDs: gone}, xstreamq.Bulk{})
		d.must(err)
		d.equal("gone: nothing moved", res, xstreamq.BulkResult{Remaining: 1})
		res, err = d.group().PurgeAll(t.Context(), xstreamq.Filter{EntryIDs: gone}, xstreamq.Bulk{})
		d.must(err)
		d.equal("gone: nothing purged", res, xstreamq.BulkResult{Remaining: 1})
	}
	res, err = d.group().PurgeAll(t.Context(), xstreamq.Filter{EntryIDs: []string{c, b}}, xstreamq.Bulk{})
	d.must(err)
	d.equal("purged", res, xstreamq.BulkResult{Done: 1})
}

func TestBulkDryRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.buryMany(130)
	without := d.add(d.k.DLQ, "*", "reason", "no-body")
	start := time.Now()
	d.unchanged("a dry run", func() {
		res, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{DryRun: true, Rate: 1})
		d.must(err)
		d.equal("redrive", res, xstreamq.BulkResult{Done: 130, Remaining: 131, Unredrivable: []string{without}})
		res, err = d.group().PurgeAll(t.Context(), xstreamq.Filter{All: true}, xstreamq.Bulk{DryRun: true, Limit: 7})
		d.must(err)
		d.equal("purge", res, xstreamq.BulkResult{Done: 7, Remaining: 131})
	})
	if time.Since(start) > 30*time.Second {
		t.Error("a dry run keeps no rate")
	}
}

func TestBulkRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.bury("x")
	_, err := d.group().PurgeAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{})
	d.is(err, xstreamq.ErrNoFilter, "All")
	_, err = d.group().PurgeAll(t.Context(), xstreamq.Filter{Header: map[string]string{}}, xstreamq.Bulk{Limit: 1, DryRun: true})
	d.is(err, xstreamq.ErrNoFilter)
	for _, b := range []xstreamq.Bulk{{Limit: -1}, {Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Rate: 1e-9}} {
		_, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, b)
		d.is(err, xstreamq.ErrInvalidOption, "Bulk.")
		_, err = d.group().PurgeAll(t.Context(), xstreamq.Filter{All: true}, b)
		d.is(err, xstreamq.ErrInvalidOption, "Bulk.")
	}
	_, err = d.group().PurgeAll(t.Context(), xstreamq.Filter{All: true}, xstreamq.Bulk{ToStream: true})
	d.is(err, xstreamq.ErrInvalidOption, "ToStream")
	d.equal("untouched", d.rdb.XLen(t.Context(), d.k.DLQ).Val(), 1)
}

// The rate is kept evenly: small batches, none before its time.
func TestBulkRate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.buryMany(60)
	start := time.Now()
	var at []time.Duration
	res, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{Rate: 100, Progress: func(int, int) { at = append(at, time.Since(start)) }})
	d.must(err)
	d.equal("done", res.Done, 60)
	d.equal("batches", len(at), 6)
	for i, when := range at {
		if least := time.Duration(i) * 100 * time.Millisecond; when < least-20*time.Millisecond {
			t.Errorf("batch %d after %v, not before %v", i, when, least)
		}
	}
	if took := at[len(at)-1]; took > 30*time.Second {
		t.Errorf("60 at 100 a second took %v", took)
	}
}

func TestBulkIsResumed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	bodies := d.buryMany(530)
	ctx, cancel := context.WithCancel(t.Context())
	res, err := d.group().RedriveAll(ctx, xstreamq.Filter{}, xstreamq.Bulk{Progress: func(done, _ int) {
		if done == 300 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || res.Done != 300 {
		t.Errorf("%+v, %v", res, err)
	}
	d.equal("so far", len(d.parkedBodies()), 300)
	res, err = d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{})
	d.must(err)
	d.equal("the rest", res, xstreamq.BulkResult{Done: 230})
	d.equal("none missed, none twice", d.parkedBodies(), bodies)

	d.buryMany(2)
	slow, stop := context.WithCancel(t.Context())
	defer stop()
	_, err = d.group().RedriveAll(slow, xstreamq.Filter{}, xstreamq.Bulk{Rate: 0.001, Progress: func(int, int) {
		time.AfterFunc(10*time.Millisecond, stop) // in the wait for the next
	}})
	d.is(err, context.Canceled)
	d.equal("a wait ends with its context", d.rdb.XLen(t.Context(), d.k.DLQ).Val(), 1)
}

// What dies while a bulk operation runs is not its business: it would never end, or redrive what failed just now.
func TestBulkLeavesWhatDiesMeanwhile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.buryMany(250)
	res, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{Progress: func(int, int) { d.buryMany(90) }})
	d.must(err)
	d.equal("redriven", res, xstreamq.BulkResult{Done: 250, Remaining: 270})
	res, err = d.group().PurgeAll(t.Context(), xstreamq.Filter{All: true}, xstreamq.Bulk{Progress: func(int, int) { d.bury("late") }})
	d.must(err)
	d.equal("purged", res, xstreamq.BulkResult{Done: 270, Remaining: 3})
}

// Two operators at once: what the other moved counts for nobody twice.
func TestBulkBesideAnother(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	bodies := d.buryMany(400)
	other := 0
	res, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{Progress: func(done, _ int) {
		if done == 100 && other == 0 { // what the other moved is in the next batches too: done stays
			r, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{Limit: 150})
			d.must(err)
			other = r.Done
		}
	}})
	d.must(err)
	d.equal("together", res.Done+other, 400)
	d.equal("each once", d.parkedBodies(), bodies)
}

func TestBulkStopsAtABrokenKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.buryMany(3)
	d.do("set", d.k.Parked, "oops")
	res, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{})
	if err == nil || !strings.Contains(err.Error(), d.k.Parked) {
		t.Errorf("error %v, want it to name %s", err, d.k.Parked)
	}
	d.equal("all stay", []int{res.Done, res.Remaining}, []int{0, 3})
}

// Large bodies go in batches of their own size.
func TestBulkBoundsBytes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for range 10 {
		d.bury(strings.Repeat("x", 200<<10))
	}
	batches := 0
	res, err := d.group().RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{Progress: func(int, int) { batches++ }})
	d.must(err)
	d.equal("done", []int{res.Done, batches}, []int{10, 5})
}
