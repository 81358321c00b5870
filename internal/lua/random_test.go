package lua

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

var (
	sequences = flag.Int("sequences", 150, "how many random sequences the scripts are run through")
	seedFlag  = flag.Uint64("seed", 0, "the only seed to run; 0 = random ones")
)

const steps = 60

// sequence runs one seed and returns what went wrong.
func sequence(b *bench, seed uint64) []string {
	rnd, n := rand.New(rand.NewPCG(seed, 1)), 0
	return b.holds(check{"sequence", func(b *bench) {
		newDriver(b, rnd.IntN).run(func() bool { n++; return n > steps })
	}})
}

// fresh gives the bench another stream, and takes the keys of the one before away.
func (b *bench) fresh(t *testing.T) {
	t.Helper()
	all := []any{"DEL"}
	for _, n := range b.names() {
		all = append(all, n.key)
	}
	b.do(all...)
	b.k = keys.NewStream(redistest.Prefix(t), "s").Group("g")
	b.faults = nil
	b.at(0)
}

// TestRandomSequences holds random sequences of the scripts against a reference that knows where each message must be.
func TestRandomSequences(t *testing.T) {
	t.Parallel()
	first, count := rand.Uint64(), *sequences
	if n, err := strconv.Atoi(os.Getenv("XSTREAMQ_SEQUENCES")); err == nil {
		count = n
	}
	if *seedFlag != 0 {
		first, count = *seedFlag, 1
	}
	const lanes = 2
	for lane := range lanes {
		t.Run(strconv.Itoa(lane), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for i := lane; i < count; i += lanes {
				seed := first + uint64(i)
				for _, f := range sequence(b, seed) {
					t.Errorf("seed %d: %s", seed, f)
				}
				if t.Failed() {
					t.Fatalf("run it alone: go test ./internal/lua -run TestRandomSequences -seed %d", seed)
				}
				b.fresh(t)
			}
		})
	}
}

// seenByChance are mutants that random sequences must come upon, or they look at too little.
var seenByChance = []string{
	"no owner check",
	"no question whether it is pending",
	"member = oid/rc",
	"release by handing over under its id",
	"release counts as lost",
	"a failure leaves the lost leases in a row",
	"a retry stays in its stream after its ack",
	"the stable id is the latest entry's",
	"counters are any number",
	"a name counts once",
	"neighbours of a suspect count too",
	"no suspects",
	"heartbeat that revives a dead owner",
	"heartbeats since the clock was set back are moved too",
	"a gap is not credited",
	"DELCONSUMER uncounted",
	"position = last delivered",
	"group recreated at $",
	"seek with entries pending",
	"above the floor: what is pending",
	"above the floor: what is unread",
	"compaction with a recorded group missing",
	"redrive keeps the counters",
	"redrive to all groups",
	"publish: no look for the marker",
	"promote: ahead of its time",
	"promote: what cannot be moved stays due",
	"ack before copy: reclaim",
	"ack before copy: dead",
	"counters grow to ten digits: settle",
	"promote: the id of a delayed message is lost",
	"promote: a delayed message is due when it is moved",
	"redrive of what is too old at once",
}

// TestSequencesSeeMutants: the sequences above find broken scripts.
func TestSequencesSeeMutants(t *testing.T) {
	t.Parallel()
	all := slices.Concat(leaseMutants, moveMutants, streamMutants)
	for _, name := range seenByChance {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(all, func(m mutant) bool { return m.name == name })
			if i < 0 {
				t.Fatal("no mutant has this name")
			}
			b := newBench(t, all[i].patches...)
			for seed := range uint64(60) {
				if len(sequence(b, seed)) > 0 {
					t.Logf("seen with seed %d", seed)
					return
				}
				b.fresh(t)
			}
			t.Error("60 sequences went through as if nothing were wrong")
		})
	}
}

// FuzzSequences is TestRandomSequences with the choices taken from the input: a byte each.
func FuzzSequences(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		in := make([]byte, 250)
		for i := range in {
			in[i] = byte(rnd.Uint32())
		}
		f.Add(in)
	}
	b := newBench(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:min(len(in), 600)]
		next := func(n int) int {
			if len(in) == 0 {
				return 0
			}
			c := int(in[0]) % n
			in = in[1:]
			return c
		}
		b.fresh(t)
		for _, fault := range b.holds(check{"sequence", func(b *bench) {
			newDriver(b, next).run(func() bool { return len(in) == 0 })
		}}) {
			t.Error(fault)
		}
	})
}
