package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newWork(a *app) *cobra.Command {
	o := &workOptions{a: a}
	cmd := &cobra.Command{
		Use:   "work STREAM GROUP -- CMD [ARG...]",
		Short: "Run a command for every message: a worker in any language",
		Long: `Run CMD once for every message, the body on its stdin. Its exit code settles the message:

  0    done
  65   rejected: a dead letter at once
  else failed: retried after the backoff, a dead letter when the retries are spent (75 is a good choice)

The last line that CMD wrote to stderr becomes the error. Both its stdout and its stderr go to our stderr. In its
environment: XSTREAMQ_ID (stable for life: the key for your own deduplication), XSTREAMQ_ENTRY_ID, XSTREAMQ_STREAM,
XSTREAMQ_GROUP, XSTREAMQ_ATTEMPT (from 1), XSTREAMQ_MAX_ATTEMPTS (0 = for ever), XSTREAMQ_HEADERS (a JSON object).

When its time is up, or at the end of the drain, CMD and what it started get SIGTERM and soon after SIGKILL.

The first SIGINT or SIGTERM stops reading and lets running commands end (--drain); a second one exits at once. Exit code
0 after a clean drain, 1 when commands had to be cut. With --json, one JSON line a message on stdout:
{"event","id","entry_id","attempt","error","ms"}, event one of acked, failed, rejected, dead, released, lost, skipped.`,
		Example: `  xstreamq work orders billing -- ./bill.sh
  xstreamq work orders billing --concurrency 4 --max-retries 3 --backoff 1s,2,1m -- python3 bill.py --fast
  xstreamq work orders billing --until-empty --json -- sh -c 'jq .id' | tee events.ndjson`,
		ValidArgsFunction: a.completeNames(true),
		Args:              o.takeArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runWork(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	return withJSON(cmd, jsonLines, "event", "id", "entry_id", "attempt", "error", "ms")
}

// takeArgs wants exactly STREAM GROUP before the dashes and a command after them.
func (o *workOptions) takeArgs(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash != 2 || len(args) < 3 {
		return &usageError{err: errors.New("which STREAM, GROUP and command?"), hint: "xstreamq work STREAM GROUP -- CMD [ARG...]"}
	}
	o.stream, o.group, o.argv = args[0], args[1], args[2:]
	return nil
}

func runWork(ctx context.Context, o *workOptions) (err error) {
	a := o.a
	opts, err := o.subscribeOptions()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(o.argv[0]); err != nil {
		return fmt.Errorf("CMD cannot be run: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sink := &lineSink{w: a.err}
	w := &worker{o: o, sink: sink, procs: map[int]bool{}}
	ev := &events{a: a, sink: sink, closed: stop, tally: map[string]int{}}
	defer w.killAll() // nothing that we started outlives us, whatever ends us
	defer w.onSignals(stop)()

	c, err := a.open(
		xstreamq.DrainTimeout(o.drain),
		xstreamq.WithHooks(ev.hooks()),
		xstreamq.WithLogger(o.logger(sink)),
	)
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	if err := o.look(ctx, c); err != nil {
		return err
	}
	sub, err := xstreamq.NewQueue[[]byte](c, o.stream).Subscribe(o.group, w.handle, opts...)
	if err != nil {
		return err
	}
	startCtx, cancel := a.call(ctx)
	defer cancel()
	if err := c.Start(startCtx); err != nil {
		if ctx.Err() != nil {
			return nil // told to end before anything began
		}
		return err
	}
	w.say("working on group %s of %s at %s, %d at once; %s", o.group, o.stream, safeURL(a.url), o.parallel(), o.ends())
	began := time.Now()
	defer func() { w.say("%s in %s", ev.summary(), ago(time.Since(began))) }()
	if o.untilEmpty {
		go w.watchEmpty(ctx, c.Admin().Group(o.stream, o.group), stop)
	}
	select {
	case <-ctx.Done():
	case <-sub.Stopped():
	}
	err = errors.Join(sub.Err(), c.Stop(context.WithoutCancel(ctx)))
	if err == nil {
		err = ev.failed()
	}
	return err
}

func (o *workOptions) logger(sink *lineSink) *slog.Logger {
	h := &slog.HandlerOptions{Level: slog.LevelWarn}
	if o.a.json {
		return slog.New(slog.NewJSONHandler(sink, h))
	}
	return slog.New(slog.NewTextHandler(sink, h))
}

// look asks for the group first, as a person would: a worker that has begun waits for a server that does not answer, and
// for a key of another type to go away. That the group is not there yet is no trouble.
func (o *workOptions) look(ctx context.Context, c *xstreamq.Client) error {
	ctx, cancel := o.a.call(ctx)
	defer cancel()
	_, err := c.Admin().Group(o.stream, o.group).Depth(ctx)
	if errors.Is(err, xstreamq.ErrNotFound) {
		return nil
	}
	return err
}

// say tells a person how it goes; with --json stderr has errors only.
func (w *worker) say(format string, args ...any) {
	if !w.o.a.json {
		w.sink.printf("xstreamq: "+format, args...)
	}
}

func (o *workOptions) ends() string {
	if o.untilEmpty {
		return "it ends once the group is empty"
	}
	return "Ctrl-C drains and ends it"
}

// onSignals drains at the first SIGINT or SIGTERM and exits at the second.
func (w *worker) onSignals(stop func()) (done func()) {
	sigs := make(chan os.Signal, 2)
	signal.Notify(sigs, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case s := <-sigs:
				if n > 0 {
					w.killAll()
					os.Exit(exitFailed)
				}
				w.say("%s: draining, up to %s; again to exit at once", s, w.o.drain)
				stop()
			case <-over:
				return
			}
		}
	}()
	return func() { signal.Stop(sigs); close(over) }
}

// watchEmpty stops the worker once nothing of the group waits, is in flight with anybody, or is parked, in two looks
// running: between two keys a message may be seen in neither.
func (w *worker) watchEmpty(ctx context.Context, g *xstreamq.GroupAdmin, stop func()) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for looks := 0; looks < 2; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		look, cancel := w.o.a.call(ctx)
		d, err := g.Depth(look)
		cancel()
		if err == nil && d.Lag != nil && *d.Lag == 0 && d.Pending == 0 && d.Retry == 0 && d.Retrying == 0 {
			looks++
		} else {
			looks = 0
		}
	}
	stop()
}

// lastLine is the last line of b that holds more than white space, at most 1 KiB of it.
func lastLine(b []byte) string {
	lines := strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range slices.Backward(lines) {
		if s := strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD")); s != "" {
			if len(s) > 1024 {
				s = strings.ToValidUTF8(s[:1024], "")
			}
			return s
		}
	}
	return ""
}
