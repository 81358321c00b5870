package keys_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/keys"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, want string }{
		{"orders", ""},
		{"a:b.c*d[e/f%2Fg#h", ""},
		{"ünïcode", ""},
		{"\ufffd", ""}, // valid UTF-8, though decoders answer it for what is not
		{strings.Repeat("x", 200), ""},
		{strings.Repeat("ü", 100), ""},
		{"", "is empty; 1 to 200 bytes are needed"},
		{strings.Repeat("x", 201), "has 201 bytes; at most 200 are allowed"},
		{strings.Repeat("ü", 101), "has 202 bytes; at most 200 are allowed"},
		{"a\xff", "is not valid UTF-8"},
		{"\xed\xa0\x80", "is not valid UTF-8"}, // half a surrogate pair
		{"{", `contains '{'`},
		{"a}", `contains '}'`},
		{"a b", `contains ' '`},
		{"a\u00a0", `contains '\u00a0'`},
		{"a\u2028", `contains '\u2028'`},
		{"a\u3000", `contains '\u3000'`},
		{"a\n", `contains '\n'`},
		{"a\x00", `contains '\x00'`},
		{"a\x7f", `contains '\x7f'`},
		{"a\u0085", `contains '\u0085'`},
	} {
		text := fmt.Sprint(keys.CheckName(c.name))
		if c.want == "" && text != "<nil>" || !strings.Contains(text, c.want) {
			t.Errorf("CheckName(%q) = %s; want %q", c.name, text, c.want)
		}
		if text = fmt.Sprint(keys.CheckPrefix(c.name)); c.name != "" && (c.want == "" && text != "<nil>" || !strings.Contains(text, c.want)) {
			t.Errorf("CheckPrefix(%q) = %s; want %q", c.name, text, c.want)
		}
	}
	if err := keys.CheckPrefix(""); err != nil {
		t.Errorf("CheckPrefix of none: %v", err)
	}
}

func TestCheckDedupeID(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"":                          false,
		"o-1":                       true,
		"\x00\xff{ }\n":             true,
		strings.Repeat("\xff", 200): true,
		strings.Repeat("x", 201):    false,
	} {
		if err := keys.CheckDedupeID(id); (err == nil) != ok {
			t.Errorf("CheckDedupeID(%q) = %v; want ok = %v", id, err, ok)
		}
	}
}

// allowed is the rule in another form: all white space is a separator (Z) or a control character (Cc).
var allowed = regexp.MustCompile(`^[^{}\p{Cc}\p{Z}]{1,200}$`)

// FuzzCheckName takes two names each of a stream and a group: where all are accepted, every key stands for one thing.
func FuzzCheckName(f *testing.F) {
	f.Add("orders", "svc", "orders", "svc.retry", "o-1")
	f.Fuzz(func(t *testing.T, stream, group, stream2, group2, id string) {
		all := []string{stream, group, stream2, group2}
		for _, n := range all {
			want := len(n) <= keys.MaxName && strings.ToValidUTF8(n, "") == n && allowed.MatchString(n)
			if got := keys.CheckName(n) == nil; got != want {
				t.Fatalf("CheckName(%q) accepts: %v; want %v", n, got, want)
			}
			if !want {
				return
			}
		}
		// The stream's name is as good a prefix.
		for _, prefix := range []string{"", stream2} {
			owner := map[string]string{}
			for _, s := range []keys.Stream{keys.NewStream(prefix, stream), keys.NewStream(prefix, stream2)} {
				who := fmt.Sprintf("stream %q, ", s.Name)
				list := streamKeys(s, id)
				for _, g := range []string{group, group2} {
					for _, k := range groupKeys(s.Group(g), id) {
						list = append(list, named{fmt.Sprintf("group %q, %s", g, k.kind), k.key})
					}
				}
				for _, k := range list {
					if had, taken := owner[k.key]; taken && had != who+k.kind {
						t.Errorf("%q belongs to %s and to %s%s", k.key, had, who, k.kind)
					}
					owner[k.key] = who + k.kind
					if tag := hashTag(k.key); tag != s.Name {
						t.Errorf("%q has hash tag %q", k.key, tag)
					}
				}
			}
			if who, taken := owner[prefix+keys.Registry]; taken {
				t.Errorf("%s has the registry's key", who)
			}
		}
	})
}
