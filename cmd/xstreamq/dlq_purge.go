package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type purgeJSON struct {
	Purged    int `json:"purged"`
	Remaining int `json:"remaining"`
}

type purgeOptions struct {
	a      *app
	stream string
	group  string
	ids    []string
	filter dlqFilter
	rate   float64
	dryRun bool
}

func newDLQPurge(a *app) *cobra.Command {
	o := &purgeOptions{a: a}
	cmd := &cobra.Command{
		Use:   "purge STREAM GROUP [ID...]",
		Short: "Delete dead letters for good",
		Long: `Delete dead letters: those with the given entry ids, those that match the filter, or --all. Nothing else ever deletes
one. An id that is already gone succeeds with 0 purged. It asks first; --yes does not.`,
		Example: `  xstreamq dlq purge orders billing 1760000000000-0
  xstreamq dlq purge orders billing --before 720h --yes`,
		Args:              args(2, -1),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stream, o.group, o.ids = args[0], args[1], args[2:]
			return runPurge(cmd.Context(), o)
		},
	}
	o.filter.register(cmd.Flags())
	cmd.Flags().Float64Var(&o.rate, "rate", 0, "at most `N` a second; 0 is as fast as is polite")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only count what would be purged")
	return cmd
}

func runPurge(ctx context.Context, o *purgeOptions) (err error) {
	a := o.a
	filter, chosen, err := o.filter.build(o.ids, time.Now())
	if err != nil {
		return err
	}
	if err := mustChoose("purge", chosen); err != nil {
		return err
	}
	if o.rate < 0 {
		return usagef("--rate is %g: it must not be below 0", o.rate)
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
	if !o.dryRun {
		what := o.filter.phrase()
		if len(o.ids) > 0 {
			what = fmt.Sprint(len(o.ids))
		}
		if err := a.confirm("Delete %s of the %d dead letters of group %s of %s for good?", what, dead, o.group, o.stream); err != nil {
			return err
		}
	}
	bar := a.progress("purging")
	res, err := g.PurgeAll(ctx, filter, xstreamq.Bulk{
		Limit: o.filter.limit, Rate: o.rate, DryRun: o.dryRun,
		Progress: func(done, matched int) { bar.update(int64(done), o.filter.total(matched)) },
	})
	bar.clear()
	if err != nil {
		return fmt.Errorf("%w; %d purged", err, res.Done)
	}
	if a.json {
		return a.printJSON(purgeJSON{res.Done, res.Remaining})
	}
	verb := "purged"
	if o.dryRun {
		verb = "would be purged"
	}
	_, err = fmt.Fprintf(a.out, "%d %s, %d remaining\n", res.Done, verb, res.Remaining)
	return err
}
