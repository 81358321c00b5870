package scale_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/xstreamq/xstreamq/loadtest/internal/scale"
	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

// The test binary is also the operator who is killed.
func TestMain(m *testing.M) {
	if spec := os.Getenv(scale.ChildEnv); spec != "" {
		if err := scale.Child(spec, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A hundredth of the full size: every operation finds what it should, in a bounded number of commands, and a redrive that is
// killed midway loses and doubles none.
func TestSmall(t *testing.T) {
	t.Parallel()
	srv, err := server.Start(t.TempDir(), "--appendonly", "no")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := srv.Kill(); err != nil {
			t.Error(err)
		}
	}()
	w, err := scale.Fill(t.Context(), srv.Addr(), scale.Full.Part(100))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.WithCLI(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	rows, err := w.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Commands == 0 || r.Commands > 2500 || r.Time <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(rows) < 35 {
		t.Errorf("%d operations", len(rows))
	}
	d, err := w.Redrive(t.Context(), srv.Addr(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if d.Wrong || d.Lost != 0 || d.Doubled != 0 || d.Left == 0 {
		t.Errorf("%+v", d)
	}
}
