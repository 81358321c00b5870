package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type consumerJSON struct {
	Name         string `json:"name"`
	Pending      int64  `json:"pending"`
	HeartbeatMS  *int64 `json:"heartbeat_ms"`
	VisibilityMS *int64 `json:"visibility_ms"`
	IdleMS       *int64 `json:"idle_ms"`
}

func newConsumers(a *app) *cobra.Command {
	return parent(&cobra.Command{
		Use:     "consumers",
		Short:   "See who consumes, remove who is gone",
		Example: "  xstreamq consumers ls orders billing",
	}, newConsumersLs(a), newConsumersRm(a))
}

func newConsumersLs(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "ls STREAM GROUP",
		Short: "Who consumes, and how long ago each was heard of",
		Long: `List the consumers of a group.

Columns: name, what it holds, time since its last heartbeat ("-": not a worker of ours), its visibility timeout, and the
time since Redis saw it last. A worker whose heartbeat is older than its visibility timeout is dead: others take over
what it holds, and the workers remove it after a while.`,
		Example: `  xstreamq consumers ls orders billing
  xstreamq consumers ls orders billing --json | jq '.[] | select(.heartbeat_ms == null)'`,
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runConsumersLs(cmd.Context(), a, args[0], args[1])
		},
	}, jsonArrayOf, "name", "pending", "heartbeat_ms", "visibility_ms", "idle_ms")
}

func runConsumersLs(ctx context.Context, a *app, stream, group string) error {
	var all []xstreamq.ConsumerInfo
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) (err error) {
		all, err = adm.Group(stream, group).Consumers(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		list := make([]consumerJSON, len(all))
		for i, c := range all {
			list[i] = consumerJSON{c.Name, c.Pending, millis(c.Heartbeat), nil, millis(c.Idle)}
			if c.Heartbeat >= 0 {
				list[i].VisibilityMS = millis(c.Visibility)
			}
		}
		return a.printJSON(list)
	}
	t := a.table("NAME", "PENDING", "HEARTBEAT", "VISIBILITY", "IDLE").cut(16, "NAME").drop("IDLE", "VISIBILITY").
		empty(fmt.Sprintf("group %s of %s has no consumers: nobody works on it", group, stream))
	for _, c := range all {
		beat, visibility := "-", "-"
		if c.Heartbeat >= 0 {
			beat, visibility = ago(c.Heartbeat), ago(c.Visibility)
		}
		idle := unknown
		if c.Idle >= 0 {
			idle = ago(c.Idle)
		}
		if err := t.row(c.Name, count(c.Pending), beat, visibility, idle); err != nil {
			return err
		}
	}
	return t.flush()
}

// millis is null for what is not known.
func millis(d time.Duration) *int64 {
	if d < 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

func newConsumersRm(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "rm STREAM GROUP NAME",
		Short: "Remove a consumer that holds nothing",
		Long: `Remove a consumer from its group. It is refused while the consumer holds messages: the look and the removal are one
step, so nothing can be lost, and it does not ask. Consumers of dead workers are removed by the others after a while;
this is for those that another library left. A worker that still runs under the name goes on under a new one.`,
		Example:           "  xstreamq consumers rm orders billing old-worker-1",
		Args:              args(3, 3),
		ValidArgsFunction: a.completeConsumer,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runConsumersRm(cmd.Context(), a, args[0], args[1], args[2])
		},
	}, jsonObject, "removed")
}

func runConsumersRm(ctx context.Context, a *app, stream, group, name string) error {
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) error {
		return adm.Group(stream, group).RemoveConsumer(ctx, name)
	})
	if errors.Is(err, xstreamq.ErrNotEmpty) {
		return &hinted{err, "`xstreamq pending` shows what it holds; a worker of the group takes it over when the consumer is dead"}
	}
	if errors.Is(err, xstreamq.ErrNotFound) {
		return &hinted{err, "`xstreamq consumers ls` lists the consumers there are"}
	}
	if err != nil {
		return err
	}
	return a.done(map[string]bool{"removed": true}, "removed consumer %s from group %s of %s", name, group, stream)
}
