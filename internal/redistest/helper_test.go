package redistest_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// childEnv makes the test binary a test binary of another kind: one that a test
// here starts, watches and kills.
const childEnv = "XSTREAMQ_REDISTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "no-main" {
		m.Run()
		return
	}
	redistest.Main(m)
}

// child is the command that runs one test of this binary in a process of its own.
func child(t *testing.T, kind, test string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(append(os.Environ(), childEnv+"="+kind), env...)
	return cmd
}

// recorder is a testing.TB whose failure is looked at.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}
func (r *recorder) Fatal(args ...any) {
	r.failure = fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// failureOf is the message f fails its test with, "" when it does not fail.
func failureOf(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.failure
}

func wantText(t *testing.T, what, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s lacks %q:\n%s", what, w, got)
		}
	}
}
