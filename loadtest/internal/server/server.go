// Package server runs the redis-server under test: on a port of its own on the loopback address, in a directory of its own.
package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/proc"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// Env names the variable that holds the command to start a server with, instead of redis-server.
const Env = "XSTREAMQ_REDIS_SERVER"

// Server is one server, which may be killed and started again on its port and its data.
type Server struct {
	Port int
	dir  string
	args []string

	mu    sync.Mutex
	p     *proc.Process
	sizes []fileSize // of the append-only file, while it is watched
	watch chan struct{}
}

// Start runs a server with these arguments behind those that bind it here. dir must exist.
func Start(dir string, args ...string) (*Server, error) {
	s := &Server{dir: dir, args: args}
	var err error
	for range 5 { // the port may be taken between the look and the start
		if s.Port, err = FreePort(); err != nil {
			return nil, err
		}
		if err = s.Launch(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// FreePort is below the ports that systems give to outgoing connections: while a server is down nobody takes its place.
func FreePort() (int, error) {
	const low, high = 10000, 22000 // a cluster's bus is 10,000 higher
	for range 100 {
		port := low + rand.IntN(high-low)
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			if err = l.Close(); err == nil {
				return port, nil
			}
		}
	}
	return 0, fmt.Errorf("server: no free port on 127.0.0.1 in 100 tries from %d to %d", low, high)
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Command is what starts a server, without arguments of ours.
func Command() []string {
	if command := strings.Fields(os.Getenv(Env)); len(command) > 0 {
		return command
	}
	return []string{"redis-server"}
}

// launchTime bounds a start: a busy machine takes its time over half an hour's append-only file.
const launchTime = 3 * time.Minute

// Launch starts the process, with these arguments behind its own, and returns when it has read its data and answers.
func (s *Server) Launch(more ...string) error {
	command := Command()
	log, err := os.OpenFile(filepath.Join(s.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has its own by then
	args := []string{"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", ""}
	cmd := exec.Command(command[0], slices.Concat(command[1:], args, s.args, more)...)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := proc.Start(cmd)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	for deadline := time.Now().Add(launchTime); ; {
		if v, err := resp.Once(s.Addr(), time.Second, "PING"); err == nil && v == "PONG" {
			break
		}
		select {
		case <-p.Done():
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("server: ended at its start; the end of its log:\n%s", tail(string(text), 600))
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			_ = p.Kill() // it is the one above; nothing else to tell
			return fmt.Errorf("server: %s does not answer", s.Addr())
		}
	}
	s.mu.Lock()
	s.p = p
	s.mu.Unlock()
	return nil
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func (s *Server) process() *proc.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

// Kill ends it without warning.
func (s *Server) Kill() error { return s.process().Kill() }

// Freeze stops the process; Thaw lets it go on.
func (s *Server) Freeze() error { return s.process().Signal(syscall.SIGSTOP) }

// Thaw is the end of a Freeze.
func (s *Server) Thaw() error { return s.process().Signal(syscall.SIGCONT) }

// Do runs one command on a connection of its own.
func (s *Server) Do(args ...string) (any, error) { return resp.Once(s.Addr(), 5*time.Second, args...) }
