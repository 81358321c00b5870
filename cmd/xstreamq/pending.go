package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type pendingJSON struct {
	EntryID    string `json:"entry_id"`
	Consumer   string `json:"consumer"`
	IdleMS     int64  `json:"idle_ms"`
	Deliveries int64  `json:"deliveries"`
	Retry      bool   `json:"retry"`
}

func newPending(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "pending STREAM GROUP",
		Short: "What is in flight, with whom, for how long",
		Long: `List what workers of the group hold right now.

Columns: entry id, consumer, time since it was read, deliveries, and whether it lies in the retry stream.`,
		Example: `  xstreamq pending orders billing
  xstreamq pending orders billing --json | jq length`,
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return runPending(cmd.Context(), a, args[0], args[1]) },
	}, jsonArrayOf, "entry_id", "consumer", "idle_ms", "deliveries", "retry")
}

func runPending(ctx context.Context, a *app, stream, group string) error {
	all, err := allPending(ctx, a, stream, group)
	if err != nil {
		return err
	}
	if a.json {
		list := make([]pendingJSON, len(all))
		for i, p := range all {
			list[i] = pendingJSON{p.EntryID, p.Consumer, p.Idle.Milliseconds(), p.Deliveries, p.Retry}
		}
		return a.printJSON(list)
	}
	t := a.table("ENTRY ID", "CONSUMER", "IDLE", "DELIVERIES", "RETRY").cut(12, "CONSUMER").drop("RETRY", "DELIVERIES").
		empty(fmt.Sprintf("nothing is in flight in group %s of %s", group, stream))
	for _, p := range all {
		if err := t.row(p.EntryID, p.Consumer, ago(p.Idle), count(p.Deliveries), yesNo(p.Retry)); err != nil {
			return err
		}
	}
	return t.flush()
}

func allPending(ctx context.Context, a *app, stream, group string) (all []xstreamq.PendingEntry, err error) {
	c, err := a.open()
	if err != nil {
		return nil, err
	}
	defer closeClient(c, &err)
	g := c.Admin().Group(stream, group)
	page := func(after string) ([]xstreamq.PendingEntry, error) {
		ctx, cancel := a.call(ctx)
		defer cancel()
		return g.Pending(ctx, xstreamq.Page{After: after, Limit: 1000})
	}
	for after := ""; ; {
		list, err := page(after)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if len(list) < 1000 {
			return all, nil
		}
		after = list[len(list)-1].EntryID
	}
}
