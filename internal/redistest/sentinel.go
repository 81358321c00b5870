//go:build unix

package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const masterName = "tests"

// Sentinel runs a master, its replica and one Sentinel that tells clients where the master is, for this test alone. The
// arguments are those of both servers. It fails over only when it is told to: a loaded machine must not change masters.
func Sentinel(t testing.TB, args ...string) *Deployment {
	t.Helper()
	return own(t, func() (*Deployment, error) { return newSentinel(args) })
}

func newSentinel(args []string) (d *Deployment, err error) {
	d = &Deployment{}
	defer func() {
		if err != nil {
			d.remove()
		}
	}()
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	master, err := start(args)
	if err != nil {
		return d, err
	}
	d.Servers = []*Server{master}
	replica, err := start(append([]string{"--replicaof", "127.0.0.1 " + strconv.Itoa(master.port)}, args...))
	if err != nil {
		return d, err
	}
	d.Servers = append(d.Servers, replica)
	if err := replica.asked(func(c *redis.Client) error {
		return until(startTimeout, "a replica that follows", func(ctx context.Context) error {
			text, err := c.Info(ctx, "replication").Result()
			if err == nil && !strings.Contains(text, "master_link_status:up") {
				err = fmt.Errorf("%w: %q", errNotYet, text)
			}
			return err
		})
	}); err != nil {
		return d, err
	}
	if d.watcher, err = watch(master); err != nil {
		return d, err
	}
	d.url = "redis+sentinel://" + d.watcher.Addr() + "?master_name=" + masterName
	d.options = redis.UniversalOptions{Addrs: []string{d.watcher.Addr()}, MasterName: masterName}
	return d, nil
}

// watch starts a Sentinel and returns when it knows the replica too. Its file, which it writes to, lies in its directory.
func watch(master *Server) (*Server, error) {
	s, err := unstarted(nil)
	if err != nil {
		return nil, err
	}
	s.base = []string{filepath.Join(s.dir, "sentinel.conf"), "--sentinel"}
	config := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 1\nsentinel down-after-milliseconds %[1]s 600000\n", masterName, master.port)
	if err := os.WriteFile(s.base[0], []byte(config), 0o600); err != nil {
		s.remove()
		return nil, fmt.Errorf("redistest: the Sentinel's file: %w", err)
	}
	if err := s.launchSomewhere(); err != nil {
		return nil, err
	}
	client := redis.NewSentinelClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	defer func() { _ = client.Close() }() // its answer is had
	if err := until(startTimeout, "a Sentinel that knows the replica", func(ctx context.Context) error {
		list, err := client.Replicas(ctx, masterName).Result()
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("%w: %d replicas", errNotYet, len(list))
		}
		return err
	}); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}
