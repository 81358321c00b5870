package speed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func samples() Samples {
	s := Samples{}
	for _, b := range bounds {
		for _, name := range []string{b.ours, b.theirs} {
			if name != "" && name != "allocs" && len(s[name]) == 0 {
				s[name] = []float64{1, 1, 1}
			}
		}
	}
	for _, name := range []string{"publish-64-allocs", "drain-allocs", "raw publish", "raw p50", "raw p99", "jetstream publish", "jetstream p50"} {
		s[name] = []float64{5, 5, 5}
	}
	return s
}

func TestTableJudgesByTheMedianOfRatios(t *testing.T) {
	t.Parallel()
	s := samples()
	s["publish-64"] = []float64{300, 10, 600} // one bad round does not decide
	s["redis-benchmark"] = []float64{100, 100, 200}
	s["drain"], s["raw drain"] = []float64{70, 70, 70}, []float64{100, 100, 100}
	s["latency-p99"] = []float64{9, 4, 9}
	rows := Table(s, false)
	if r := rows[0]; r.Value != 3 || !r.Pass || r.Ours != 300 || r.Theirs != 100 {
		t.Errorf("publish: %+v", r)
	}
	if r := rows[3]; r.Pass || r.Value != 0.7 {
		t.Errorf("drain: %+v", r)
	}
	if r := rows[8]; r.Pass || r.Value != 9 {
		t.Errorf("p99: %+v", r)
	}
	if r := rows[len(rows)-1]; !r.Pass || r.Value != 10 {
		t.Errorf("allocations: %+v", r)
	}
	md := Markdown(rows)
	if strings.Count(md, "\n") != len(rows)+2 || !strings.Contains(md, "| 0.7 × | **fail** |") {
		t.Errorf("table:\n%s", md)
	}
	for _, r := range Table(samples(), true) {
		if r.What == "Publish, 64 callers, confirmed" && r.Target != "≥ 1.2 ×" {
			t.Errorf("guard: %+v", r)
		}
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a\n" + begin("x") + "\nold\n" + end + "\nb\n")
	if err := Rewrite(page, "x", "new\n"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(page); string(got) != "a\n"+begin("x")+"\n\nnew\n\n"+end+"\nb\n" {
		t.Errorf("page: %q", got)
	}
	write("a\n" + begin("y") + "\n" + end + "\n")
	if Rewrite(page, "x", "new") == nil {
		t.Error("a page without marks was written")
	}
}
