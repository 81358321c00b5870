package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/proxy"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// Outage is a fault of the server or the network, from its start until it was mended.
type Outage struct {
	Kind Kind
	ledger.Span
	CPU float64 // the most that one worker used meanwhile, as a share of a core
}

// striker carries out the schedule. Faults of one lane come one after the other; a lane that is late goes on at once.
type striker struct {
	fleet   *fleet
	spared  int // the first so many workers are left alone
	site    *site
	proxy   *proxy.Proxy // nil when connections are direct
	stream  string
	group   string
	outages chan Outage
	counts  chan Kind
}

const (
	drainTime  = 10 * time.Second // of a worker that is asked to end
	slowBy     = 50 * time.Millisecond
	powerLoses = time.Second // appendfsync everysec
)

// lane runs its events; the first error ends it.
func (t *striker) lane(ctx context.Context, begin time.Time, list []Event) error {
	for _, e := range list {
		if !pause(ctx, time.Until(begin.Add(e.At))) {
			return nil
		}
		if err := t.strike(ctx, e); err != nil {
			return fmt.Errorf("%s at %v: %w", e.Kind, e.At, err)
		}
		t.counts <- e.Kind
	}
	return nil
}

func (t *striker) strike(ctx context.Context, e Event) error {
	victims := t.fleet.slots[t.spared:]
	victim := victims[e.Draw%uint64(len(victims))]
	switch e.Kind {
	case Kill:
		return t.fleet.kill(victim)
	case Sleep:
		return t.fleet.sleep(victim, e.Lasts)
	case Deploy:
		return t.fleet.deploy(victims, drainTime)
	case Flush:
		t.flush()
		return nil
	case Failover:
		out := Outage{Kind: e.Kind}
		out.From = time.Now().UnixNano()
		over, err := t.site.failover()
		out.To = over.UnixNano()
		t.outages <- out
		return err
	}
	out := Outage{Kind: e.Kind}
	out.From = time.Now().UnixNano()
	used := t.fleet.used()
	undo, err := t.inflict(e.Kind, e.Draw)
	if err != nil {
		return err
	}
	if undo != nil {
		pause(ctx, e.Lasts)
		if err := undo(); err != nil {
			return err
		}
	}
	out.To = time.Now().UnixNano()
	if e.Kind != Slow && e.Lasts > 0 { // then they have nothing to do
		for name, now := range t.fleet.used() {
			if before, ok := used[name]; ok {
				out.CPU = max(out.CPU, float64(now-before)/float64(out.To-out.From))
			}
		}
	}
	t.outages <- out
	return nil
}

// inflict begins a fault of the server or the network and returns what ends it.
func (t *striker) inflict(k Kind, draw uint64) (undo func() error, err error) {
	srv, err := t.site.find()
	if err != nil {
		return nil, err
	}
	do := func(args ...string) error {
		_, err := srv.Do(args...)
		return err
	}
	mend := func() error {
		t.proxy.Mend()
		return nil
	}
	switch k {
	case Restart:
		return func() error { return srv.Launch() }, srv.Kill()
	case PowerCut:
		at := time.Now()
		if err := srv.Kill(); err != nil {
			return nil, err
		}
		_, err := srv.Forget(at.Add(-powerLoses))
		return func() error { return srv.Launch() }, err
	case Freeze:
		return srv.Thaw, srv.Freeze()
	case Full:
		return func() error { return do("CONFIG", "SET", "maxmemory", "0") }, do("CONFIG", "SET", "maxmemory", "1")
	case ReadOnly:
		return func() error { return do("REPLICAOF", "NO", "ONE") }, do("REPLICAOF", "127.0.0.1", "1")
	case Busy:
		ended := make(chan error, 1)
		go func() {
			_, err := resp.Once(srv.Addr(), time.Minute, "EVAL", "while true do end", "0")
			ended <- err
		}()
		return func() error {
			for range 100 {
				if err := do("SCRIPT", "KILL"); err == nil {
					if err := <-ended; err == nil {
						return errors.New("the endless script has ended")
					}
					return nil
				}
				time.Sleep(20 * time.Millisecond) // it has not begun, or is not slow yet
			}
			return errors.New("the script cannot be killed")
		}, nil
	case Hangup:
		return nil, do("CLIENT", "KILL", "TYPE", "normal")
	case Destroy:
		return nil, do("XGROUP", "DESTROY", "{"+t.stream+"}", t.group)
	case Destroy2:
		return nil, do("XGROUP", "DESTROY", "{"+t.stream+"}."+t.group+".retry", t.group)
	case Records:
		return nil, do("DEL", "{"+t.stream+"}."+t.group+".workers")
	case Type:
		parked := "{" + t.stream + "}." + t.group + ".parked"
		swap := func(script string) error { return do("EVAL", script, "2", parked, parked+".aside") }
		return func() error { return swap(putBack) }, swap(putAway)
	case Migrate:
		return nil, t.site.migrate(draw)
	case Delete:
		return nil, do("DEL", "{"+t.stream+"}")
	case Cut:
		t.proxy.Cut()
		return mend, nil
	case Slow:
		t.proxy.Slow(slowBy)
		return mend, nil
	case Hole:
		t.proxy.Hole()
		return mend, nil
	}
	return nil, errors.New("no such fault")
}

// flush empties the script cache of every node that answers soon.
func (t *striker) flush() {
	for _, n := range t.site.nodes {
		_, _ = resp.Once(n.Addr(), 100*time.Millisecond, "SCRIPT", "FLUSH") // one that is away has none
	}
}

// The key is put away and back in one step, so that what is parked between is not written over.
const (
	putAway = `if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end return redis.call('SET', KEYS[1], 'x')`
	putBack = `redis.call('DEL', KEYS[1]) if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('RENAME', KEYS[2], KEYS[1]) end return 1`
)

// pause waits; false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
