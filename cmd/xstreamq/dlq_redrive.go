package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type redriveOptions struct {
	bulk
	toStream bool
	edit     bool
}

type redriveJSON struct {
	Redriven     int      `json:"redriven"`
	Unredrivable []string `json:"unredrivable"`
	Remaining    int      `json:"remaining"`
}

func newDLQRedrive(a *app) *cobra.Command {
	o := &redriveOptions{bulk: bulk{
		a: a, verb: "redrive", past: "redriven", doing: "redriving", question: "Redrive %s dead letters of group %s of %s?",
	}}
	cmd := &cobra.Command{
		Use:   "redrive STREAM GROUP [ID...]",
		Short: "Put dead letters back to be handled again",
		Long: `Put dead letters back for their own group, with fresh attempts and the same id: those with the given entry ids, those
that match the filter, or --all. An id that is already gone succeeds with 0 moved. --to-stream publishes them anew
instead, for every group of the stream. A dead letter without a body stays and is named.

A filter or --all counts and asks first; --yes does not. Interrupted by Ctrl-C or a lost connection, the same command
again goes on where it was.`,
		Example: `  xstreamq dlq redrive orders billing 1760000000000-0
  xstreamq dlq redrive orders billing --error timeout --rate 100 --dry-run
  xstreamq dlq redrive orders billing --all --yes
  EDITOR=vim xstreamq dlq redrive orders billing 1760000000000-0 --edit`,
		Args:              args(2, -1),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.take(args)
			return runRedrive(cmd.Context(), o)
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&o.toStream, "to-stream", false, "publish anew, for every group of the stream")
	cmd.Flags().BoolVar(&o.edit, "edit", false, "change the body in $EDITOR first; one id only")
	return withJSON(cmd, jsonObject, "redriven", "unredrivable", "remaining")
}

func runRedrive(ctx context.Context, o *redriveOptions) (err error) {
	filter, err := o.build()
	if err != nil {
		return err
	}
	if o.edit && (len(o.ids) != 1 || o.dryRun) {
		return usagef("--edit needs exactly one id, and no --dry-run")
	}
	c, err := o.a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	g := c.Admin().Group(o.stream, o.group)
	if o.edit {
		return redriveEdited(ctx, o, c, g)
	}
	res, err := o.run(ctx, g, filter, xstreamq.Bulk{ToStream: o.toStream}, g.RedriveAll)
	if err != nil {
		return err
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
	if len(res.Unredrivable) > 0 {
		o.a.note("no body, left where they are: %s", strings.Join(res.Unredrivable, " "))
	}
	return o.bulk.print(res)
}

// redriveEdited lets the user change one body on its way back.
func redriveEdited(ctx context.Context, o *redriveOptions, c *xstreamq.Client, g *xstreamq.GroupAdmin) error {
	var found *xstreamq.DeadLetter
	_, err := walkDead(ctx, o.a, c, o.stream, o.group, xstreamq.Filter{EntryIDs: o.ids}, 1, func(d xstreamq.DeadLetter) error {
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
