package mutant

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xstreamq/xstreamq/loadtest/internal/chaos"
)

// Each mutant changes the sources as they are now, and its trial exists.
func TestMutants(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range All() {
		if names[m.Name] {
			t.Errorf("two are named %s", m.Name)
		}
		names[m.Name] = true
		text, err := os.ReadFile(filepath.Join("../../..", m.File))
		if err != nil {
			t.Fatal(err)
		}
		changed, err := m.Apply(string(text))
		if err != nil {
			t.Error(err)
		}
		if changed == string(text) {
			t.Errorf("%s changes nothing", m.Name)
		}
		if _, err := m.Apply(changed + m.Old + m.Old); err == nil {
			t.Errorf("%s applies where its text stands twice", m.Name)
		}
		p, err := chaos.Find(m.Profile)
		if err != nil {
			t.Fatal(err)
		}
		p.For = m.For
		if len(p.Schedule(1)) == 0 {
			t.Errorf("%s: no fault of %s falls into %v", m.Name, m.Profile, m.For)
		}
	}
}
