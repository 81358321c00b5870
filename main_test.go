package xstreamq_test

import (
	"flag"
	"os"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The test binary is also the worker program of the tests that kill, stop and terminate real processes.
func TestMain(m *testing.M) {
	if spec := os.Getenv(workerEnv); spec != "" {
		os.Exit(workerMain(spec))
	}
	// Most tests here wait for a server or a worker; two at once, as two processors have it by default, leave both idle.
	if err := flag.Set("test.parallel", "6"); err != nil { // what the command line says comes later, and wins
		panic(err)
	}
	redistest.Main(m)
}
