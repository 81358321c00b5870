package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newGroup(a *app) *cobra.Command {
	return parent(&cobra.Command{
		Use:     "group",
		Short:   "Create, remove and replay groups",
		Example: "  xstreamq group create orders billing",
	}, newGroupCreate(a), newGroupRm(a), newGroupSeek(a))
}

func newGroupCreate(a *app) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "create STREAM GROUP",
		Short: "Reserve a backlog for a consumer that comes later",
		Long: `Create a group before its first worker runs: from then on the stream keeps what the group has not handled.
A group that exists is left as it is.`,
		Example: `  xstreamq group create orders billing
  xstreamq group create orders billing --from tail`,
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runGroupCreate(cmd.Context(), a, args[0], args[1], from)
		},
	}
	cmd.Flags().StringVar(&from, "from", "head", "`head` (all that the stream still has) or tail (only what comes)")
	completeWords(cmd, "from", "head", "tail")
	return withJSON(cmd, jsonObject, "created")
}

func runGroupCreate(ctx context.Context, a *app, stream, group, from string) error {
	pos, err := parsePosition(from)
	if err != nil {
		return err
	}
	var created bool
	err = a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) (err error) {
		created, err = adm.Group(stream, group).Create(ctx, pos)
		return err
	})
	if err != nil {
		return err
	}
	if !created {
		return a.done(map[string]bool{"created": false}, "group %s of %s exists, left as it is", group, stream)
	}
	return a.done(map[string]bool{"created": true}, "created group %s of %s, from its %s", group, stream, from)
}

func newGroupRm(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm STREAM GROUP",
		Short: "Remove a group and the streams it keeps",
		Long: `Remove a group with its retry stream and its waiting retries. Refused while it holds anything, unless --force; while
it has dead letters it is always refused: purge or redrive them first.`,
		Example: `  xstreamq group rm orders search --yes
  xstreamq group rm orders search --force --yes`,
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runGroupRm(cmd.Context(), a, args[0], args[1], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also while messages wait, are in flight or are retrying: the group loses them")
	return withJSON(cmd, jsonObject, "removed")
}

func runGroupRm(ctx context.Context, a *app, stream, group string, force bool) error {
	if err := a.confirm("Remove group %s of %s?", group, stream); err != nil {
		return err
	}
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) error {
		return adm.Group(stream, group).Delete(ctx, force)
	})
	if errors.Is(err, xstreamq.ErrNotEmpty) {
		hint := "`xstreamq dlq ls` shows dead letters, `xstreamq dlq purge --all` deletes them"
		if !force {
			hint = "--force loses what waits; dead letters must be purged or redriven first (`xstreamq dlq`)"
		}
		return &hinted{err, hint}
	}
	if err != nil {
		return err
	}
	return a.done(map[string]bool{"removed": true}, "removed group %s of %s", group, stream)
}
