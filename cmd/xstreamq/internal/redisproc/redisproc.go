// Package redisproc runs a private redis-server for one test or one check.
package redisproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is one running redis-server on 127.0.0.1.
type Server struct {
	Addr string // host:port
	Port int
	cmd  *exec.Cmd
	done chan struct{}
	dir  string
}

// Start runs redis-server on a free port with the given extra arguments and returns once it answers. It keeps nothing
// on disk but a temporary directory, which Stop removes.
func Start(args ...string) (*Server, error) {
	var err error
	for range 5 { // between finding a free port and taking it somebody else may
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		l.Close()
		var s *Server
		if s, err = StartAt(l.Addr().(*net.TCPAddr).Port, args...); err == nil {
			return s, nil
		}
		if errors.Is(err, exec.ErrNotFound) {
			break
		}
	}
	return nil, err
}

// StartAt is Start on a port that is known to be free: that of a server which was stopped.
func StartAt(port int, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "redisproc")
	if err != nil {
		return nil, err
	}
	var log bytes.Buffer
	cmd := exec.Command("redis-server", append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir,
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("starting redis-server: %w", err)
	}
	s := &Server{Addr: "127.0.0.1:" + strconv.Itoa(port), Port: port, cmd: cmd, done: make(chan struct{}), dir: dir}
	go func() {
		_ = cmd.Wait() // how it ended shows in its log
		close(s.done)
	}()
	if err := s.ready(); err != nil {
		s.Stop()
		return nil, fmt.Errorf("redis-server: %w\n%s", err, log.Bytes())
	}
	return s, nil
}

// ready waits until the server answers; NOAUTH is an answer.
func (s *Server) ready() error {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer func() { _ = c.Close() }() // only asked
	deadline := time.After(10 * time.Second)
	for {
		err := c.Ping(context.Background()).Err()
		if err == nil || redis.HasErrorPrefix(err, "NOAUTH") {
			return nil
		}
		select {
		case <-s.done:
			return errors.New("ended at once")
		case <-deadline:
			return fmt.Errorf("does not answer: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// URL is what clients connect to.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Signal sends sig to the server.
func (s *Server) Signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }

// Stop ends the server and removes its directory. Idempotent.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // it keeps nothing that a kinder end would save
	<-s.done
	os.RemoveAll(s.dir)
}
