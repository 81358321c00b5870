package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

// site is where a trial runs: a server, or several that stand in for each other.
type site struct {
	url   string // for workers
	nodes []*server.Server
	// find says which node takes the stream's writes now.
	find func() (*server.Server, error)
	// again are a node's arguments when it starts after another took its place.
	again func(master *server.Server) []string
	close []func()
}

func (s *site) end() {
	for _, f := range s.close {
		f()
	}
	for _, n := range s.nodes {
		n.Unwatch()
		_ = n.Kill() // whatever is left of it
	}
}

// addr is the master's.
func (s *site) addr() (string, error) {
	m, err := s.find()
	if err != nil {
		return "", err
	}
	return m.Addr(), nil
}

// node starts one more server.
func (s *site) node(dir string, args ...string) (*server.Server, error) {
	dir = filepath.Join(dir, "server-"+strconv.Itoa(len(s.nodes)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	n, err := server.Start(dir, append([]string{"--lua-time-limit", "100"}, args...)...)
	if err == nil {
		s.nodes = append(s.nodes, n)
	}
	return n, err
}

// single is one server.
func single(dir, fsync string) (*site, error) {
	s := &site{}
	args := []string{"--appendonly", "no"}
	if fsync != "" {
		args = []string{"--appendonly", "yes", "--appendfsync", fsync}
	}
	if fsync == "everysec" { // the end of one file is cut off
		args = append(args, "--auto-aof-rewrite-percentage", "0")
	}
	n, err := s.node(dir, args...)
	if err != nil {
		return nil, err
	}
	if fsync == "everysec" {
		n.WatchFiles()
	}
	s.url = "redis://" + n.Addr()
	s.find = func() (*server.Server, error) { return n, nil }
	return s, nil
}

// failover kills the master, waits until another node has its place, and starts the dead one again as its replica. It
// returns when the new one took over.
func (s *site) failover() (over time.Time, err error) {
	old, err := s.find()
	if err != nil {
		return over, err
	}
	if err := old.Kill(); err != nil {
		return over, err
	}
	var master *server.Server
	if err := until(30*time.Second, "another master", func() bool {
		master, err = s.find()
		return err == nil && master != old
	}); err != nil {
		return over, err
	}
	over = time.Now()
	if err := old.Launch(s.again(master)...); err != nil {
		return over, err
	}
	return over, until(30*time.Second, "a replica of the new master", func() bool {
		now, err := s.find() // on a busy machine the sentinels may have chosen once more
		return err == nil && followed(now)
	})
}

// followed waits until a replica has all of the master's data.
func (s *site) followed(master *server.Server) error {
	return until(30*time.Second, "a replica of "+master.Addr(), func() bool { return followed(master) })
}

func followed(master *server.Server) bool {
	v, err := master.Do("WAIT", "1", "100")
	return err == nil && v != int64(0)
}

// isMaster asks a node itself.
func isMaster(n *server.Server) bool {
	v, err := n.Do("ROLE")
	list, _ := v.([]any)
	return err == nil && len(list) > 0 && list[0] == "master"
}

func until(limit time.Duration, what string, f func() bool) error {
	for end := time.Now().Add(limit); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("chaos: not within %v: %s", limit, what)
		}
	}
	return nil
}
