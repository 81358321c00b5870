package redistest_test

import (
	"bufio"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestSharedAnswers(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	if again := redistest.Shared(t); again != s {
		t.Errorf("a second call answers another server: %s, then %s", s.Addr(), again.Addr())
	}
	key := redistest.Prefix(t) + "k"
	if err := s.Client(t).Set(t.Context(), key, "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Client(t).Get(t.Context(), key).Result(); err != nil || got != "v" {
		t.Errorf("GET = %q, %v; want v", got, err)
	}
}

func TestSharedIsNotATestsToStop(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for name, f := range map[string]func(){
		"Pause": s.Pause, "Resume": s.Resume, "Kill": s.Kill, "Restart": func() { s.Restart(t) },
	} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.Contains(p, name) {
					t.Errorf("%s of the shared server: panic %q, want one that names it", name, p)
				}
			}()
			f()
		}()
	}
	if err := s.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Errorf("the shared server after the refused calls: %v", err)
	}
}

// Not a test by itself: TestEndsWithTheBinary runs it in a child, which prints the
// server's address and, when told to stay, waits to be killed.
func TestChildPrintsItsServer(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	if _, err := os.Stdout.WriteString("server at " + s.Addr() + "\n"); err != nil {
		t.Fatal(err)
	}
	if os.Getenv(childEnv) == "stay" {
		select {}
	}
}

func TestEndsWithTheBinary(t *testing.T) {
	t.Parallel()
	for kind, kill := range map[string]bool{"end": false, "stay": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			// A killed binary cannot remove the server's directory.
			cmd := child(t, kind, "TestChildPrintsItsServer", "TMPDIR="+t.TempDir())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			addr := ""
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if _, after, found := strings.Cut(lines.Text(), "server at "); found {
					addr = after
					if kill {
						if !listens(addr) {
							t.Errorf("the child's server at %s does not listen while the child runs", addr)
						}
						if err := cmd.Process.Kill(); err != nil {
							t.Error(err)
						}
					}
				}
			}
			if err := cmd.Wait(); (err != nil) != kill || addr == "" {
				t.Fatalf("child: %v, server %q", err, addr)
			}
			redistest.Eventually(t, 10*time.Second, func() bool { return !listens(addr) }, "the server ends with its test binary")
		})
	}
}

func listens(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

func TestSharedWithoutMainFails(t *testing.T) {
	t.Parallel()
	out, err := child(t, "no-main", "TestSharedAnswers").CombinedOutput()
	if err == nil {
		t.Error("a package without redistest.Main got a shared server")
	}
	wantText(t, "the failure", string(out), "--- FAIL: TestSharedAnswers", "redistest.Main(m)")
}

func TestMissingServerFails(t *testing.T) {
	t.Parallel()
	for _, test := range []string{"TestSharedAnswers", "TestStartIsPrivate"} {
		out, err := child(t, "missing", test, redistest.ServerEnv+"=/nowhere/redis-server --port 1").CombinedOutput()
		if err == nil {
			t.Errorf("%s passes without a server", test)
		}
		wantText(t, test+" without a server", string(out),
			"--- FAIL: "+test, "/nowhere/redis-server", "scripts/apt.sh redis-server", redistest.ServerEnv)
	}
}
