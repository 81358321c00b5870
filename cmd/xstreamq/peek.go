package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newPeek(a *app) *cobra.Command {
	var n int
	var from string
	cmd := &cobra.Command{
		Use:   "peek STREAM",
		Short: "Read messages without consuming them",
		Long: `Show what lies in a stream, oldest first: messages that wait, and those done with that are still kept. Nothing is
delivered or acknowledged by looking.

Columns: entry id, id, published, body. With --json an array of messages; a body that is no JSON is in body_base64.`,
		Example: `  xstreamq peek orders
  xstreamq peek orders --count 100 --from 1760000000000-0 --json | jq '.[].body'`,
		Args:              args(1, 1),
		ValidArgsFunction: a.completeNames(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return runPeek(cmd.Context(), a, args[0], from, n) },
	}
	cmd.Flags().IntVar(&n, "count", 10, "most messages to show")
	cmd.Flags().StringVar(&from, "from", "", "begin with this message: its `ID` or entry id")
	return withJSON(cmd, jsonArrayOf, messageKeys...)
}

func runPeek(ctx context.Context, a *app, stream, from string, n int) (err error) {
	if n < 1 {
		return usagef("--count is %d: it must be at least 1", n)
	}
	c, err := a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	p := &peeker{a: a, stream: c.Admin().Stream(stream), left: n}
	if a.json {
		arr := &jsonArray{a: a}
		p.show = func(r xstreamq.Record) error {
			b, err := recordJSON(r)
			if err != nil {
				return err
			}
			return arr.add(b)
		}
		return ended(p.walk(ctx, from), func() error { return closeArray(arr, p.reached) })
	}
	t := a.table("ENTRY ID", "ID", "PUBLISHED", "BODY").cut(12, "BODY").drop("ID", "PUBLISHED").
		empty(fmt.Sprintf("stream %s has no entries now: all is done and compacted away, or waits for its time (`xstreamq delayed ls`)", stream))
	p.show = func(r xstreamq.Record) error {
		return t.row(r.EntryID, r.ID, a.when(r.PublishedAt), string(r.Body))
	}
	return ended(p.walk(ctx, from), t.flush)
}

type peeker struct {
	a       *app
	stream  *xstreamq.StreamAdmin
	left    int
	show    func(xstreamq.Record) error
	reached bool // the stream answered
}

func (p *peeker) walk(ctx context.Context, from string) error {
	after, err := before(ctx, p.a, p.stream, from)
	for err == nil && p.left > 0 {
		var page xstreamq.Records
		if page, err = p.page(ctx, after, min(p.left, 1000)); err != nil {
			break
		}
		p.reached = true
		for _, r := range page.Items {
			if err := p.show(r); err != nil {
				return err
			}
		}
		p.left -= len(page.Items)
		if after = page.Next; after == "" {
			break
		}
	}
	return err
}

// before is the place in the stream right before the message that has this id or entry id; "" is the stream's start.
func before(ctx context.Context, a *app, s *xstreamq.StreamAdmin, id string) (string, error) {
	if id == "" || entryID.MatchString(id) {
		return idBefore(id), nil
	}
	ctx, cancel := a.call(ctx)
	defer cancel()
	r, err := s.Get(ctx, id) // a stable id that is no entry id: published with a delay, or long ago
	if err != nil {
		return "", err
	}
	after := idBefore(r.EntryID)
	page, err := s.Peek(ctx, xstreamq.Page{After: after, Limit: 1})
	if err == nil && (len(page.Items) == 0 || page.Items[0].ID != id) {
		err = fmt.Errorf("message %q is not in the stream now: %w", id, xstreamq.ErrNotFound)
	}
	return after, err
}

// idBefore is the greatest entry id below id; "" stands for the stream's start.
func idBefore(id string) string {
	a, b, _ := strings.Cut(id, "-")
	ms, err1 := strconv.ParseUint(a, 10, 64)
	seq, err2 := strconv.ParseUint(b, 10, 64)
	switch {
	case err1 != nil || err2 != nil || ms == 0 && seq == 0:
		return ""
	case seq > 0:
		return fmt.Sprintf("%d-%d", ms, seq-1)
	}
	return fmt.Sprintf("%d-%d", ms-1, uint64(math.MaxUint64))
}

func (p *peeker) page(ctx context.Context, after string, limit int) (xstreamq.Records, error) {
	ctx, cancel := p.a.call(ctx)
	defer cancel()
	return p.stream.Peek(ctx, xstreamq.Page{After: after, Limit: limit})
}

// ended finishes an output also after a walk that failed half way, and reports the walk's error first.
func ended(walk error, finish func() error) error {
	if errors.Is(walk, errPipe) {
		return walk
	}
	if err := finish(); walk == nil {
		return err
	}
	return walk
}

// closeArray prints the array's end, unless the walk failed before anything was known.
func closeArray(arr *jsonArray, reached bool) error {
	if !reached && arr.n == 0 {
		return nil
	}
	return arr.close()
}
