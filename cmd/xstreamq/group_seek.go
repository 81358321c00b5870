package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newGroupSeek(a *app) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "seek STREAM GROUP --to head|tail|TIME|ID",
		Short: "Replay a group from another place, or skip to one",
		Long: `Move a group to another place in its stream's history. Back: everything from there on is handled again. Forward: what
is left out is not handled by this group any more. Retries, parked messages and dead letters stay as they are. Other
groups do not notice.

The place is head (all that the stream still has), tail (only what comes), a TIME (RFC 3339, or a duration: that long
ago), or the ID of the message to go on with. It asks first; --yes does not. It is refused while messages are in flight:
pause the group, wait until pending is 0, seek, resume.`,
		Example: `  xstreamq group seek orders billing --to 1h --yes
  xstreamq group seek orders billing --to 1760000000000-0 --yes
  xstreamq group seek orders billing --to tail --yes`,
		Args:              args(2, 2),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runGroupSeek(cmd.Context(), a, args[0], args[1], to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`PLACE`: head, tail, a time, or the id of a message")
	completeWords(cmd, "to", "head", "tail", "1h")
	return withJSON(cmd, jsonObject, "position")
}

func runGroupSeek(ctx context.Context, a *app, stream, group, to string) (err error) {
	if to == "" {
		return &usageError{err: errors.New("seek where?"), hint: "--to head, --to tail, --to 1h, or --to and the id of a message"}
	}
	if err := a.confirm("Move group %s of %s to %s?", group, stream, to); err != nil {
		return err
	}
	c, err := a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	pos, err := seekPosition(ctx, a, c.Admin().Stream(stream), to)
	if err != nil {
		return err
	}
	ctx, cancel := a.call(ctx)
	defer cancel()
	err = c.Admin().Group(stream, group).Seek(ctx, pos)
	switch {
	case errors.Is(err, xstreamq.ErrNotEmpty):
		return &hinted{err, fmt.Sprintf("xstreamq pause %s %s, wait until `xstreamq pending` is empty, seek, resume", stream, group)}
	case errors.Is(err, xstreamq.ErrTrimmed):
		return &hinted{err, "--to head begins with the oldest there is; `xstreamq retain` keeps more for the next time"}
	case err != nil:
		return err
	}
	return a.done(map[string]string{"position": string(pos)}, "group %s of %s goes on behind %s", group, stream, place(pos))
}

func place(p xstreamq.Position) string {
	switch p {
	case xstreamq.Head:
		return "nothing: from the first entry on"
	case xstreamq.Tail:
		return "the last entry"
	}
	return string(p)
}

func seekPosition(ctx context.Context, a *app, s *xstreamq.StreamAdmin, to string) (xstreamq.Position, error) {
	if pos, err := parsePosition(to); err == nil {
		return pos, nil
	}
	if t, err := parseTime("--to", to, time.Now()); err == nil {
		return xstreamq.AtTime(t), nil
	}
	after, err := before(ctx, a, s, to)
	if err == nil && after == "" {
		return xstreamq.Head, nil
	}
	return xstreamq.AfterID(after), err
}
