package redistest_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Not a test by itself: TestTopology runs it in a child.
func TestChildSaysItsTopology(t *testing.T) {
	t.Parallel()
	c := redistest.Deployed(t).Client(t)
	if err := c.Set(t.Context(), redistest.Prefix(t), "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Printf("on %T at %s\n", c, redistest.Deployed(t).URL()); err != nil {
		t.Fatal(err)
	}
}

// Deployed is what the environment says, and nothing where it says what there is not.
func TestTopology(t *testing.T) {
	t.Parallel()
	for topology, want := range map[string]string{
		"": "on *redis.Client at redis://", "standalone": "on *redis.Client at redis://",
		"cluster": "on *redis.ClusterClient at redis+cluster://", "sentinel": "on *redis.Client at redis+sentinel://",
	} {
		out, err := child(t, "topology", "TestChildSaysItsTopology", redistest.TopologyEnv+"="+topology).CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v", topology, err)
		}
		wantText(t, "what "+topology+" says", string(out), want)
	}
	out, err := child(t, "topology", "TestChildSaysItsTopology", redistest.TopologyEnv+"=ring").CombinedOutput()
	if err == nil {
		t.Error("a topology that there is not is tested on")
	}
	wantText(t, "the refusal", string(out), "--- FAIL: TestChildSaysItsTopology", "ring", "standalone, cluster and sentinel")
}

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
