package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/bench"
)

func newBench(a *app) *cobra.Command {
	o, quick := bench.Options{}, false
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the queue on this server",
		Long: `Measure the queue on this server: publishing, draining, latency from publish to handler, failures, the recovery of a dead
worker's messages, delayed messages, and what a subscription sends while nothing happens. All of it runs in this process,
and puts all the load on the server that it takes.

Each figure has a stream of its own with a random name, whose keys are taken away when it is done, also after Ctrl-C.
publish-N has N callers that each wait for their id; drain-* has 64 handlers that do nothing; latency-* is in ms from the
publish call to the handler's start; reclaim and promote are from the first message that comes back to the last.`,
		Example: `  xstreamq bench --quick
  xstreamq bench --only drain --only latency --rate 5000 --for 30s
  xstreamq bench --json > before.json`,
		Args:              args(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick {
				for name, v := range map[string]string{"messages": "2000", "rate": "1000", "for": "1s"} {
					if !cmd.Flags().Changed(name) {
						_ = cmd.Flags().Set(name, v)
					}
				}
			}
			return runBench(cmd.Context(), a, o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Only, "only", nil, "only `NAME`, may be given again: "+strings.Join(bench.Names(), ", "))
	f.IntVar(&o.Messages, "messages", 100_000, "messages a figure, fewer where they are large")
	f.IntVar(&o.Size, "size", 128, "bytes of a body")
	f.IntVar(&o.Rate, "rate", 20_000, "messages a second of latency")
	f.DurationVar(&o.For, "for", 5*time.Second, "how long latency publishes")
	f.BoolVar(&quick, "quick", false, "a minute for all: --messages 2000 --rate 1000 --for 1s")
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(bench.Names(), cobra.ShellCompDirectiveNoFileComp))
	return withJSON(cmd, jsonArrayOf, "name", "value", "unit")
}

func runBench(ctx context.Context, a *app, o bench.Options) error {
	for _, f := range []struct {
		flag             string
		got, least, most int
	}{
		{"--messages", o.Messages, 10, 10_000_000},
		{"--size", o.Size, 1, 16 << 20},
		{"--rate", o.Rate, 1, 1_000_000},
	} {
		if f.got < f.least || f.got > f.most {
			return usagef("%s is %d: it must be from %d to %d", f.flag, f.got, f.least, f.most)
		}
	}
	if o.For < 100*time.Millisecond || o.For > time.Hour {
		return usagef("--for is %s: it must be from 100ms to 1h", o.For)
	}
	for _, n := range o.Only {
		if !slices.Contains(bench.Names(), n) {
			return usagef("--only %q is none of %s", n, strings.Join(bench.Names(), ", "))
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	bars := map[string]*progress{}
	var last *progress
	o.Open, o.Prefix = a.open, a.prefix
	o.Progress = func(name string, done, total int64) {
		if bars[name] == nil {
			bars[name] = a.progress(name)
		}
		last = bars[name]
		last.update(done, total)
	}
	results := []bench.Result{}
	t := a.table("NAME", "VALUE", "UNIT")
	o.Result = func(r bench.Result) {
		results = append(results, r)
		_ = t.row(r.Name, figure(r.Value), r.Unit) // a pipe that is closed shows at the end
	}
	err := bench.Run(ctx, o)
	if last != nil {
		last.clear()
	}
	if err != nil && ctx.Err() != nil {
		err = errors.New("interrupted; its keys are gone")
	}
	if errors.Is(err, xstreamq.ErrUncertain) {
		c, openErr := a.open()
		if openErr != nil {
			return openErr
		}
		defer func() { _ = c.Close() }() // it only asked
		err = a.whereTo(ctx, c, err)
	}
	return ended(err, func() error {
		if a.json {
			return a.printJSON(results)
		}
		return t.flush()
	})
}

// figure keeps three digits of what is small.
func figure(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
