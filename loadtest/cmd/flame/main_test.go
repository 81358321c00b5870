package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

func TestStacksAddUp(t *testing.T) {
	t.Parallel()
	loc := func(names ...string) *profile.Location {
		l := &profile.Location{}
		for _, n := range names {
			l.Line = append(l.Line, profile.Line{Function: &profile.Function{Name: n}})
		}
		return l
	}
	a, b, c := loc("x/pkg.a"), loc("inlined.into", "pkg.b"), loc("pkg.c<T>")
	root := stacks(&profile.Profile{Sample: []*profile.Sample{
		{Location: []*profile.Location{b, a}, Value: []int64{1, 30}},
		{Location: []*profile.Location{c, a}, Value: []int64{1, 70}},
	}})
	first := root.calls["pkg.a"]
	if root.value != 100 || first.value != 100 || first.calls["pkg.b"].calls["inlined.into"].value != 30 || first.calls["pkg.c<T>"].value != 70 {
		t.Errorf("wrong tree: %+v", first)
	}
	svg := draw("a & b", root)
	if !strings.Contains(svg, "pkg.c&lt;T&gt;: 70.0 %") || !strings.Contains(svg, "a &amp; b") {
		t.Errorf("wrong picture:\n%s", svg)
	}
}

func TestRealProfile(t *testing.T) { //nolint:paralleltest // one CPU profile at a time
	name := filepath.Join(t.TempDir(), "cpu")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		t.Fatal(err)
	}
	for at := time.Now(); time.Since(at) < 300*time.Millisecond; { // a busy one
	}
	pprof.StopCPUProfile()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{"title", name}, &out); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("no XML: %v", err)
		}
	}
	if !strings.Contains(out.String(), "TestRealProfile") {
		t.Error("the busy function is not drawn")
	}
}
