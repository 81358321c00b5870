package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

// bulk is what redrive and purge share: choose, ask, go through the choice with a progress bar, say how far it came.
type bulk struct {
	a                 *app
	verb, past, doing string // redrive, redriven, redriving
	question          string // "Redrive %s dead letters of …", ends it with this
	asksForIDs        bool   // also where the ids were typed one by one

	stream, group string
	ids           []string
	filter        dlqFilter
	rate          float64
	dryRun        bool
}

type bulkFunc func(context.Context, xstreamq.Filter, xstreamq.Bulk) (xstreamq.BulkResult, error)

func (b *bulk) register(cmd *cobra.Command) {
	b.filter.register(cmd)
	cmd.Flags().Float64Var(&b.rate, "rate", 0, "at most `N` a second; 0 is as fast as is polite")
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "only count what would be "+b.past)
}

func (b *bulk) take(args []string) { b.stream, b.group, b.ids = args[0], args[1], args[2:] }

// build checks what was given before anything is asked of the server.
func (b *bulk) build() (xstreamq.Filter, error) {
	filter, chosen, err := b.filter.build(b.ids, time.Now())
	if err == nil && !chosen { // a forgotten argument must not take everything
		err = &usageError{err: fmt.Errorf("%s what?", b.verb), hint: "ids, a filter such as --error timeout, or --all"}
	}
	if err == nil && b.rate < 0 {
		err = usagef("--rate is %g: it must not be below 0", b.rate)
	}
	return filter, err
}

// run does it. Ctrl-C ends it between two batches; a second one at once.
func (b *bulk) run(ctx context.Context, g *xstreamq.GroupAdmin, f xstreamq.Filter, o xstreamq.Bulk, do bulkFunc) (xstreamq.BulkResult, error) {
	dead, err := deadCount(ctx, b.a, g)
	if err != nil {
		return xstreamq.BulkResult{}, err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	o.Limit, o.Rate, o.DryRun = b.filter.limit, b.rate, b.dryRun
	if !b.dryRun && (b.asksForIDs || len(b.ids) == 0) {
		if n, err := b.ask(ctx, f, dead, do); err != nil || n == 0 {
			return xstreamq.BulkResult{Remaining: int(dead)}, b.interrupted(ctx, err, 0)
		}
	}
	bar := b.a.progress(b.doing)
	o.Progress = func(done, matched int) { bar.update(int64(done), b.filter.total(matched)) }
	res, err := do(ctx, f, o)
	bar.clear()
	return res, b.interrupted(ctx, err, res.Done)
}

// ask counts what it would take and asks for it. n = 0: there is nothing to ask for.
func (b *bulk) ask(ctx context.Context, f xstreamq.Filter, dead int64, do bulkFunc) (n int, err error) {
	if b.a.yes {
		return 1, nil
	}
	if err := b.a.canAsk(b.phrase("the chosen")); err != nil {
		return 0, err
	}
	bar := b.a.progress("counting")
	res, err := do(ctx, f, xstreamq.Bulk{Limit: b.filter.limit, DryRun: true, Progress: func(done, _ int) { bar.update(int64(done), 0) }})
	bar.clear()
	if err != nil || res.Done == 0 {
		if err == nil && len(res.Unredrivable) > 0 {
			return 1, nil // let the run name them
		}
		return 0, err
	}
	what := fmt.Sprintf("%d of the %d", res.Done, dead)
	if int64(res.Done) >= dead {
		what = fmt.Sprintf("all %d", res.Done)
	}
	return res.Done, b.a.confirm("%s", b.phrase(what))
}

func (b *bulk) phrase(what string) string {
	return fmt.Sprintf(b.question, what, b.group, b.stream)
}

// interrupted says how far it came.
func (b *bulk) interrupted(ctx context.Context, err error, done int) error {
	switch {
	case err == nil, done == 0 && ctx.Err() == nil:
		return err
	case ctx.Err() != nil:
		return &hinted{
			fmt.Errorf("interrupted: %d %s, the others are where they were", done, b.past),
			"the same command again: it goes on where it was",
		}
	}
	return &hinted{fmt.Errorf("%w; %d %s", err, done, b.past), "the same command again: it goes on where it was"}
}

// print is the line for people.
func (b *bulk) print(res xstreamq.BulkResult) error {
	verb := b.past
	if b.dryRun {
		verb = "would be " + verb
	}
	_, err := fmt.Fprintf(b.a.out, "%d %s, %d remaining\n", res.Done, verb, res.Remaining)
	return err
}

// deadCount makes sure that the server answers and the group exists before anything long or asking begins.
func deadCount(ctx context.Context, a *app, g *xstreamq.GroupAdmin) (int64, error) {
	ctx, cancel := a.call(ctx)
	defer cancel()
	d, err := g.Depth(ctx)
	return d.Dead, err
}

// total is what a progress bar is to fill up to; 0 where a filter finds its matches only on the way: matched is then done.
func (f *dlqFilter) total(matched int) int64 {
	if f.narrowed() {
		return 0
	}
	return int64(matched)
}
