package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newDelayed(a *app) *cobra.Command {
	return parent(&cobra.Command{
		Use:     "delayed",
		Short:   "Look at messages published for later, cancel one",
		Example: "  xstreamq delayed ls reminders",
	}, newDelayedLs(a), newDelayedCancel(a))
}

func newDelayedLs(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "ls STREAM",
		Short: "List messages published for later, the soonest first",
		Long: `List the messages that were published with a delay and are not due yet, the soonest first.

Columns: id, due, published, body. With --json an array of messages with "due_at".`,
		Example: `  xstreamq delayed ls reminders
  xstreamq delayed ls reminders --json | jq '.[0].due_at'`,
		Args:              args(1, 1),
		ValidArgsFunction: a.completeNames(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			t := a.table("ID", "DUE", "PUBLISHED", "BODY").cut(12, "BODY").drop("PUBLISHED").
				empty(fmt.Sprintf("nothing is delayed in stream %s", args[0]))
			return listParked(cmd.Context(), a, t, func(adm *xstreamq.Admin) pager { return adm.Stream(args[0]).Delayed },
				func(r xstreamq.Record) []string {
					return []string{r.ID, a.when(r.DueAt), a.when(r.PublishedAt), string(r.Body)}
				})
		},
	}, jsonArrayOf, parkedKeys...)
}

func newRetrying(a *app) *cobra.Command {
	return parent(&cobra.Command{
		Use:     "retrying",
		Short:   "Look at messages that failed and wait out their backoff",
		Example: "  xstreamq retrying ls orders billing",
	}, newRetryingLs(a))
}

func newRetryingLs(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "ls STREAM GROUP",
		Short: "List messages that wait out their backoff, the soonest first",
		Long: `List the messages of a group that failed, or were snoozed or redriven, and wait for their next attempt, the soonest first.

Columns: id, due, failed attempts, lost leases, body. With --json an array of messages with "due_at".`,
		Example: `  xstreamq retrying ls orders billing
  xstreamq retrying ls orders billing --json | jq '.[] | select(.attempt > 3) | .id'`,
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			t := a.table("ID", "DUE", "ATTEMPTS", "LOST", "BODY").cut(12, "BODY").drop("LOST").
				empty(fmt.Sprintf("nothing waits for a retry in group %s of %s", args[1], args[0]))
			return listParked(cmd.Context(), a, t, func(adm *xstreamq.Admin) pager { return adm.Group(args[0], args[1]).Retrying },
				func(r xstreamq.Record) []string {
					return []string{r.ID, a.when(r.DueAt), count(int64(r.Attempts)), count(int64(r.Lost)), string(r.Body)}
				})
		},
	}, jsonArrayOf, parkedKeys...)
}

type pager func(context.Context, xstreamq.Page) (xstreamq.Records, error)

// listParked prints all pages; each is a call of its own.
func listParked(
	ctx context.Context, a *app, t *table, open func(*xstreamq.Admin) pager, cells func(xstreamq.Record) []string,
) (err error) {
	c, err := a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	arr, reached := &jsonArray{a: a}, false
	show := func(r xstreamq.Record) error {
		if !a.json {
			return t.row(cells(r)...)
		}
		b, err := parkedRecordJSON(r)
		if err != nil {
			return err
		}
		return arr.add(b)
	}
	page := open(c.Admin())
	next := func(after string) (xstreamq.Records, error) {
		ctx, cancel := a.call(ctx)
		defer cancel()
		return page(ctx, xstreamq.Page{After: after, Limit: 1000})
	}
	walk := func() error {
		for after := ""; ; {
			list, err := next(after)
			if err != nil {
				return err
			}
			reached = true
			for _, r := range list.Items {
				if err := show(r); err != nil {
					return err
				}
			}
			if after = list.Next; after == "" {
				return nil
			}
		}
	}
	err = walk()
	if a.json {
		return ended(err, func() error { return closeArray(arr, reached) })
	}
	if err != nil && !reached {
		return err
	}
	return ended(err, t.flush)
}

func newDelayedCancel(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "cancel STREAM ID",
		Short: "Take back a message published for later",
		Long: `Delete a message that was published with a delay and is not due yet, by its id. It asks first; --yes does not. One that
was already delivered, or never was there, ends it with 1.`,
		Example:           "  xstreamq delayed cancel reminders d-1760000000000-0123456789abcdef --yes",
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDelayedCancel(cmd.Context(), a, args[0], args[1])
		},
	}, jsonObject, "cancelled")
}

func runDelayedCancel(ctx context.Context, a *app, stream, id string) error {
	if err := a.confirm("Delete the delayed message %s of %s for good?", id, stream); err != nil {
		return err
	}
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) error {
		return adm.Stream(stream).CancelDelayed(ctx, id)
	})
	if errors.Is(err, xstreamq.ErrNotFound) {
		return &hinted{err, "`xstreamq delayed ls` lists what is not due yet; what is due is in the stream"}
	}
	if err != nil {
		return err
	}
	return a.done(map[string]bool{"cancelled": true}, "cancelled %s of %s", id, stream)
}
