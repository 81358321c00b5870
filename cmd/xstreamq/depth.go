package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type depthJSON struct {
	Stream   string `json:"stream"`
	Group    string `json:"group"`
	Length   int64  `json:"length"`
	Lag      *int64 `json:"lag"`
	Pending  int64  `json:"pending"`
	Retry    int64  `json:"retry"`
	Retrying int64  `json:"retrying"`
	Delayed  int64  `json:"delayed"`
	Dead     int64  `json:"dead"`
	Paused   bool   `json:"paused"`
	OldestMS int64  `json:"oldest_ms"`
}

func newDepth(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "depth STREAM [GROUP]",
		Short: "All counts of a stream's groups at once",
		Long: `All counts of a stream's groups, or of one group, at once.

Columns: stream, group, length (all entries of the stream, history included), lag (not yet read), pending (in flight),
retry (due for another attempt, not yet read), retrying (waiting out their backoff), delayed (published for later),
dead, paused, and the age of the oldest message not done.`,
		Example: `  xstreamq depth orders
  xstreamq depth orders billing --json`,
		Args:              args(1, 2),
		ValidArgsFunction: a.completeNames(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return runDepth(cmd.Context(), a, args) },
	}, jsonArrayOf, "stream", "group", "length", "lag", "pending", "retry", "retrying", "delayed", "dead", "paused", "oldest_ms")
}

func runDepth(ctx context.Context, a *app, args []string) error {
	var all []xstreamq.Depth
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) (err error) {
		if len(args) == 1 {
			all, err = adm.Stream(args[0]).Depths(ctx)
			return err
		}
		one, err := adm.Group(args[0], args[1]).Depth(ctx)
		all = []xstreamq.Depth{one}
		return err
	})
	if err != nil && (len(all) == 0 || len(args) == 2) {
		return err
	}
	return ended(err, func() error { return printDepth(a, all, len(args) == 2) }) // as in ls
}

func printDepth(a *app, all []xstreamq.Depth, one bool) error {
	if a.json {
		list := make([]depthJSON, len(all))
		for i, d := range all {
			list[i] = depthJSON{
				d.Stream, d.Group, d.Length, d.Lag, d.Pending, d.Retry, d.Retrying, d.Delayed, d.Dead, d.Paused, d.Oldest.Milliseconds(),
			}
		}
		if one {
			return a.printJSON(list[0])
		}
		return a.printJSON(list)
	}
	t := a.table("STREAM", "GROUP", "LENGTH", "LAG", "PENDING", "RETRY", "RETRYING", "DELAYED", "DEAD", "PAUSED", "OLDEST").
		drop("LENGTH", "RETRY", "DELAYED", "PAUSED", "RETRYING", "OLDEST", "PENDING")
	for _, d := range all {
		err := t.row(d.Stream, d.Group, count(d.Length), countPtr(d.Lag), count(d.Pending), count(d.Retry), count(d.Retrying),
			count(d.Delayed), count(d.Dead), yesNo(d.Paused), ago(d.Oldest))
		if err != nil {
			return err
		}
	}
	return t.flush()
}
