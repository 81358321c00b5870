package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// mirrored is a site on a master with a replica.
func mirrored(t *testing.T) (s *site, replica *redistest.Server) {
	t.Helper()
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	replica = redistest.Start(t, "--replicaof", strings.Replace(master.Addr(), ":", " ", 1))
	s = siteOn(t, master)
	s.eventually(func() bool { return s.replicas() == 1 }, "a replica")
	return s, replica
}

// replicas is how many replicas have confirmed all that was written.
func (s *site) replicas() int64 {
	s.t.Helper()
	n, err := s.rdb.Do(context.Background(), "wait", 1, 100).Int64()
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// ways are all ways to publish, each with one message of the given number.
func ways(q *xstreamq.Queue[order], opts ...xstreamq.PublishOption) map[string]func(ctx context.Context, n int) ([]xstreamq.Published, error) {
	one := func(more ...xstreamq.PublishOption) func(context.Context, int) ([]xstreamq.Published, error) {
		return func(ctx context.Context, n int) ([]xstreamq.Published, error) {
			p, err := q.Publish(ctx, order{n}, append(more, opts...)...)
			return []xstreamq.Published{p}, err
		}
	}
	return map[string]func(ctx context.Context, n int) ([]xstreamq.Published, error){
		"plain": one(), "delayed": one(xstreamq.Delay(time.Hour)), "deduplicated": one(xstreamq.DedupeID("k")),
		"batch": func(ctx context.Context, n int) ([]xstreamq.Published, error) {
			return q.PublishBatch(ctx, []order{{n}, {n}, {n}}, opts...)
		},
		"mixed batch": func(ctx context.Context, n int) ([]xstreamq.Published, error) {
			b := q.NewBatch()
			b.Add(order{n}, opts...)
			b.Add(order{n}, append(opts, xstreamq.Delay(time.Hour))...)
			return b.Publish(ctx)
		},
	}
}

// With WaitReplicas a publish is confirmed when the replica has it, and else says that it is stored and not replicated, in time;
// who waits for none is not held up.
func TestWaitReplicas(t *testing.T) {
	t.Parallel()
	s, replica := mirrored(t)
	q := s.queue(s.open())
	wait := xstreamq.WaitReplicas(1)
	copied := redis.NewClient(&redis.Options{Addr: replica.Addr()})
	defer copied.Close() //nolint:errcheck // a test's
	for name, publish := range ways(q, wait) {
		before := s.rdb.XLen(t.Context(), s.keys.Main).Val() + s.rdb.HLen(t.Context(), s.keys.Stream.Parked).Val()
		list, err := publish(t.Context(), 1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := copied.XLen(t.Context(), s.keys.Main).Val() + copied.HLen(t.Context(), s.keys.Stream.Parked).Val(); n != before+int64(len(list)) {
			t.Errorf("%s: the replica has %d messages, want %d", name, n, before+int64(len(list)))
		}
	}

	replica.Pause()
	other := s.queue(s.open()) // on connections that have written nothing: what it is told is about what others wrote
	dup := func(q *xstreamq.Queue[order]) func(context.Context, int) ([]xstreamq.Published, error) {
		return func(ctx context.Context, n int) ([]xstreamq.Published, error) {
			p, err := q.Publish(ctx, order{n}, wait, xstreamq.DedupeID("new"))
			return []xstreamq.Published{p}, err
		}
	}
	notReplicated(t, "deduplicated", dup(q))
	notReplicated(t, "its duplicate", dup(other))
	allNotReplicated(t, "replica frozen", ways(q, wait))
	for name, publish := range ways(q) {
		if _, err := publish(t.Context(), 2); err != nil {
			t.Errorf("%s without waiting: %v", name, err)
		}
	}
	replica.Resume()
	list, err := dup(other)(t.Context(), 3)
	if err != nil || !list[0].Duplicate {
		t.Errorf("%+v, %v", list, err)
	}

	replica.Kill()
	allNotReplicated(t, "replica gone", ways(q, wait))
}

func allNotReplicated(t *testing.T, what string, ways map[string]func(context.Context, int) ([]xstreamq.Published, error)) {
	t.Helper()
	var all sync.WaitGroup
	for name, publish := range ways {
		all.Go(func() { notReplicated(t, name+", "+what, publish) })
	}
	all.Wait()
}

func notReplicated(t *testing.T, name string, publish func(context.Context, int) ([]xstreamq.Published, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	began := time.Now()
	list, err := publish(ctx, 2)
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("%s took %v", name, took)
	}
	if !errors.Is(err, xstreamq.ErrNotReplicated) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, xstreamq.ErrUncertain) {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, p := range list {
		if want := fmt.Sprintf("0 of 1 replicas confirmed message %s,", p.ID); !strings.Contains(err.Error(), want) || p.ID == "" {
			t.Errorf("%s: %+v, %v", name, p, err)
			break
		}
	}
}

// Of a batch whose messages want differently many, each has its own answer; those that want more hold nobody up.
func TestWaitReplicasOfDifferentNumber(t *testing.T) {
	t.Parallel()
	s, _ := mirrored(t)
	q := s.queue(s.open())
	var one sync.WaitGroup
	for i := range 5 {
		one.Go(func() {
			began := time.Now()
			if _, err := q.Publish(t.Context(), order{i}, xstreamq.WaitReplicas(1)); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	b := q.NewBatch()
	b.Add(order{1}, xstreamq.WaitReplicas(2))
	b.Add(order{2}, xstreamq.WaitReplicas(1))
	b.Add(order{3})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	list, err := b.Publish(ctx)
	var failed xstreamq.BatchErrors
	if !errors.As(err, &failed) || len(failed) != 1 || !errors.Is(failed[0], xstreamq.ErrNotReplicated) || !strings.Contains(err.Error(), "1 of 2") {
		t.Errorf("%v", err)
	}
	for _, p := range list {
		if p.ID == "" {
			t.Errorf("%+v", list)
		}
	}
	one.Wait()
}

// The replicas that are waited for are those of the stream's own node, wherever that is.
func TestWaitReplicasOfDeployments(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, d *redistest.Deployment) *xstreamq.Queue[order] {
		t.Helper()
		c, err := xstreamq.Open(d.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return xstreamq.NewQueue[order](c, "orders")
	}
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		d := redistest.Sentinel(t)
		for name, publish := range ways(open(t, d), xstreamq.WaitReplicas(1)) {
			if _, err := publish(t.Context(), 1); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		d := redistest.Cluster(t)
		q := open(t, d)
		allNotReplicated(t, "no replica", ways(q, xstreamq.WaitReplicas(1)))
		ctx := t.Context()
		cluster := d.Client(t).(*redis.ClusterClient)
		node, err := cluster.MasterForKey(ctx, "{orders}")
		if err != nil {
			t.Fatal(err)
		}
		id, err := node.Do(ctx, "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		replica := redistest.Start(t, "--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0")
		own := replica.Client(t)
		host, port, _ := strings.Cut(node.Options().Addr, ":")
		if err := own.ClusterMeet(ctx, host, port).Err(); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, patience, func() bool { return own.ClusterReplicate(ctx, id).Err() == nil }, "it replicates")
		redistest.Eventually(t, patience, func() bool {
			_, err := q.Publish(ctx, order{1}, xstreamq.WaitReplicas(1))
			return err == nil
		}, "the replica has confirmed")
		for name, publish := range ways(q, xstreamq.WaitReplicas(1)) {
			if _, err := publish(ctx, 1); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
