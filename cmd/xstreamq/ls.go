package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type lsJSON struct {
	Stream   string `json:"stream"`
	Group    string `json:"group"`
	Length   int64  `json:"length"`
	Lag      *int64 `json:"lag"`
	Pending  int64  `json:"pending"`
	Retrying int64  `json:"retrying"`
	Dead     int64  `json:"dead"`
	Paused   bool   `json:"paused"`
}

func newLs(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "ls",
		Short: "List every stream and group known",
		Long: `List every stream and group known, with their counts. Nothing is created by looking.

Columns: stream, group, length, lag, pending, retrying, dead, paused. "?" is a count that the server cannot tell.`,
		Example: `  xstreamq ls
  xstreamq ls --json | jq '.[] | select(.dead > 0)'`,
		Args:              args(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runLs(cmd.Context(), a) },
	}, jsonArrayOf, "stream", "group", "length", "lag", "pending", "retrying", "dead", "paused")
}

func runLs(ctx context.Context, a *app) error {
	var all []xstreamq.Depth
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) (err error) {
		all, err = adm.Depths(ctx)
		return err
	})
	if err != nil && len(all) == 0 {
		return err
	}
	return ended(err, func() error { return printLs(a, all) }) // what could be read is shown also beside an error
}

func printLs(a *app, all []xstreamq.Depth) error {
	if a.json {
		list := make([]lsJSON, len(all))
		for i, d := range all {
			list[i] = lsJSON{d.Stream, d.Group, d.Length, d.Lag, d.Pending, d.Retrying, d.Dead, d.Paused}
		}
		return a.printJSON(list)
	}
	t := a.table("STREAM", "GROUP", "LENGTH", "LAG", "PENDING", "RETRYING", "DEAD", "PAUSED").
		drop("LENGTH", "PAUSED", "RETRYING", "PENDING").empty("no streams: nothing was published under this prefix, and no worker ran; `xstreamq publish` starts one")
	for _, d := range all {
		err := t.row(d.Stream, d.Group, count(d.Length), countPtr(d.Lag), count(d.Pending), count(d.Retrying), count(d.Dead), yesNo(d.Paused))
		if err != nil {
			return err
		}
	}
	return t.flush()
}
