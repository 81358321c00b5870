package speed

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

// Options of a comparison.
type Options struct {
	Binary   string // of xstreamq
	Rounds   int
	Messages int           // of a fast figure; the slow systems get a tenth
	Span     time.Duration // of a latency
	Guard    bool          // only what Guards bounds
	Say      func(format string, args ...any)
}

// Samples are the values of each figure, one a round.
type Samples map[string][]float64

func (s Samples) add(name string, v float64) { s[name] = append(s[name], v) }

const latencyRate = 20_000

// Run measures everything in turn, Rounds times.
func Run(ctx context.Context, o Options) (Samples, error) {
	out := Samples{}
	for round := range o.Rounds {
		o.Say("round %d of %d", round+1, o.Rounds)
		for _, step := range steps {
			if o.Guard && !step.guard {
				continue
			}
			o.Say("  %s", step.name)
			if err := one(ctx, o, step, out); err != nil {
				return out, fmt.Errorf("round %d: %s: %w", round+1, step.name, err)
			}
		}
	}
	return out, nil
}

// step measures some figures on a server that holds nothing.
type step struct {
	name  string
	guard bool
	aof   bool // the server appends to a file and syncs it once a second
	run   func(ctx context.Context, o Options, addr string, out Samples) error
}

var steps = []step{
	{"redis-benchmark", true, false, func(ctx context.Context, o Options, addr string, out Samples) error {
		v, err := redisBenchmark(ctx, addr, o.Messages, 1)
		out.add("redis-benchmark", v)
		return err
	}},
	{"redis-benchmark -P 64", true, false, func(ctx context.Context, o Options, addr string, out Samples) error {
		v, err := redisBenchmark(ctx, addr, 5*o.Messages, 64)
		out.add("redis-benchmark -P 64", v)
		return err
	}},
	{"xstreamq", true, false, func(ctx context.Context, o Options, addr string, out Samples) error {
		return bench(ctx, o, addr, out, "publish-64", "publish-batch", "drain", "drain-dedupe")
	}},
	{"raw", true, false, peer("raw", newRaw, 1)},
	{"asynq", false, false, peer("asynq", newAsynq, 10)},
	{"JetStream", false, false, peer("jetstream", newJetStream, 1)},
	{"xstreamq, latency", false, true, func(ctx context.Context, o Options, addr string, out Samples) error {
		return bench(ctx, o, addr, out, "latency", "latency-idle", "idle")
	}},
	{"raw, latency", false, true, peerLatency("raw", newRaw)},
	{"JetStream, latency", false, true, peerLatency("jetstream", newJetStream)},
	{"nothing about", false, false, lying("control", nil, 0)},
	{"1,000,000 parked", false, false, lying("parked", Parked, parkedMost)},
	{"100,000 pending", false, false, lying("pending", Pending, pendingMost)},
}

func one(ctx context.Context, o Options, st step, out Samples) error {
	dir, err := os.MkdirTemp("", "speed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := []string{"--save", "", "--appendonly", "no"}
	if st.aof {
		args = []string{"--save", "", "--appendonly", "yes", "--appendfsync", "everysec"}
	}
	s, err := server.Start(dir, args...)
	if err != nil {
		return err
	}
	defer func() { _ = s.Kill() }() // it holds nothing that anybody wants
	return st.run(ctx, o, s.Addr(), out)
}

func bench(ctx context.Context, o Options, addr string, out Samples, names ...string) error {
	args := []string{"--messages", strconv.Itoa(o.Messages), "--rate", strconv.Itoa(latencyRate), "--for", o.Span.String()}
	for _, n := range names {
		args = append(args, "--only", n)
	}
	got, err := ours(ctx, o.Binary, addr, args...)
	for name, v := range got {
		out.add(name, v)
	}
	return err
}

func peer(name string, open func(context.Context, string) (system, error), slower int) func(context.Context, Options, string, Samples) error {
	return func(ctx context.Context, o Options, addr string, out Samples) error {
		s, err := open(ctx, addr)
		if s != nil {
			defer s.close()
		}
		if err != nil {
			return err
		}
		published, drained, err := backlog(ctx, s, o.Messages/slower)
		out.add(name+" publish", published)
		out.add(name+" drain", drained)
		return err
	}
}

func peerLatency(name string, open func(context.Context, string) (system, error)) func(context.Context, Options, string, Samples) error {
	return func(ctx context.Context, o Options, addr string, out Samples) error {
		s, err := open(ctx, addr)
		if s != nil {
			defer s.close()
		}
		if err != nil {
			return err
		}
		p50, p99, err := paced(ctx, s, latencyRate, o.Span)
		out.add(name+" p50", p50)
		out.add(name+" p99", p99)
		return err
	}
}

func lying(name string, fill filler, most int) func(context.Context, Options, string, Samples) error {
	return func(ctx context.Context, o Options, addr string, out Samples) error {
		f, err := beside(ctx, addr, o.Span, fill, most)
		out.add(name+" p99", f.p99)
		out.add(name+" slow", f.slow)
		return err
	}
}

// Median of what there is; the lower one of an even number.
func Median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[(len(v)-1)/2]
}
