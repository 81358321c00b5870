package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newGet(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "get STREAM ID",
		Short: "Read one message, wherever it lies",
		Long: `Show one message in full: by its id, or by the entry id it has now. It is looked for in the stream and, of every group,
among what retries, what is parked and what is dead. Nothing is delivered or acknowledged by looking.`,
		Example: `  xstreamq get orders 1760000000000-0
  xstreamq get orders 1760000000000-0 --json | jq .body`,
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), a, args[0], args[1]) },
	}, jsonObject, messageKeys...)
}

func runGet(ctx context.Context, a *app, stream, id string) error {
	var r xstreamq.Record
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) (err error) {
		r, err = adm.Stream(stream).Get(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		b, err := recordJSON(r)
		if err != nil {
			return err
		}
		return a.writeJSON(append(b, '\n'))
	}
	d := &details{a: a}
	d.record(r)
	d.body(r.Body)
	return d.print()
}
