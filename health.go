package xstreamq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/engine"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// healthWait is how long Health waits under a context without a deadline: less than the second that orchestrators give a
// probe by default, so that the reason arrives.
const healthWait = 800 * time.Millisecond

// Health is the itemised answer.
type Health struct {
	Healthy bool    `json:"healthy"` // every check is OK
	Checks  []Check `json:"checks"`
}

// Check is one item: client, server, writable, and for each subscription "subscription STREAM/GROUP" and
// "loops STREAM/GROUP".
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"` // why it is not OK, or what else is to be said: paused, evicts
}

// Health looks at this process: server reachable and writable, every loop alive and progressing, not draining. "writable" is
// asked for the streams of this client's queues, by an XADD that stores nothing, and says so where a full memory would evict
// them (maxmemory-policy); a client without a queue has no such check.
// A paused subscription is healthy. It answers when ctx ends, without a deadline after 800 ms, also when the server does not.
func (c *Client) Health(ctx context.Context) Health {
	ctx, cancel := boundHealth(ctx)
	defer cancel()
	if c == nil || c.rdb == nil {
		return summary(Check{Name: "client", Detail: c.open().Error()})
	}
	client, subs := c.phaseCheck()
	look := sync.OnceValue(func() found { return c.probe(ctx) })
	var fares []Check // before the look, which takes all the time there is where the server hangs
	for _, s := range subs {
		fares = append(fares, s.health(ctx, func() bool { return look().server == nil })...)
	}
	got := look()
	checks := []Check{client, verdictOf("server", got.server, "")}
	if len(c.publisher.streams()) > 0 {
		checks = append(checks, verdictOf("writable", got.writable, got.evicts))
	}
	return summary(append(checks, fares...)...)
}

// ReadyHandler answers 200 or 503 with Health as JSON; red while draining, and before Start is through.
func (c *Client) ReadyHandler() http.Handler {
	return healthHandler(c.Health)
}

// LiveHandler answers as ReadyHandler does, but looks at the loops alone: red only when one ended by itself, or has made no step
// for over a minute while the server answers. A server that is away makes it no redder: a restart would not mend that.
func (c *Client) LiveHandler() http.Handler {
	return healthHandler(func(ctx context.Context) Health {
		ctx, cancel := boundHealth(ctx)
		defer cancel()
		checks := []Check{}
		if c == nil || c.rdb == nil {
			return summary(checks...)
		}
		_, subs := c.phaseCheck()
		for _, s := range subs {
			all := s.health(ctx, func() bool { return c.probe(ctx).server == nil })
			checks = append(checks, all[len(all)-1])
		}
		return summary(checks...)
	})
}

func healthHandler(look func(context.Context) Health) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := look(r.Context())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !h.Healthy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // who asked may be gone
	})
}

func boundHealth(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, healthWait)
}

func summary(checks ...Check) Health {
	bad := slices.ContainsFunc(checks, func(c Check) bool { return !c.OK })
	return Health{Healthy: !bad, Checks: checks}
}

// phaseCheck is where the client stands in its life, and its subscriptions, sorted.
func (c *Client) phaseCheck() (Check, []*Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	subs := make([]*Subscription, 0, len(c.subs))
	for _, s := range c.subs {
		subs = append(subs, s)
	}
	slices.SortFunc(subs, func(a, b *Subscription) int { return compareRefs(a.ref, b.ref) })
	check := Check{Name: "client"}
	switch c.phase {
	case fresh:
		if check.OK = !slices.ContainsFunc(subs, func(s *Subscription) bool { return !s.pull }); !check.OK {
			check.Detail = "not started"
		}
	case running:
		check.OK = true
	case stopping:
		check.Detail = "draining"
	case stopped:
		check.Detail = "stopped"
	case closed:
		check.Detail = ErrClosed.Error()
	}
	return check, subs
}

// probing lets one look at the server be under way at a time: probes that come while it hangs wait for the same one.
type probing struct {
	mu  sync.Mutex
	now *probed
}

type probed struct {
	began time.Time
	done  chan struct{}
	found
}

// found is what a look at the server found.
type found struct {
	server, writable error
	evicts           string // its policy, where a full memory would take messages
}

// probe asks whether the server answers, and whether it would take a message. Both errors say so when ctx ends first.
func (c *Client) probe(ctx context.Context) found {
	c.probing.mu.Lock()
	now := c.probing.now
	if now == nil {
		now = &probed{began: time.Now(), done: make(chan struct{})}
		c.probing.now = now
		go func() {
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), conn.Deadline)
			defer cancel()
			var ping sync.WaitGroup
			ping.Go(func() { now.server = serverError("ping", c.rdb.Process(bounded, lua.NewOnce(bounded, "ping"))) })
			now.evicts, now.writable = c.probeWrites(bounded)
			ping.Wait()
			c.probing.mu.Lock()
			c.probing.now = nil
			c.probing.mu.Unlock()
			close(now.done)
		}()
	}
	c.probing.mu.Unlock()
	select {
	case <-now.done:
		return now.found
	case <-ctx.Done():
		err := fmt.Errorf("%w: no answer for %s", ErrUnavailable, time.Since(now.began).Round(time.Millisecond))
		return found{server: err, writable: err}
	}
}

// probeWrites asks each node that has a stream of our queues, by an XADD to a key that does not exist and is not to be made: it
// is judged as a publish is, and stores nothing. Beside, it looks for one that evicts.
func (c *Client) probeWrites(ctx context.Context) (evicts string, first error) {
	nodes := map[redis.UniversalClient]keys.Stream{}
	for _, name := range c.publisher.streams() {
		k := keys.NewStream(c.prefix, name)
		node, _ := conn.Master(ctx, c.rdb, k.Main) // nil where none is known: the XADD will say why
		nodes[node] = k
	}
	type answer struct {
		err    error
		evicts string
	}
	answers := make(chan answer, len(nodes))
	for node, k := range nodes {
		go func() {
			err := c.rdb.Process(ctx, lua.NewOnce(ctx, "xadd", k.Probe(), "nomkstream", "*", "probe", ""))
			if errors.Is(err, redis.Nil) {
				err = nil
			}
			a := answer{err: serverError("stream "+k.Name, err)}
			if err == nil && node != nil {
				a.evicts = conn.Evicts(ctx, node)
			}
			answers <- a
		}()
	}
	for range nodes {
		a := <-answers
		first, evicts = cmp.Or(first, a.err), cmp.Or(evicts, a.evicts)
	}
	return evicts, first
}

func verdictOf(name string, err error, evicts string) Check {
	switch {
	case err != nil:
		return Check{Name: name, Detail: err.Error()}
	case evicts != "":
		return Check{Name: name, OK: true, Detail: "a full memory may take messages: maxmemory-policy is " + evicts}
	}
	return Check{Name: name, OK: true}
}

// health is two checks: what the subscription comes to, and its loops. answers is asked where only an answering server makes a
// slow loop a wedged one.
func (s *Subscription) health(ctx context.Context, answers func() bool) []Check {
	fares, loops := Check{Name: "subscription " + s.ref.Stream + "/" + s.ref.Group}, Check{Name: "loops " + s.ref.Stream + "/" + s.ref.Group, OK: true}
	s.mu.Lock()
	sub := s.sub
	s.mu.Unlock()
	if sub == nil {
		fares.OK, fares.Detail = s.pull, "not started"
		return []Check{fares, loops}
	}
	got := make(chan engine.Status, 1)
	go func() { got <- sub.Status(time.Now()) }()
	select {
	case st := <-got:
		fares.OK, fares.Detail = s.judge(st)
		if wedged := st.Silent; len(st.Dead) > 0 || len(wedged) > 0 && answers() {
			loops.OK, loops.Detail = false, "ended by themselves: "+strings.Join(st.Dead, ", ")
			if len(st.Dead) == 0 {
				loops.Detail = "without a step: " + strings.Join(wedged, ", ")
			}
		}
	case <-ctx.Done():
		fares.Detail = "does not answer"
		loops.OK, loops.Detail = false, "they do not answer"
	}
	return []Check{fares, loops}
}

func (s *Subscription) judge(st engine.Status) (ok bool, detail string) {
	switch {
	case st.Err != nil:
		return false, st.Err.Error()
	case s.over():
		return false, "stopped"
	case st.Trouble != nil:
		return false, st.Trouble.Error()
	case !st.Ready:
		return false, "the group is not being read yet"
	case !st.Lease:
		return false, "without a lease: nothing is started"
	case st.Deaf*2 >= st.Slots && st.Deaf > 0:
		return false, fmt.Sprintf("%d of %d handlers do not heed the end of their context", st.Deaf, st.Slots)
	case st.Paused:
		return true, "paused"
	}
	return true, ""
}
