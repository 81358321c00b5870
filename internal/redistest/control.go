//go:build unix

package redistest

import (
	"fmt"
	"syscall"
	"testing"
)

// Pause freezes the server (SIGSTOP): connections stay open and nothing answers.
// It panics on the shared server, as Resume, Kill and Restart do.
func (s *Server) Pause() {
	pid := s.signal("Pause", syscall.SIGSTOP)
	if err := awaitStopped(pid); err != nil {
		panic(err)
	}
}

// Resume lets a paused server go on (SIGCONT).
func (s *Server) Resume() { s.signal("Resume", syscall.SIGCONT) }

func (s *Server) signal(method string, sig syscall.Signal) int {
	s.mustOwn(method)
	pid := s.PID()
	if pid == 0 {
		panic(fmt.Sprintf("redistest: %s of %s, which does not run", method, s.Addr()))
	}
	if err := syscall.Kill(pid, sig); err != nil {
		panic(fmt.Sprintf("redistest: %s of %s, process %d: %v", method, s.Addr(), pid, err))
	}
	return pid
}

// Kill ends the server at once (SIGKILL), also a paused one, and returns when the
// process is gone. Its files stay for Restart.
func (s *Server) Kill() {
	s.mustOwn("Kill")
	s.end()
}

// Restart kills the server if it runs and starts it anew on the same port and
// directory: what it persisted is there again, by default nothing.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.mustOwn("Restart")
	s.end()
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) mustOwn(method string) {
	if s.shared {
		panic("redistest: " + method + " of the shared server, which other tests use: take one from Start")
	}
}
