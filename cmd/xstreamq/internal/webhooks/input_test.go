package webhooks

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
)

// TestSameBodies makes sure that the comparison can fail.
func TestSameBodies(t *testing.T) {
	t.Parallel()
	a, b := sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))
	for _, c := range []struct {
		got, want map[sum]int
		same      bool
	}{
		{map[sum]int{a: 1, b: 2}, map[sum]int{a: 1, b: 2}, true},
		{map[sum]int{a: 1}, map[sum]int{a: 2}, false},
		{map[sum]int{a: 2}, map[sum]int{a: 1}, false},
		{map[sum]int{a: 1}, map[sum]int{b: 1}, false},
		{map[sum]int{}, map[sum]int{a: 1}, false},
	} {
		if err := sameBodies("x", c.got, c.want); (err == nil) != c.same {
			t.Errorf("%v and %v: %v", c.got, c.want, err)
		}
	}
}

func TestReadSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runs, second string
		good         bool
	}{
		"two attempts":         {"1-0 1\n1-0 2\n", "body", true},
		"an attempt ran twice": {"1-0 1\n1-0 2\n1-0 2\n", "body", false},
		"the body changed":     {"1-0 1\n1-0 2\n", "bodY", false},
		"a body was not saved": {"1-0 1\n1-0 3\n", "body", false},
		"what is no attempt":   {"1-0 x\n", "body", false},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"runs": c.runs, "1-0.1": "body", "1-0.2": c.second} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := readSeen(dir)
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
		if c.good && (s.runs["1-0"] != 2 || s.first[sha256.Sum256([]byte("body"))] != 1) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
