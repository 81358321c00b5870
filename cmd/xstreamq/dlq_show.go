package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newDLQShow(a *app) *cobra.Command {
	f := &dlqFilter{}
	cmd := &cobra.Command{
		Use:   "show STREAM GROUP [ID...]",
		Short: "Show dead letters in full",
		Long: `Show dead letters with all that is known of them, headers and whole bodies: those with the given entry ids, those that
match the filter, or all, oldest first. With --json the same as of dlq ls. An id that is not there ends it with 1.`,
		Example: `  xstreamq dlq show orders billing 1760000000000-0
  xstreamq dlq show orders billing --error timeout --limit 3 --json | jq '.[].body'`,
		Args:              args(2, -1),
		ValidArgsFunction: a.completeNames(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return runDLQShow(cmd.Context(), a, f, args) },
	}
	f.register(cmd)
	return withJSON(cmd, jsonArrayOf, deadKeys...)
}

func runDLQShow(ctx context.Context, a *app, f *dlqFilter, args []string) (err error) {
	filter, _, err := f.build(args[2:], time.Now())
	if err != nil {
		return err
	}
	c, err := a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	missing := map[string]bool{}
	for _, id := range args[2:] {
		missing[id] = true
	}
	n := 0
	arr := &jsonArray{a: a}
	reached, err := walkDead(ctx, a, c, args[0], args[1], filter, f.limit, func(l xstreamq.DeadLetter) error {
		delete(missing, l.EntryID)
		if a.json {
			b, err := deadLetterJSON(l)
			if err != nil {
				return err
			}
			return arr.add(b)
		}
		if n++; n > 1 {
			if _, err := fmt.Fprintln(a.out); err != nil {
				return err
			}
		}
		return showDead(a, l)
	})
	if err == nil && len(missing) > 0 && !f.narrowed() && f.limit == 0 {
		err = fmt.Errorf("dead letter %s: %w", strings.Join(slices.Sorted(maps.Keys(missing)), ", "), xstreamq.ErrNotFound)
		if n == 0 && arr.n == 0 {
			return err
		}
	}
	if a.json {
		return ended(err, func() error { return closeArray(arr, reached) })
	}
	if err == nil && n == 0 && a.outTTY {
		a.note("%s", noDead(f, args))
	}
	return err
}

func showDead(a *app, l xstreamq.DeadLetter) error {
	d := &details{a: a}
	d.add("entry_id", l.EntryID)
	d.add("died", d.when(l.DiedAt))
	d.add("reason", string(l.Reason))
	d.add("error", l.Error)
	l.EntryID = l.ID // named already
	d.record(l.Record)
	d.body(l.Body)
	return d.print()
}
