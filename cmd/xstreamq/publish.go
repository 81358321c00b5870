package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const (
	maxIDs     = 1000     // ids are listed up to here, above it only counted
	maxBody    = 16 << 20 // the library's default
	batchBytes = 4 << 20  // a batch is sent at this size even when it holds fewer than --batch
)

type publishOptions struct {
	a            *app
	stream       string
	bodies       []string
	file         string
	headers      []string
	delay        time.Duration
	at           string
	dedupeID     string
	dedupeWindow time.Duration
	batch        int

	total int64 // bytes of the file, for the progress bar
}

type publishJSON struct {
	Published int      `json:"published"`
	IDs       []string `json:"ids"`
}

func newPublish(a *app) *cobra.Command {
	o := &publishOptions{a: a}
	cmd := &cobra.Command{
		Use:   "publish STREAM [BODY...]",
		Short: "Publish messages",
		Long: `Publish each BODY as one message, its bytes as given. "-" as the only BODY, or --file, reads one JSON value a line and
sends each line as it is, without its newline; a line that is not JSON ends it with its number, and what was published
before stands.

Prints the ids, one a line, or only their number when there are more than 1,000. With --json: {"published","ids"}.`,
		Example: `  xstreamq publish orders '{"id":1}' '{"id":2}'
  xstreamq publish orders --file orders.ndjson --header tenant=acme
  xstreamq publish reminders '{"to":"ada"}' --delay 5m --dedupe-id ada-42
  tail -f events.ndjson | xstreamq publish events -`,
		Args: args(1, -1),
		ValidArgsFunction: func(cmd *cobra.Command, given []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.completeNames(false)(cmd, given, part)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stream, o.bodies = args[0], args[1:]
			return runPublish(cmd.Context(), o, cmd.Flags().Changed("dedupe-window"))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "read one JSON value a line from `FILE`")
	f.StringArrayVar(&o.headers, "header", nil, "a header, `key=value`; repeat for more")
	f.DurationVar(&o.delay, "delay", 0, "deliver this much later")
	f.StringVar(&o.at, "at", "", "deliver at this `TIME` (RFC 3339)")
	f.StringVar(&o.dedupeID, "dedupe-id", "", "publish nothing when this `ID` was published within the window; one message only")
	f.DurationVar(&o.dedupeWindow, "dedupe-window", 10*time.Minute, "how long --dedupe-id is remembered")
	f.IntVar(&o.batch, "batch", 500, "most lines to send at once")
	return withJSON(cmd, jsonObject, "published", "ids")
}

func runPublish(ctx context.Context, o *publishOptions, windowGiven bool) (err error) {
	opts, err := o.options()
	if err != nil {
		return err
	}
	lines := o.file != "" || len(o.bodies) == 1 && o.bodies[0] == "-"
	switch {
	case o.file != "" && len(o.bodies) > 0:
		return usagef("give BODY or --file, not both")
	case !lines && len(o.bodies) == 0:
		return &usageError{err: errors.New("nothing to publish"), hint: `a BODY, "-" to read lines from stdin, or --file FILE`}
	case o.batch < 1:
		return usagef("--batch is %d: it must be at least 1", o.batch)
	case o.dedupeID != "" && len(o.bodies) > 1:
		return usagef("--dedupe-id names one message, %d bodies are given", len(o.bodies))
	case windowGiven && o.dedupeID == "":
		return usagef("--dedupe-window needs --dedupe-id")
	}
	var src *lineReader
	if lines {
		if src, err = o.openLines(); err != nil {
			return err
		}
		defer src.close()
	}
	c, err := o.a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	qopts := []xstreamq.QueueOption{xstreamq.MaxBody(maxBody)}
	if windowGiven {
		qopts = append(qopts, xstreamq.DedupeWindow(o.dedupeWindow))
	}
	p := &publisher{o: o, q: xstreamq.NewQueue[[]byte](c, o.stream, qopts...), opts: opts, bar: o.a.progress("publishing")}
	switch {
	case o.dedupeID != "":
		err = p.one(ctx, src)
	case lines:
		err = p.lines(ctx, src)
	default:
		err = p.args(ctx)
	}
	p.bar.clear()
	if errors.Is(err, xstreamq.ErrUncertain) {
		err = o.a.whereTo(ctx, c, err)
	}
	if err != nil && p.published == 0 {
		return err
	}
	return ended(err, p.print)
}

// whereTo looks whether a server whose answer was lost can be reached now: that decides the exit code.
func (a *app) whereTo(ctx context.Context, c *xstreamq.Client, lost error) error {
	ctx, cancel := a.call(ctx)
	defer cancel()
	_, err := c.Admin().Registered(ctx)
	if errors.Is(err, xstreamq.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return &unreachable{lost}
	}
	return lost
}

func (o *publishOptions) options() ([]xstreamq.PublishOption, error) {
	var opts []xstreamq.PublishOption
	h, err := parseHeaders(o.headers)
	if err != nil {
		return nil, err
	}
	if len(h) > 0 {
		opts = append(opts, xstreamq.Headers(h))
	}
	if o.delay != 0 && o.at != "" {
		return nil, usagef("give --delay or --at, not both")
	}
	if o.delay < 0 {
		return nil, usagef("--delay is %s: it must not be below 0", o.delay)
	}
	if o.delay > 0 {
		opts = append(opts, xstreamq.Delay(o.delay))
	}
	if o.at != "" {
		t, err := time.Parse(time.RFC3339, o.at)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("--at %q is no RFC 3339 time", o.at), hint: "--at 2026-01-31T15:04:05Z"}
		}
		opts = append(opts, xstreamq.DeliverAt(t))
	}
	if o.dedupeID != "" {
		opts = append(opts, xstreamq.DedupeID(o.dedupeID))
	}
	return opts, nil
}

func (o *publishOptions) openLines() (*lineReader, error) {
	if o.file == "" || o.file == "-" {
		return newLineReader("stdin", o.a.in, nil, false), nil
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, fmt.Errorf("reading --file: %w", err)
	}
	whole := false
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		o.total, whole = info.Size(), true
	}
	return newLineReader(o.file, f, f, whole), nil
}

// publisher counts what the server confirmed, so that it can be said also when it ends half way.
type publisher struct {
	o          *publishOptions
	q          *xstreamq.Queue[[]byte]
	opts       []xstreamq.PublishOption
	bar        *progress
	ids        []string
	published  int
	duplicates int
}

// one publishes a single message, with its dedupe id.
func (p *publisher) one(ctx context.Context, src *lineReader) error {
	var body []byte
	if src == nil {
		body = []byte(p.o.bodies[0])
	} else {
		var err error
		if body, err = src.only(); err != nil {
			return err
		}
	}
	res, err := p.q.Publish(ctx, body, p.opts...)
	if err != nil {
		return err
	}
	p.add(res)
	return nil
}

func (p *publisher) args(ctx context.Context) error {
	bodies := make([][]byte, len(p.o.bodies))
	for i, s := range p.o.bodies {
		bodies[i] = []byte(s)
	}
	for start := 0; start < len(bodies); start += p.o.batch {
		end := min(start+p.o.batch, len(bodies))
		if at, err := p.send(ctx, bodies[start:end]); at >= 0 {
			return fmt.Errorf("body %d: %w", start+at+1, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// lines sends in batches. What precedes a bad line is sent before its error is reported.
func (p *publisher) lines(ctx context.Context, src *lineReader) error {
	var batch [][]byte
	size, first := 0, 1
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if at, err := p.send(ctx, batch); at >= 0 {
			return fmt.Errorf("%s line %d: %w; %d published", src.name, first+at, err, p.published)
		} else if err != nil {
			return fmt.Errorf("%w; %d published", err, p.published)
		}
		first += len(batch)
		batch, size = batch[:0], 0
		p.bar.update(src.bytes, p.o.total)
		return nil
	}
	for {
		line, err := src.next()
		if err != nil {
			if e := flush(); e != nil {
				return e
			}
			if errors.Is(err, errNoMoreLines) {
				return nil
			}
			return fmt.Errorf("%w; %d published", err, p.published)
		}
		batch = append(batch, line)
		size += len(line)
		if len(batch) >= p.o.batch || size >= batchBytes || src.quiet() {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// send publishes one batch. On an error that concerns single bodies, at is the index of the first of them, else -1.
func (p *publisher) send(ctx context.Context, bodies [][]byte) (at int, err error) {
	res, err := p.q.PublishBatch(ctx, bodies, p.opts...)
	var failed xstreamq.BatchErrors
	if err != nil && !errors.As(err, &failed) {
		return -1, err
	}
	at = -1
	for i := range bodies {
		switch {
		case failed[i] != nil && at < 0:
			at = i
		case failed[i] == nil && i < len(res):
			p.add(res[i])
		}
	}
	if at >= 0 {
		return at, failed[at]
	}
	return -1, nil
}

func (p *publisher) add(r xstreamq.Published) {
	if r.Duplicate {
		p.duplicates++
	} else {
		p.published++
	}
	if len(p.ids) <= maxIDs {
		p.ids = append(p.ids, r.ID)
	}
}

func (p *publisher) print() error {
	if p.o.a.json {
		ids := p.ids
		if ids == nil || len(ids) > maxIDs {
			ids = []string{}
		}
		return p.o.a.printJSON(publishJSON{p.published, ids})
	}
	if p.duplicates > 0 {
		p.o.a.note("already published under this dedupe id; the id is the first one's")
	}
	var out string
	switch {
	case len(p.ids) > maxIDs:
		out = fmt.Sprintf("%d published\n", p.published)
	case len(p.ids) > 0:
		escaped := make([]string, len(p.ids))
		for i, id := range p.ids {
			escaped[i] = escape(id)
		}
		out = strings.Join(escaped, "\n") + "\n"
	}
	_, err := p.o.a.out.Write([]byte(out))
	return err
}
