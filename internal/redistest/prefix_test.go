package redistest_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestPrefix(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range []string{"plain", "plain {x} y", "tab\tand\x00", "Grüße", strings.Repeat("long", 100), "n=1,-2#3"} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				p := redistest.Prefix(t)
				if seen[p] {
					t.Errorf("%q comes twice", p)
				}
				seen[p] = true
				if len(p) > 200 || !strings.HasPrefix(p, "TestPrefix/") {
					t.Errorf("%q: %d bytes, want at most 200, beginning with the test's name", p, len(p))
				}
				if i := strings.IndexFunc(p, func(r rune) bool {
					return r > unicode.MaxASCII || strings.ContainsRune("{}", r) || unicode.IsSpace(r) || unicode.IsControl(r)
				}); i >= 0 {
					t.Errorf("%q: no prefix may hold %q", p, p[i:i+1])
				}
			}
		})
	}
}

func TestEventually(t *testing.T) {
	t.Parallel()
	calls := 0
	redistest.Eventually(t, 10*time.Second, func() bool { calls++; return calls == 3 }, "the third call")
	if calls != 3 {
		t.Errorf("asked %d times, want 3", calls)
	}
	got := failureOf(t, func(tb testing.TB) {
		redistest.Eventually(tb, 10*time.Millisecond, func() bool { return false }, "pigs fly")
	})
	wantText(t, "the failure", got, "10ms", "pigs fly")
}
