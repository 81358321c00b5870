package xstreamq_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// heldConn holds back the reader's connection: it alone asks for its id.
type heldConn struct {
	net.Conn
	until <-chan struct{}
}

func (c *heldConn) Write(b []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(b), []byte("\r\nclient\r\n$2\r\nid\r\n")) {
		<-c.until
	}
	return c.Conn.Write(b)
}

// After a failover that lost writes, the new master may give an id again. Acks that the pool sends there before the reader has
// found out must not remove what is another consumer's.
func TestAckBeforeTheReaderKnowsTheNewMaster(t *testing.T) {
	t.Parallel()
	before, after := redistest.Start(t), redistest.Start(t)
	s, next := siteOn(t, before), after.Client(t)
	var addr atomic.Value
	addr.Store(before.Addr())
	release, ends := make(chan struct{}), make(chan xstreamq.Outcome, 10)
	rdb := s.borrowed(func(o *redis.UniversalOptions) {
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			cn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr.Load().(string))
			if err != nil || addr.Load() == before.Addr() {
				return cn, err
			}
			return &heldConn{cn, release}, nil
		}
	})
	c, err := xstreamq.New(rdb, xstreamq.Prefix(s.prefix), xstreamq.SweepInterval(100*time.Millisecond), xstreamq.WithHooks(xstreamq.Hooks{
		HandleEnd: func(_ context.Context, _ *xstreamq.Delivery, o xstreamq.Outcome, _ error, _ time.Duration) { ends <- o },
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()      //nolint:errcheck // its server is gone
	defer close(release) // before it
	began, finish := make(chan struct{}), make(chan struct{})
	s.subscribe(c, func(context.Context, *xstreamq.Message[order]) error {
		close(began)
		<-finish
		return nil
	})
	s.start(c)
	ctx := t.Context()
	if err := s.rdb.XAdd(ctx, &redis.XAddArgs{Stream: s.keys.Main, ID: "5-1", Values: []string{"body", `{"id":1}`}}).Err(); err != nil {
		t.Fatal(err)
	}
	<-began

	// The new master has the worker's lease, and gave the id to another message, which another consumer holds.
	lease, err := s.rdb.HGetAll(ctx, s.keys.Workers).Result()
	if err != nil || len(lease) != 1 {
		t.Fatal(lease, err)
	}
	do := func(args ...any) {
		t.Helper()
		if err := next.Do(ctx, args...).Err(); err != nil {
			t.Fatal(args, err)
		}
	}
	do("xadd", s.keys.Main, "5-1", "body", `{"id":2}`)
	do("xgroup", "create", s.keys.Main, "svc", "0")
	do("xgroup", "create", s.keys.Retry, "svc", "0", "mkstream")
	do("hset", s.keys.Groups, "svc", "0-0|1")
	do("xreadgroup", "group", "svc", "other~1", "streams", s.keys.Main, ">")
	do("hset", s.keys.Workers, "other~1", "3600000|99999999999999|1|live|")
	for name, record := range lease {
		do("hset", s.keys.Workers, name, strings.Replace(record, "30000|", "3600000|", 1))
	}
	addr.Store(after.Addr())
	before.Kill()
	redistest.Eventually(t, patience, func() bool { // the pool is there
		return strings.Contains(next.Info(ctx, "commandstats").Val(), "cmdstat_evalsha:")
	}, "a tick on the new master")
	close(finish)
	if o := receiveOne(t, ends, "the settlement"); o != xstreamq.OutcomeLost {
		t.Errorf("settled as %s, want lost: the other master has another message of that id", o)
	}
	if n := next.XPending(ctx, s.keys.Main, "svc").Val().Count; n != 1 {
		t.Errorf("%d entries are pending, want the other consumer's", n)
	}
}

// A server that became a replica, behind an address that leads to the new master now: what it refuses makes the reader connect
// anew, as go-redis makes its own connections. A reader that stayed would be refused for ever. It reads nothing meanwhile, since
// the server ends the connections of blocked reads.
func TestReaderLeavesADemotedServer(t *testing.T) {
	t.Parallel()
	before, after := redistest.Start(t), redistest.Start(t)
	s := siteOn(t, before)
	var addr atomic.Value
	addr.Store(before.Addr())
	rdb := s.borrowed(func(o *redis.UniversalOptions) {
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr.Load().(string))
		}
	})
	c, err := xstreamq.New(rdb, xstreamq.Prefix(s.prefix))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // a test's
	handled, finish := make(chan int, 10), make(chan struct{})
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		handled <- m.Body.ID
		<-finish
		return nil
	}, xstreamq.Concurrency(1), xstreamq.Prefetch(0))
	s.start(c)
	s.publish(1, 1)
	if got := receiveOne(t, handled, "the message of the first master"); got != 1 {
		t.Fatal(got)
	}
	host, port, err := net.SplitHostPort(after.Addr())
	if err != nil {
		t.Fatal(err)
	}
	addr.Store(after.Addr())
	if err := s.rdb.Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	close(finish)
	if err := after.Client(t).XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.Main, Values: []string{"body", `{"id":2}`}}).Err(); err != nil {
		t.Fatal(err)
	}
	if got := receiveOne(t, handled, "the message of the new master"); got != 2 {
		t.Errorf("message %d", got)
	}
}
