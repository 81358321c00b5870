// Package demo shows the whole life of messages on an embedded server: published, handled, retried with backoff, held
// by a worker process that is killed and recovered from it, dead, redriven. It keeps a ledger of its own and checks it
// against the server in the end.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/xstreamq/xstreamq"
)

const (
	stream = "orders"
	group  = "billing"

	maxRetries = 2
	backoff    = 200 * time.Millisecond
	heldBySlow = 6 // messages that the second worker takes and never finishes
)

// Options of one run.
type Options struct {
	For      time.Duration // about how long it takes, at least MinFor; it ends at the latest 30 s later, on a machine that is busy with other things
	Messages int           // at least MinMessages
	Out      io.Writer     // what happens, line by line
	Live     bool          // Out is a terminal: keep a status line at the bottom
	// Dash serves the dashboard of the demo, where it is given, and returns its address and what ends it.
	Dash func(*xstreamq.Client) (url string, stop func(), err error)
	// Worker starts the second worker as a process of its own, which calls Worker with url.
	Worker func(url string) (*Process, error)
}

// Bounds of Options.
const (
	MinFor      = 8 * time.Second
	MinMessages = 50
)

// Tally is what happened; it adds up, or Run returns an error.
type Tally struct {
	Published  int `json:"published"`
	Acked      int `json:"acked"`
	Retried    int `json:"retried"`
	LostLeases int `json:"lost_leases"`
	Dead       int `json:"dead"`
	Redriven   int `json:"redriven"`
}

// Order is the message.
type Order struct {
	Number int    `json:"number"`
	Card   string `json:"card"`
}

type demo struct {
	o      Options
	show   *screen
	ledger *ledger
	client *xstreamq.Client
	queue  *xstreamq.Queue[Order]
	admin  *xstreamq.GroupAdmin
	url    string
}

// Run plays it through. An error means that it did not finish, or that the tally does not add up.
func Run(ctx context.Context, o Options) (t Tally, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.For+30*time.Second, errors.New("the demo did not come to its end in time"))
	defer cancel()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		return t, fmt.Errorf("starting the embedded server: %w", err)
	}
	defer server.Close()
	d := &demo{o: o, ledger: newLedger(), url: "redis://" + server.Addr()}
	d.show = newScreen(o.Out, o.Live)
	defer d.show.end()
	d.client, err = xstreamq.Open(d.url, xstreamq.ConsumerPrefix("worker-1"), xstreamq.WithHooks(d.hooks()),
		xstreamq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, d.client.Close()) }()
	d.queue = xstreamq.NewQueue[Order](d.client, stream)
	d.admin = d.client.Admin().Group(stream, group)
	d.show.say("an embedded server listens on %s, in memory", server.Addr())
	if o.Dash != nil {
		url, stop, err := o.Dash(d.client)
		if err != nil {
			return t, err
		}
		defer stop()
		d.show.say("the dashboard: %s", url)
	}
	if err := d.play(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
		return d.ledger.tally(), err
	}
	return d.ledger.tally(), nil
}

// play is the story, act by act.
func (d *demo) play(ctx context.Context) error {
	_, err := d.queue.Subscribe(group, d.handle,
		xstreamq.VisibilityTimeout(visibility), xstreamq.MaxRetries(maxRetries), xstreamq.Concurrency(8),
		xstreamq.WithBackoff(xstreamq.Exponential{Initial: backoff}))
	if err != nil {
		return err
	}
	if err := d.client.Start(ctx); err != nil {
		return err
	}
	slow, err := d.o.Worker(d.url)
	if err != nil {
		return fmt.Errorf("starting the second worker: %w", err)
	}
	defer slow.Kill()
	if err := slow.waitFor(ctx, ready, 1); err != nil {
		return err
	}
	d.show.say("worker 1 runs in this process, worker 2 is process %d", slow.Pid())
	watching, done := context.WithCancel(ctx)
	defer done()
	go d.show.watch(watching, d.status)

	published := make(chan error, 1)
	go func() { published <- d.publish(ctx) }()
	if err := d.killSlow(ctx, slow); err != nil {
		return err
	}
	if err := <-published; err != nil {
		return err
	}
	d.show.say("all %d orders are published", d.o.Messages)
	if err := d.waitEmpty(ctx); err != nil {
		return err
	}
	if err := d.redrive(ctx); err != nil {
		return err
	}
	if err := d.waitEmpty(ctx); err != nil {
		return err
	}
	done()
	return d.check(ctx)
}

func (d *demo) publish(ctx context.Context) error {
	spread := d.o.For * 3 / 5
	d.show.say("publishing %d orders over %s", d.o.Messages, spread.Round(100*time.Millisecond))
	start := time.Now()
	for n := range d.o.Messages {
		if err := sleep(ctx, time.Until(start.Add(spread*time.Duration(n)/time.Duration(d.o.Messages)))); err != nil {
			return err
		}
		p, err := d.queue.Publish(ctx, Order{Number: n, Card: plan(n).card()})
		if err != nil {
			return err
		}
		d.ledger.published(p.ID, n)
	}
	return nil
}

// killSlow lets the second worker take messages, kills it, and notes what it held.
func (d *demo) killSlow(ctx context.Context, slow *Process) error {
	if err := slow.waitFor(ctx, holding, heldBySlow); err != nil {
		return err
	}
	d.show.say("worker 2 is slow: it holds %d orders and has finished none", heldBySlow)
	if err := sleep(ctx, d.o.For/20); err != nil {
		return err
	}
	slow.Kill()
	d.show.say("kill -9 %d: worker 2 is dead, its leases last up to %s more", slow.Pid(), visibility)
	// Until the server has seen the connection close it may still hand something to it.
	if err := sleep(ctx, 100*time.Millisecond); err != nil {
		return err
	}
	pending, err := d.admin.Pending(ctx, xstreamq.Page{Limit: 1000})
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, p := range pending {
		if !strings.HasPrefix(p.Consumer, "worker-2") {
			continue
		}
		r, err := d.client.Admin().Stream(stream).Get(ctx, p.EntryID) // a retry's entry id is not the message's id
		if err != nil {
			return err
		}
		held[r.ID] = true
	}
	d.ledger.heldBy2(held)
	go func() {
		if d.ledger.waitRecovered(ctx) == nil {
			d.show.say("its leases ran out: worker 1 has all %d orders, no attempt was spent", len(held))
		}
	}()
	return nil
}

func (d *demo) redrive(ctx context.Context) error {
	ids := map[string]bool{}
	for l, err := range d.admin.DeadLetters(ctx, xstreamq.Filter{}) {
		if err != nil {
			return err
		}
		ids[l.ID] = true
	}
	d.show.say("all is done but %d dead letters: expired cards", len(ids))
	if err := eventually(ctx, func() error { return d.ledger.checkDead(ids) }); err != nil {
		return err
	}
	if err := sleep(ctx, d.o.For/20); err != nil {
		return err
	}
	d.ledger.fix()
	d.show.say("the handler now asks for a new card: redriving the dead letters")
	res, err := d.admin.RedriveAll(ctx, xstreamq.Filter{All: true}, xstreamq.Bulk{})
	if err != nil {
		return err
	}
	d.ledger.redriven(res.Done)
	return nil
}

func (d *demo) waitEmpty(ctx context.Context) error {
	for looks := 0; looks < 2; {
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		depth, err := d.admin.Depth(ctx)
		if err != nil {
			return err
		}
		if empty(depth) {
			looks++
		} else {
			looks = 0
		}
	}
	return nil
}

func empty(d xstreamq.Depth) bool {
	return d.Lag != nil && *d.Lag == 0 && d.Pending == 0 && d.Retry == 0 && d.Retrying == 0
}

func (d *demo) status(ctx context.Context) string {
	depth, err := d.admin.Depth(ctx)
	if err != nil {
		return ""
	}
	t := d.ledger.tally()
	lag := "?"
	if depth.Lag != nil {
		lag = fmt.Sprint(*depth.Lag)
	}
	return fmt.Sprintf("published %4d  acked %4d  waiting %3s  in flight %2d  retrying %2d  dead %2d",
		t.Published, t.Acked, lag, depth.Pending, depth.Retry+depth.Retrying, depth.Dead)
}

func (d *demo) check(ctx context.Context) error {
	depth, err := d.admin.Depth(ctx)
	if err != nil {
		return err
	}
	if !empty(depth) || depth.Dead != 0 {
		return fmt.Errorf("the server still holds messages: %+v", depth)
	}
	return eventually(ctx, func() error { return d.ledger.check(d.o.Messages) })
}

// eventually gives the hooks, which are told after the server, a moment to catch up.
func eventually(ctx context.Context, check func() error) error {
	for deadline := time.Now().Add(3 * time.Second); ; {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if sleep(ctx, 20*time.Millisecond) != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
