package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newPause(a *app) *cobra.Command {
	var reason string
	var d time.Duration
	cmd := &cobra.Command{
		Use:   "pause STREAM GROUP",
		Short: "Stop a group's workers from reading",
		Long: `Stop all workers of the group from reading, within about a second. Commands and handlers that run go on; publishing
goes on; nothing is lost. A second pause replaces the first. It ends with resume, or after --for.`,
		Example: `  xstreamq pause orders billing --reason "card processor is down"
  xstreamq pause orders billing --for 10m`,
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parseFor("--for", d, cmd.Flags().Changed("for")); err != nil {
				return err
			}
			return runPause(cmd.Context(), a, args[0], args[1], reason, d)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for whoever wonders why nothing moves")
	cmd.Flags().DurationVar(&d, "for", 0, "end by itself after that time (default: until resume)")
	return withJSON(cmd, jsonObject, "paused")
}

func runPause(ctx context.Context, a *app, stream, group, reason string, d time.Duration) error {
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) error {
		return adm.Group(stream, group).Pause(ctx, reason, d)
	})
	if err != nil {
		return err
	}
	until := "until `xstreamq resume`"
	if d > 0 {
		until = "for " + d.String()
	}
	return a.done(map[string]bool{"paused": true}, "paused group %s of %s, %s", group, stream, until)
}

func newResume(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:               "resume STREAM GROUP",
		Short:             "End a pause",
		Long:              "End a pause: the workers of the group read again within about a second. Without a pause it does nothing.",
		Example:           "  xstreamq resume orders billing",
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.admin(cmd.Context(), func(ctx context.Context, adm *xstreamq.Admin) error {
				return adm.Group(args[0], args[1]).Resume(ctx)
			})
			if err != nil {
				return err
			}
			return a.done(map[string]bool{"paused": false}, "resumed group %s of %s", args[1], args[0])
		},
	}, jsonObject, "paused")
}
