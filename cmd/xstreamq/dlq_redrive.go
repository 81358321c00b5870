package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type redriveOptions struct {
	a        *app
	stream   string
	group    string
	ids      []string
	filter   dlqFilter
	rate     float64
	dryRun   bool
	toStream bool
	edit     bool
}

type redriveJSON struct {
	Redriven     int      `json:"redriven"`
	Unredrivable []string `json:"unredrivable"`
	Remaining    int      `json:"remaining"`
}

func newDLQRedrive(a *app) *cobra.Command {
	o := &redriveOptions{a: a}
	cmd := &cobra.Command{
		Use:   "redrive STREAM GROUP [ID...]",
		Short: "Put dead letters back to be handled again",
		Long: `Put dead letters back for their own group, with fresh attempts and the same id: those with the given entry ids, those
that match the filter, or --all. An id that is already gone succeeds with 0 moved. --to-stream publishes them anew
instead, for every group of the stream. A dead letter without a body stays and is named.

A filter or --all asks first; --yes does not.`,
		Example: `  xstreamq dlq redrive orders billing 1760000000000-0
  xstreamq dlq redrive orders billing --error timeout --rate 100 --dry-run
  xstreamq dlq redrive orders billing --all --yes
  EDITOR=vim xstreamq dlq redrive orders billing 1760000000000-0 --edit`,
		Args:              args(2, -1),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stream, o.group, o.ids = args[0], args[1], args[2:]
			return runRedrive(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	o.filter.register(f)
	f.Float64Var(&o.rate, "rate", 0, "at most `N` a second; 0 is as fast as is polite")
	f.BoolVar(&o.dryRun, "dry-run", false, "only count what would be redriven")
	f.BoolVar(&o.toStream, "to-stream", false, "publish anew, for every group of the stream")
	f.BoolVar(&o.edit, "edit", false, "change the body in $EDITOR first; one id only")
	return cmd
}

func runRedrive(ctx context.Context, o *redriveOptions) (err error) {
	a := o.a
	filter, chosen, err := o.filter.build(o.ids, time.Now())
	if err != nil {
		return err
	}
	if err := mustChoose("redrive", chosen); err != nil {
		return err
	}
	if o.rate < 0 {
		return usagef("--rate is %g: it must not be below 0", o.rate)
	}
	if o.edit && (len(o.ids) != 1 || o.dryRun) {
		return usagef("--edit needs exactly one id, and no --dry-run")
	}
	c, err := a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	g := c.Admin().Group(o.stream, o.group)
	dead, err := deadCount(ctx, a, g)
	if err != nil {
		return err
	}
	if o.edit {
		return redriveEdited(ctx, o, c, g)
	}
	if len(o.ids) == 0 && !o.dryRun {
		if err := a.confirm("Redrive %s of the %d dead letters of group %s of %s?", o.filter.phrase(), dead, o.group, o.stream); err != nil {
			return err
		}
	}
	bar := a.progress("redriving")
	res, err := g.RedriveAll(ctx, filter, xstreamq.Bulk{
		Limit: o.filter.limit, Rate: o.rate, DryRun: o.dryRun, ToStream: o.toStream,
		Progress: func(done, matched int) { bar.update(int64(done), o.filter.total(matched)) },
	})
	bar.clear()
	if err != nil {
		return fmt.Errorf("%w; %d redriven", err, res.Done)
	}
	return o.print(res)
}

func (o *redriveOptions) print(res xstreamq.BulkResult) error {
	if err := o.printResult(res); err != nil {
		return err
	}
	if slices.ContainsFunc(o.ids, func(id string) bool { return slices.Contains(res.Unredrivable, id) }) {
		return fmt.Errorf("%s: %w", strings.Join(res.Unredrivable, ", "), xstreamq.ErrUnredrivable)
	}
	return nil
}

func (o *redriveOptions) printResult(res xstreamq.BulkResult) error {
	if o.a.json {
		ids := res.Unredrivable
		if ids == nil {
			ids = []string{}
		}
		return o.a.printJSON(redriveJSON{res.Done, ids, res.Remaining})
	}
	verb := "redriven"
	if o.dryRun {
		verb = "would be redriven"
	}
	if len(res.Unredrivable) > 0 {
		o.a.note("no body, left where they are: %s", strings.Join(res.Unredrivable, " "))
	}
	_, err := fmt.Fprintf(o.a.out, "%d %s, %d remaining\n", res.Done, verb, res.Remaining)
	return err
}

// deadCount makes sure that the server answers and the group exists before anything long or asking begins.
func deadCount(ctx context.Context, a *app, g *xstreamq.GroupAdmin) (int64, error) {
	ctx, cancel := a.call(ctx)
	defer cancel()
	d, err := g.Depth(ctx)
	return d.Dead, err
}

// phrase names the choice in a question.
func (f *dlqFilter) phrase() string {
	switch {
	case f.limit > 0 && f.narrowed():
		return fmt.Sprintf("up to %d matching ones", f.limit)
	case f.limit > 0:
		return fmt.Sprintf("up to %d", f.limit)
	case f.narrowed():
		return "the matching ones"
	}
	return "all"
}

// total is what a progress bar is to fill up to; 0 where a filter finds its matches only on the way: matched is then done.
func (f *dlqFilter) total(matched int) int64 {
	if f.narrowed() {
		return 0
	}
	return int64(matched)
}

// redriveEdited lets the user change one body on its way back.
func redriveEdited(ctx context.Context, o *redriveOptions, c *xstreamq.Client, g *xstreamq.GroupAdmin) error {
	var found *xstreamq.DeadLetter
	filter, _, err := o.filter.build(o.ids, time.Now())
	if err != nil {
		return err
	}
	_, err = walkDead(ctx, o.a, c, o.stream, o.group, filter, 1, func(d xstreamq.DeadLetter) error {
		found = &d
		return nil
	})
	if err != nil {
		return err
	}
	res := xstreamq.BulkResult{}
	if found != nil {
		body, err := o.a.edit(ctx, found.Body)
		if err != nil {
			return err
		}
		err = redriveOne(ctx, o, g, body)
		if err != nil && !errors.Is(err, xstreamq.ErrNotFound) { // it went while the editor was open
			return err
		}
		if err == nil {
			res.Done = 1
		}
	}
	left, err := deadCount(ctx, o.a, g)
	res.Remaining = int(left)
	if err != nil {
		return err
	}
	return o.print(res)
}

func redriveOne(ctx context.Context, o *redriveOptions, g *xstreamq.GroupAdmin, body []byte) error {
	ctx, cancel := o.a.call(ctx)
	defer cancel()
	_, err := g.Redrive(ctx, o.ids[0], xstreamq.RedriveOptions{ToStream: o.toStream, Body: body})
	return err
}
