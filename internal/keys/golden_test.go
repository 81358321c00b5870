package keys_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/keys"
)

var update = flag.Bool("update", false, "write the golden files anew")

// named is one key with what it is for.
type named struct{ kind, key string }

func streamKeys(s keys.Stream, dedupeID string) []named {
	return []named{
		{"main", s.Main},
		{"due", s.Due},
		{"parked", s.Parked},
		{"groups", s.Groups},
		{"meta", s.Meta},
		{"sent " + dedupeID, s.Sent(dedupeID)},
		{"probe", s.Probe()},
	}
}

func groupKeys(g keys.Group, id string) []named {
	return []named{
		{"retry", g.Retry},
		{"dlq", g.DLQ},
		{"due", g.Due},
		{"parked", g.Parked},
		{"paused", g.Paused},
		{"workers", g.Workers},
		{"meta", g.Meta},
		{"seen " + id, g.Seen(id)},
	}
}

func TestKeysGolden(t *testing.T) {
	t.Parallel()
	const file = "testdata/keys.golden"
	var b strings.Builder
	b.WriteString("# Every key: prefix, stream, group (- for the stream's own), kind, key; strings as in Go.\n")
	for _, n := range []struct{ prefix, stream, group string }{
		{"", "orders", "svc"},
		{"app:", "orders", "svc"},
		{"", "a.retry", "svc.dlq"},
		{"", "ünïcode/#%", "*[x"},
		{"", "a<b", `x&"y\`},
	} {
		s := keys.NewStream(n.prefix, n.stream)
		fmt.Fprintf(&b, "\n%q - - registry %q members %s %s\n", n.prefix, s.Registry(), s.Member(""), s.Member(n.group))
		for _, k := range streamKeys(s, "o-1") {
			fmt.Fprintf(&b, "%q %q - %s %q\n", n.prefix, n.stream, k.kind, k.key)
		}
		for _, k := range groupKeys(s.Group(n.group), "1754000000000-0") {
			fmt.Fprintf(&b, "%q %q %q %s %q\n", n.prefix, n.stream, n.group, k.kind, k.key)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the keys are a public contract; they differ from %s:\n%s", file, b.String())
	}
}
