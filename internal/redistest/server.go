//go:build unix

package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// ServerEnv names the environment variable that holds the command to start a
// server with, instead of redis-server on PATH.
const ServerEnv = "XSTREAMQ_REDIS_SERVER"

// startTimeout bounds one start: a loaded two-core machine needs well under a
// second, a server that reads a large append-only file a few.
const startTimeout = 20 * time.Second

var errExited = errors.New("the server ended")

// Server is one redis-server process. Its methods are safe for concurrent use.
type Server struct {
	command []string // of the server, without the arguments of this package
	base    []string // what keeps it apart from others and without a trace
	extra   []string
	dir     string
	port    int
	shared  bool

	mu  sync.Mutex
	run *process // nil while no process runs
}

// process is one life of a server's process.
type process struct {
	cmd  *exec.Cmd
	out  *output
	done chan struct{} // closed when it has ended and was reaped
}

// Start runs a server for this test alone and ends it with the test. The extra
// arguments are the server's own ("--appendonly", "yes") and come last, so they
// win over the defaults. It fails the test when no server can be started.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := start(args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.remove)
	return s
}

func start(extra []string) (*Server, error) {
	s, err := unstarted(extra)
	if err != nil {
		return nil, err
	}
	s.base = []string{"--save", "", "--appendonly", "no"}
	return s, s.launchSomewhere()
}

// unstarted is a server with a directory and no process.
func unstarted(extra []string) (*Server, error) {
	command, err := serverCommand(os.Getenv(ServerEnv))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "xstreamq-redis-")
	if err != nil {
		return nil, fmt.Errorf("redistest: directory for the server: %w", err)
	}
	return &Server{command: command, extra: extra, dir: dir}, nil
}

// launchSomewhere finds a port. It removes a server that does not start.
func (s *Server) launchSomewhere() (err error) {
	// The port is free when it is chosen and may be taken when the server binds it.
	for range 5 {
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.launch(); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	if err != nil {
		s.remove()
	}
	return err
}

// serverCommand splits the value of ServerEnv, or finds redis-server.
func serverCommand(env string) ([]string, error) {
	command := strings.Fields(env)
	if len(command) == 0 {
		command = []string{"redis-server"}
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, fmt.Errorf("redistest: no redis-server to test on: %w; install it "+
			"(Debian and Ubuntu: scripts/apt.sh redis-server, macOS: brew install redis) "+
			"or set %s to a command that starts one", err, ServerEnv)
	}
	command[0] = path
	return command, nil
}

// freePort picks below the ports that systems give to outgoing connections (32768
// and up): while a server is down, a client's own end could take its port, even by
// connecting to itself. A port 10,000 higher, a cluster's bus, is below them too.
func freePort() (int, error) {
	const low, high = 10000, 22000
	var err error
	for range 100 {
		port := low + rand.IntN(high-low)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			if err = l.Close(); err == nil {
				return port, nil
			}
		}
	}
	return 0, fmt.Errorf("redistest: no free port on 127.0.0.1 in 100 tries from %d to %d: %w", low, high, err)
}

// launch starts the process and returns when it accepts connections.
func (s *Server) launch() error {
	flush, err := flushInterval()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	args := slices.Concat(s.command[1:], s.base, []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir}, s.extra)
	p := &process{out: newOutput(), done: make(chan struct{})}
	p.cmd = exec.Command(s.command[0], args...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.WaitDelay = time.Second // a forked saver may hold the pipe after the server is gone
	if err := startCommand(p.cmd); err != nil {
		return fmt.Errorf("redistest: start %s: %w", s.command[0], err)
	}
	go func() {
		_ = p.cmd.Wait() // ended by a signal of ours, or its output says why
		close(p.done)
	}()
	limit := time.NewTimer(startTimeout)
	defer limit.Stop()
	select {
	case <-p.out.ready:
		s.run = p
		if flush > 0 {
			go flushScripts(s.Addr(), flush, p.done)
		}
		return nil
	case <-p.done:
		err = errExited
	case <-limit.C:
		err = fmt.Errorf("not ready after %v", startTimeout)
		p.kill()
	}
	return fmt.Errorf("redistest: %s on port %d: %w; its output:\n%s", s.command[0], s.port, err, p.out)
}

// kill ends the process and what it forked, and waits until it is gone. A stopped
// process dies of it too.
func (p *process) kill() {
	select {
	case <-p.done: // reaped: its number may be another's by now
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}

// remove ends the server and its directory.
func (s *Server) remove() {
	s.end()
	_ = os.RemoveAll(s.dir) // a file that stays in the temporary directory fails no test
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		s.run.kill()
		s.run = nil
	}
}

// Addr is the server's address, host:port. It stays the same over Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is the server's address as a redis:// URL, database 0.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Options make a client of the server.
func (s *Server) Options() *redis.UniversalOptions {
	return &redis.UniversalOptions{Addrs: []string{s.Addr()}}
}

// Client is a new client of the server, closed when the test ends.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Errorf("redistest: close a client of %s: %v", s.Addr(), err)
		}
	})
	return c
}

// PID is the process id of the running server, 0 when none runs.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return 0
	}
	return s.run.cmd.Process.Pid
}
