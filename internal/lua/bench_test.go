package lua

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// check is one statement about the scripts. It runs on the scripts as they are, where it must hold, and on those
// mutants that it is said to catch, where it must not.
type check struct {
	name string
	run  func(b *bench)
}

// epoch is the server time at which a bench starts, in ms.
const epoch = 1_000_000_000_000

// bench is a stream with a group g on a real server, with the scripts under test in front of it. The scripts read the
// time from a key, so that a check can say to the millisecond what they write and when an owner dies.
type bench struct {
	ctx    context.Context
	c      redis.UniversalClient
	r      Runner
	k      keys.Group
	seen   []string // markers to look at, by id
	sent   []string
	last   []string // the state after the last step
	from   string   // where the next step of a reclaim goes on
	faults []string
	filled bool // its server refuses what needs memory
}

// stop ends a check that cannot go on.
type stop struct{}

func newBench(t testing.TB, patches ...patch) *bench {
	t.Helper()
	s, err := swapped(append([]patch{clockPatch}, patches...))
	if err != nil {
		t.Fatal(err)
	}
	c := redistest.Deployed(t).Client(t)
	b := &bench{ctx: t.Context(), c: c, r: swap{c, s}, k: keys.NewStream(redistest.Prefix(t), "s").Group("g")}
	b.at(0)
	return b
}

// holds runs a check and returns what it found wrong.
func (b *bench) holds(ch check) (faults []string) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(stop); !ok {
				panic(p)
			}
		}
		faults = b.faults
	}()
	ch.run(b)
	return nil
}

func (b *bench) failf(format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

func (b *bench) fatalf(format string, args ...any) {
	b.failf(format, args...)
	panic(stop{})
}

func (b *bench) must(err error) {
	if err != nil {
		b.fatalf("unexpected error: %v", err)
	}
}

func (b *bench) do(args ...any) any {
	v, err := b.c.Do(b.ctx, args...).Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // compared as go-redis documents
		b.fatalf("%v: %v", args, err)
	}
	return v
}

// at sets the scripts' clock, ms after the epoch.
func (b *bench) at(ms int64) {
	if b.filled {
		b.full(false)
		defer b.full(true)
	}
	b.do("SET", b.k.Main+".clock", epoch+ms)
}

func (b *bench) equal(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.failf("%s: %v, want %v", what, got, want)
	}
}

// then holds the reply of a call, made just before, and what it changed against what is wanted: lines of the state with
// "- " are gone, with "+ " are new; nothing else may have changed.
func (b *bench) then(reply, want, change string) {
	now := b.state()
	got, wanted := sorted(diff(b.last, now)), sorted(lines(change))
	if reply != want {
		b.failf("reply %s\n want %s", reply, want)
	}
	if got != wanted {
		b.failf("after reply %s the state changed by\n\t%s\nwant\n\t%s", reply, got, wanted)
	}
	b.last = now
}

func diff(before, after []string) []string {
	count := map[string]int{}
	for _, l := range after {
		count[l]++
	}
	var out []string
	for _, l := range before {
		if count[l]--; count[l] < 0 {
			out = append(out, "- "+l)
		}
	}
	clear(count)
	for _, l := range before {
		count[l]++
	}
	for _, l := range after {
		if count[l]--; count[l] < 0 {
			out = append(out, "+ "+l)
		}
	}
	return out
}

func lines(s string) []string {
	var out []string
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// allChecks are all state tables.
func allChecks() []check {
	return slices.Concat(settleVerbs(), settleChecks, leaseChecks, tickChecks, reclaimChecks, promoteChecks, publishChecks,
		groupChecks, compactChecks, redriveChecks, operateChecks, cancelChecks, foreignChecks(), idChecks)
}

func TestStates(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, ch := range allChecks() {
		if names[ch.name] {
			t.Errorf("two checks are named %s", ch.name)
		}
		names[ch.name] = true
		t.Run(ch.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range newBench(t).holds(ch) {
				t.Error(f)
			}
		})
	}
	if len(names) < 100 {
		t.Errorf("only %d checks", len(slices.Collect(maps.Keys(names))))
	}
}

func sorted(list []string) string {
	list = slices.Sorted(slices.Values(list))
	return strings.Join(list, "\n\t")
}
