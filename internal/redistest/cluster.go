//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const (
	masters  = 3
	allSlots = 16384
)

var errNotYet = errors.New("not yet")

// Cluster runs three masters that share the slots, without replicas, for this test alone. The arguments are every node's.
// It takes some three seconds: a node waits two before it lets its cluster be written to.
func Cluster(t testing.TB, args ...string) *Deployment {
	t.Helper()
	return own(t, func() (*Deployment, error) { return newCluster(args) })
}

func newCluster(args []string) (d *Deployment, err error) {
	d = &Deployment{}
	defer func() {
		if err != nil {
			d.remove()
		}
	}()
	var addrs []string
	for range masters {
		s, err := start(append([]string{"--cluster-enabled", "yes"}, args...))
		if err != nil {
			return d, err
		}
		d.Servers, addrs = append(d.Servers, s), append(addrs, s.Addr())
	}
	for i, s := range d.Servers {
		if err := s.asked(func(c *redis.Client) error {
			ctx := context.Background()
			if err := c.ClusterAddSlotsRange(ctx, i*allSlots/masters, (i+1)*allSlots/masters-1).Err(); err != nil {
				return err
			}
			return c.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(d.Servers[0].port)).Err()
		}); err != nil {
			return d, fmt.Errorf("redistest: make a cluster: %w", err)
		}
	}
	for _, s := range d.Servers {
		if err := s.asked(func(c *redis.Client) error {
			return until(startTimeout, "a cluster that node "+s.Addr()+" finds whole", func(ctx context.Context) error {
				text, err := c.ClusterInfo(ctx).Result()
				if err == nil && (!strings.Contains(text, "cluster_state:ok") || !strings.Contains(text, "cluster_known_nodes:"+strconv.Itoa(masters)+"\r")) {
					err = fmt.Errorf("%w: %q", errNotYet, text)
				}
				return err
			})
		}); err != nil {
			return d, err
		}
	}
	d.url = "redis+cluster://" + addrs[0] + "?addr=" + strings.Join(addrs[1:], "&addr=")
	d.options = redis.UniversalOptions{Addrs: addrs, IsClusterMode: true}
	return d, nil
}
