package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newDLQLs(a *app) *cobra.Command {
	f := &dlqFilter{}
	cmd := &cobra.Command{
		Use:   "ls STREAM GROUP [ID...]",
		Short: "List dead letters, oldest first",
		Long: `List the dead letters of a group, oldest first.

Columns: entry id, id, died, reason, failed attempts, error, body. With --json an array of messages with "attempts",
"reason", "error" and "dead_at".`,
		Example: `  xstreamq dlq ls orders billing
  xstreamq dlq ls orders billing --error timeout --after 24h --json | jq '.[].body'`,
		Args:              args(2, -1),
		ValidArgsFunction: a.completeNames(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return runDLQLs(cmd.Context(), a, f, args) },
	}
	f.register(cmd)
	return withJSON(cmd, jsonArrayOf, deadKeys...)
}

func runDLQLs(ctx context.Context, a *app, f *dlqFilter, args []string) (err error) {
	filter, _, err := f.build(args[2:], time.Now())
	if err != nil {
		return err
	}
	c, err := a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	if a.json {
		arr := &jsonArray{a: a}
		reached, err := walkDead(ctx, a, c, args[0], args[1], filter, f.limit, func(d xstreamq.DeadLetter) error {
			b, err := deadLetterJSON(d)
			if err != nil {
				return err
			}
			return arr.add(b)
		})
		return ended(err, func() error { return closeArray(arr, reached) })
	}
	t := a.table("ENTRY ID", "ID", "DIED", "REASON", "ATTEMPTS", "ERROR", "BODY").
		cut(12, "ERROR", "BODY").drop("ID", "ATTEMPTS", "BODY", "DIED").empty(noDead(f, args))
	_, err = walkDead(ctx, a, c, args[0], args[1], filter, f.limit, func(d xstreamq.DeadLetter) error {
		return t.row(d.EntryID, d.ID, a.when(d.DiedAt), string(d.Reason), count(int64(d.Attempts)), d.Error, string(d.Body))
	})
	return ended(err, t.flush)
}

// noDead tells an empty queue from a filter that matches nothing.
func noDead(f *dlqFilter, args []string) string {
	if len(args) > 2 || f.narrowed() {
		return "no dead letter matches; without ids and filters all are listed"
	}
	return fmt.Sprintf("no dead letters: group %s of %s has none", args[1], args[0])
}

// walkDead shows up to limit dead letters (0 = all). Each wait for the next is a call of its own under --timeout, the
// whole walk may take as long as it takes. reached is false when the server never answered.
func walkDead(ctx context.Context, a *app, c *xstreamq.Client, stream, group string, f xstreamq.Filter, limit int,
	show func(xstreamq.DeadLetter) error,
) (reached bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(a.timeout, func() { cancel(context.DeadlineExceeded) })
	defer idle.Stop()
	n := 0
	for d, err := range c.Admin().Group(stream, group).DeadLetters(ctx, f) {
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return reached, err
		}
		reached = true
		idle.Reset(a.timeout)
		if err := show(d); err != nil {
			return reached, err
		}
		if n++; n == limit {
			break
		}
	}
	return true, nil
}
