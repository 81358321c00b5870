package lua

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

var (
	sequences = flag.Int("sequences", 200, "how many random sequences the scripts are run through")
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
