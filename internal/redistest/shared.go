//go:build unix

package redistest

import (
	"sync"
	"sync/atomic"
	"testing"
)

var (
	underMain atomic.Bool
	shared    struct {
		sync.Mutex
		server *Server
		err    error
	}
)

// Main runs the tests of a package and ends the shared server after them. TestMain
// calls it and returns; the testing package then exits with the tests' result.
func Main(m *testing.M) {
	underMain.Store(true)
	m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.remove()
	}
}

// Shared is the server that all tests of this binary use, started by the first
// call. It fails the test when no server can be started, or when TestMain does not
// call Main, which ends it. Tests keep apart by Prefix; none may flush, configure
// or stop it.
func Shared(t testing.TB) *Server {
	t.Helper()
	if !underMain.Load() {
		t.Fatal("redistest: Shared needs func TestMain(m *testing.M) { redistest.Main(m) } in this package, to end the server")
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		if shared.server, shared.err = start(nil); shared.err == nil {
			shared.server.shared = true
		}
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}
