package xstreamq_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

func TestCompact(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.fill(5000, "1")
	for range 4 {
		ids := d.read(d.k.Main, "g", "c", 1000)
		args := []any{"xack", d.k.Main, "g"}
		for _, id := range ids {
			args = append(args, id)
		}
		d.do(args...)
	}
	var dry xstreamq.Compaction
	d.unchanged("a dry run", func() {
		var err error
		dry, err = d.stream().Compact(t.Context(), true)
		d.must(err)
	})
	held := []xstreamq.GroupRef{{Stream: "s", Group: "g"}}
	d.equal("dry run", dry, xstreamq.Compaction{Removed: 4000, Floor: "1-4001", HeldBy: held})
	got, err := d.stream().Compact(t.Context(), false)
	d.must(err)
	d.equal("done", got, dry)
	d.equal("left", d.rdb.XLen(t.Context(), d.k.Main).Val(), 1000)
	got, err = d.stream().Compact(t.Context(), false)
	d.must(err)
	d.equal("again", got, xstreamq.Compaction{Floor: "1-4001", HeldBy: held})

	d.do("xgroup", "setid", d.k.Main, "g", "$")
	got, err = d.stream().Compact(t.Context(), false)
	d.must(err)
	d.equal("nobody needs anything", got, xstreamq.Compaction{Removed: 1000, Floor: "1-5001"})
}

// A forgotten group, of ours or not, holds the stream and is named; nothing it has not read goes.
func TestCompactNamesWhoHoldsTheStream(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for i := range 60 {
		d.add(d.k.Main, fmt.Sprintf("%d-0", i+1), "body", "x")
	}
	d.do("xgroup", "create", d.k.Main, "old", "10-0")
	ids := d.read(d.k.Main, "g", "c", 60)
	for _, id := range ids {
		d.do("xack", d.k.Main, "g", id)
	}
	want := xstreamq.Compaction{Removed: 10, Floor: "10-1", HeldBy: []xstreamq.GroupRef{{Stream: "s", Group: "old"}}}
	for _, dry := range []bool{true, false} {
		got, err := d.stream().Compact(t.Context(), dry)
		d.must(err)
		d.equal(fmt.Sprintf("dry %v", dry), got, want)
	}
	d.equal("left", d.rdb.XLen(t.Context(), d.k.Main).Val(), 50)
}

func TestCompactStopsForLostGroup(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.make("lost")
	id := d.add(d.k.Main, "*", "body", "x")
	d.read(d.k.Main, "g", "c", 1)
	d.do("xack", d.k.Main, "g", id)
	d.do("xgroup", "destroy", d.k.Main, "lost")
	for _, dry := range []bool{true, false} {
		got, err := d.stream().Compact(t.Context(), dry)
		d.must(err)
		d.equal("named", got, xstreamq.Compaction{HeldBy: []xstreamq.GroupRef{{Stream: "s", Group: "lost"}}})
	}
	d.equal("left", d.rdb.XLen(t.Context(), d.k.Main).Val(), 1)
}

func TestCompactWithoutGroups(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(d.k.Main, "*", "body", "x")
	got, err := d.stream().Compact(t.Context(), false)
	d.must(err)
	d.equal("nothing", got, xstreamq.Compaction{})
	d.equal("left", d.rdb.XLen(t.Context(), d.k.Main).Val(), 1)
}

func TestRetention(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for i := range 3 {
		d.add(d.k.Main, fmt.Sprintf("%d-0", i+1), "body", "x")
	}
	for _, id := range d.read(d.k.Main, "g", "c", 3) {
		d.do("xack", d.k.Main, "g", id)
	}
	retention := func() time.Duration {
		t.Helper()
		got, err := d.stream().Retention(t.Context())
		d.must(err)
		return got
	}
	d.equal("at first", retention(), time.Duration(0))
	for _, c := range [][2]time.Duration{{-7, -1}, {24 * time.Hour, 24 * time.Hour}, {0, 0}, {time.Millisecond, time.Millisecond}, {-1, -1}} {
		d.must(d.stream().SetRetention(t.Context(), c[0]))
		d.equal("stored", retention(), c[1])
	}
	d.is(d.stream().SetRetention(t.Context(), time.Microsecond), xstreamq.ErrInvalidOption, "1µs")
	got, err := d.stream().Compact(t.Context(), false)
	d.must(err)
	d.equal("kept for ever", got, xstreamq.Compaction{})
	d.must(d.stream().SetRetention(t.Context(), 0))
	got, err = d.stream().Compact(t.Context(), false)
	d.must(err)
	d.equal("kept no more", got.Removed, 3)
	d.do("hset", d.k.Stream.Meta, "retain", "junk")
	if _, err := d.stream().Retention(t.Context()); err == nil {
		t.Error("junk is no retention")
	}
}
