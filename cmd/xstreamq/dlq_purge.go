package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type purgeJSON struct {
	Purged    int `json:"purged"`
	Remaining int `json:"remaining"`
}

func newDLQPurge(a *app) *cobra.Command {
	b := &bulk{
		a: a, verb: "purge", past: "purged", doing: "purging", asksForIDs: true,
		question: "Delete %s dead letters of group %s of %s for good?",
	}
	cmd := &cobra.Command{
		Use:   "purge STREAM GROUP [ID...]",
		Short: "Delete dead letters for good",
		Long: `Delete dead letters: those with the given entry ids, those that match the filter, or --all. Nothing else ever deletes
one. An id that is already gone succeeds with 0 purged. It counts and asks first; --yes does not.

Interrupted by Ctrl-C or a lost connection, the same command again goes on where it was.`,
		Example: `  xstreamq dlq purge orders billing 1760000000000-0 --yes
  xstreamq dlq purge orders billing --before 720h --yes`,
		Args:              args(2, -1),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			b.take(args)
			return runPurge(cmd.Context(), b)
		},
	}
	b.register(cmd)
	return withJSON(cmd, jsonObject, "purged", "remaining")
}

func runPurge(ctx context.Context, b *bulk) (err error) {
	filter, err := b.build()
	if err != nil {
		return err
	}
	c, err := b.a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	g := c.Admin().Group(b.stream, b.group)
	res, err := b.run(ctx, g, filter, xstreamq.Bulk{}, g.PurgeAll)
	if err != nil {
		return err
	}
	if b.a.json {
		return b.a.printJSON(purgeJSON{res.Done, res.Remaining})
	}
	return b.print(res)
}
