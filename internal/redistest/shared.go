//go:build unix

package redistest

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// TopologyEnv names the environment variable that says what Deployed is: standalone, which is what it is without, cluster
// or sentinel.
const TopologyEnv = "XSTREAMQ_TOPOLOGY"

var (
	underMain atomic.Bool
	single    common[*Server]
	deployed  common[*Deployment]
)

// common is what all tests of a binary use, made by the first that asks.
type common[T interface {
	comparable
	remove()
}] struct {
	mu  sync.Mutex
	it  T
	err error
}

func (c *common[T]) get(t testing.TB, begin func() (T, error)) T {
	t.Helper()
	if !underMain.Load() {
		t.Fatal("redistest: a shared server needs func TestMain(m *testing.M) { redistest.Main(m) } in this package, to end it")
	}
	var none T
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.it == none && c.err == nil {
		c.it, c.err = begin()
	}
	if c.err != nil {
		t.Fatal(c.err)
	}
	return c.it
}

func (c *common[T]) end() {
	var none T
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.it != none {
		c.it.remove()
	}
}

// Main runs the tests of a package and ends the shared servers after them. TestMain
// calls it and returns; the testing package then exits with the tests' result.
func Main(m *testing.M) {
	underMain.Store(true)
	m.Run()
	deployed.end()
	single.end()
}

// Shared is the one server that all tests of this binary use, started by the first
// call. It fails the test when no server can be started, or when TestMain does not
// call Main, which ends it. Tests keep apart by Prefix; none may flush, configure
// or stop it.
func Shared(t testing.TB) *Server {
	t.Helper()
	return single.get(t, func() (*Server, error) {
		s, err := start(nil)
		if err == nil {
			s.shared = true
		}
		return s, err
	})
}

// Deployed is the Redis that all tests of this binary use which ask nothing of one server's process: Shared, a cluster or
// servers behind a Sentinel, as TopologyEnv says. What holds for Shared holds for it.
func Deployed(t testing.TB) *Deployment {
	t.Helper()
	return deployed.get(t, func() (d *Deployment, err error) {
		switch topology := os.Getenv(TopologyEnv); topology {
		case "", "standalone":
			s := Shared(t)
			return &Deployment{url: s.URL(), options: *s.Options()}, nil
		case "cluster":
			d, err = newCluster(nil)
		case "sentinel":
			d, err = newSentinel(nil)
		default:
			err = fmt.Errorf("redistest: %s=%q is none of standalone, cluster and sentinel", TopologyEnv, topology)
		}
		if err != nil {
			return nil, err
		}
		for _, s := range d.Servers {
			s.shared = true
		}
		return d, nil
	})
}
