package xstreamqtest

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/xstreamq/xstreamq"
)

// Kit is an in-process server with a clock of its own, and a client on it. All ends with the test.
type Kit struct {
	t      testing.TB
	server *miniredis.Miniredis
	opts   []xstreamq.ClientOption
	client *xstreamq.Client
	seen   watcher

	peers   sync.Map // connections that have said hello; the calls inside a script come from none of them
	clock   sync.Mutex
	ahead   time.Duration // of the server's clock; guarded by clock
	failure atomic.Pointer[string]
	handles atomic.Int64 // clients that Handle made
}

// New fails t when it can't start. Parallel tests each have their own. opts are for the kit's client.
func New(t testing.TB, opts ...xstreamq.ClientOption) *Kit {
	t.Helper()
	out := &output{w: t.Output()}
	k := &Kit{t: t, server: miniredis.NewMiniRedis()}
	k.server.ClockTTL(true)
	if err := k.server.Start(); err != nil {
		t.Fatalf("xstreamqtest: starting the in-process server: %v", err)
	}
	k.server.Server().SetPreHook(k.hook)
	k.opts = append([]xstreamq.ClientOption{
		xstreamq.SweepInterval(50 * time.Millisecond), xstreamq.DrainTimeout(time.Second),
		xstreamq.WithLogger(slog.New(slog.NewTextHandler(out, nil))),
	}, opts...)
	client, err := xstreamq.Open(k.URL(), append(k.opts, xstreamq.WithHooks(k.seen.hooks()))...)
	if err != nil {
		k.server.Close()
		t.Fatalf("xstreamqtest: %v", err)
	}
	k.client = client
	t.Cleanup(func() {
		k.Mend()
		if err := client.Close(); err != nil {
			t.Logf("xstreamqtest: closing the client: %v", err)
		}
		k.server.Close()
		out.end()
	})
	return k
}

// Client is the kit's client; the test's end closes it.
func (k *Kit) Client() *xstreamq.Client { return k.client }

// URL is for clients of one's own, of this library (Open) or another. They must be closed before the test ends.
func (k *Kit) URL() string { return "redis://" + k.server.Addr() }

// Break makes every call fail with err until Mend. [xstreamq.ErrUnavailable] fails publishes at once; an error with a
// server's text ("OOM …", "READONLY …", "LOADING …") is what the server answers: where time may mend it, a publish is
// repeated until its context or PublishTimeout ends.
func (k *Kit) Break(err error) {
	text := "ERR xstreamqtest: broken"
	switch {
	case errors.Is(err, xstreamq.ErrUnavailable):
		text = "OOM xstreamqtest: broken" // the one refusal that is told at once
	case err != nil:
		text = err.Error()
	}
	k.failure.Store(&text)
}

// Mend ends what Break began.
func (k *Kit) Mend() { k.failure.Store(nil) }

// hook runs before each command: it moves the server's clock on, and fails what shall fail. What a script calls passes:
// the server is locked meanwhile, and a script is never cut in its middle.
func (k *Kit) hook(peer *server.Peer, cmd string, _ ...string) bool {
	if _, known := k.peers.Load(peer); !known {
		if cmd != "HELLO" && cmd != "CLIENT" && cmd != "AUTH" {
			return false
		}
		k.peers.Store(peer, true)
		peer.OnDisconnect(func() { k.peers.Delete(peer) })
	}
	k.clock.Lock()
	k.setClock()
	k.clock.Unlock()
	if text := k.failure.Load(); text != nil {
		peer.WriteError(*text)
		return true
	}
	return false
}

// output is the test's, until the test is over.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return len(p), nil
	}
	return o.w.Write(p)
}

func (o *output) end() {
	o.mu.Lock()
	o.w = nil
	o.mu.Unlock()
}
