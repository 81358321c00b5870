package redistest_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	d := redistest.Cluster(t)
	c := d.Client(t)
	for i := range 50 {
		if err := c.Set(t.Context(), strconv.Itoa(i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range d.Servers {
		if n := s.Client(t).DBSize(t.Context()).Val(); n == 0 || n == 50 {
			t.Errorf("node %s has %d of 50 keys", s.Addr(), n)
		}
	}
	parsed, err := redis.ParseClusterURL("redis" + d.URL()[len("redis+cluster"):])
	if err != nil || len(parsed.Addrs) != 3 {
		t.Errorf("%s: %v, %v", d.URL(), parsed, err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	d := redistest.Sentinel(t)
	c := d.Client(t)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for i, s := range d.Servers {
		redistest.Eventually(t, 10*time.Second, func() bool { return s.Client(t).Get(t.Context(), "k").Val() == "v" }, "server "+strconv.Itoa(i)+" has the key")
	}
	if err := d.Servers[1].Client(t).Set(t.Context(), "k", "w", 0).Err(); err == nil {
		t.Error("the replica takes writes")
	}
	parsed, err := redis.ParseFailoverURL("redis" + d.URL()[len("redis+sentinel"):])
	if err != nil || parsed.MasterName == "" {
		t.Errorf("%s: %v, %v", d.URL(), parsed, err)
	}
}
