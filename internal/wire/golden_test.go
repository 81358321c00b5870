package wire_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata. Those files are test vectors for other languages too, hence their plain form.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("what is stored is a public contract; this differs from %s:\n%s", file, got)
	}
}

const legend = "# Strings: bytes 20 to 7e as they are, but \\\" and \\\\; all others \\x and two hex digits.\n"

// quote is the form that the legend describes.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c > 0x7e:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func writeFields(b *strings.Builder, word string, fields []string) {
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(b, "%s %s %s\n", word, quote(fields[i]), quote(fields[i+1]))
	}
}

func TestPackGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Fields, and the parked value that holds them.\n" + legend)
	for _, c := range []struct {
		name   string
		fields []string
	}{
		{"the worked example", []string{"body", `{"id":1}`, "rc", "1"}},
		{"empty name and value", []string{"", ""}},
		{"the same name again", []string{"a", "1", "a", "2", "", "3", "", ""}},
		{"binary", []string{"body", "a\x00\xff\r\n\x01", "\xfe", "\x80"}},
		{"UTF-8", []string{"größe", "日本"}},
		{"what looks like a length", []string{"1:a,", "3:abc,", ",", ":"}},
		{"lengths of two and three digits", []string{"0123456789", strings.Repeat("x", 100)}},
		{"a value in a value", []string{"packed", wire.Pack([]string{"body", "x"})}},
	} {
		packed := wire.Pack(c.fields)
		fmt.Fprintf(&b, "\n== %s\n", c.name)
		writeFields(&b, "field", c.fields)
		fmt.Fprintf(&b, "packed %s\n", quote(packed))
		if got, err := wire.Unpack(packed); err != nil || !slices.Equal(got, c.fields) {
			t.Errorf("%s: unpacked again %q, %v", c.name, got, err)
		}
	}
	golden(t, "packed.golden", b.String())
}

func TestUnpackMalformedGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Values that are no parked values, and what is wrong with them.\n" + legend)
	for _, v := range []string{
		"", "\x01", "\x00", "\x02" + "1:a,1:b,", "1:a,1:b,", "{}",
		"\x01" + "1:a,", "\x01" + "1:a,1:b,1:c,", // no pairs
		"\x01" + "1:a,1:b", "\x01" + "1:a,1:b;", "\x01" + "1:a,2:b,", "\x01" + "1:a,0:b,", // no comma there
		"\x01" + "1:a,9:b,", "\x01" + "9999999999:a,1:b,", "\x01" + "99999999999:a,1:b,", // past the end
		"\x01" + ":a,1:b,", "\x01" + "a,b,", "\x01" + "+1:a,1:b,", "\x01" + "-1:a,1:b,", "\x01" + " 1:a,1:b,", "\x01" + "1_0:a,1:b,",
		"\x01" + "1a:a,1:b,", "\x01" + "0x1:a,1:b,", "\x01" + "1:a,1:b,\n", "\x01" + "1:a,1:b,1",
	} {
		fields, err := wire.Unpack(v)
		if !errors.Is(err, wire.ErrMalformed) || fields != nil {
			t.Errorf("Unpack(%q) = %q, %v", v, fields, err)
		}
		fmt.Fprintf(&b, "\nvalue %s\nerror %v\n", quote(v), err)
	}
	golden(t, "malformed.golden", b.String())
}

// entryCases are entries as producers, this library and accidents write them.
var entryCases = []struct {
	name, id string
	fields   []string
}{
	{"a plain producer", "1754000000000-0", []string{"body", `{"id":1}`}},
	{"headers and a dedupe id", "1754000000000-1", []string{"body", "x", "headers", `{"b":"2","a":"<1>"}`, "did", "o-1"}},
	{"a retry", "1754000000001-0", []string{
		"body", "x", "tenant", "acme", "rc", "2", "losses", "1", "oid", "1754000000000-0", "err", "no route",
	}},
	{"a delayed message", "1754000060000-0", []string{"body", "x", "oid", "d-1754000000000-00112233aabbccdd", "due", "1754000059900"}},
	{"a suspect", "1754000000002-0", []string{"body", "x", "lost", "2", "losses", "3", "cut", "1", "oid", "1754000000000-0"}},
	{"redriven", "1754000000003-0", []string{"body", "x", "oid", "1754000000000-0", "redriven", "1", "due", "1754000002900", "err", "no route"}},
	{"published anew", "1754000000004-0", []string{"body", "x", "from", "1754000000000-0"}},
	{"dead", "1754000000005-0", []string{"body", "x", "rc", "6", "oid", "1754000000000-0", "err", "no route", "reason", "retries"}},
	{"dead, too wide", "1754000000006-0", []string{
		"packed", wire.Pack([]string{"body", "x"}), "rc", "1", "oid", "1754000000000-0", "err", "no", "reason", "too-wide",
	}},
	{"dead, malformed", "1754000000007-0", []string{"raw", "\x01oops", "member", "m/1754000000000-0", "reason", "malformed"}},
	{"no body", "1-0", []string{"foo", "bar"}},
	{"an empty body", "1-1", []string{"body", ""}},
	{"an empty name", "1-2", []string{"", ""}},
	{"the first of a name counts", "1-3", []string{
		"body", "a", "oid", "", "rc", "junk", "headers", "", "did", "", "body", "b", "oid", "1-0", "rc", "3", "headers", `{"a":"b"}`, "did", "d",
	}},
	{"a binary body", "1-4", []string{"body", "a\x00\xff\r\n"}},
	{"junk counters", "1-5", []string{"rc", "nan", "lost", "-1", "losses", "1e3", "cut", "1234567890", "redriven", " 1"}},
	{"counters at their limits", "1-6", []string{"rc", "999999999", "lost", "000000007", "losses", "0", "cut", "", "redriven", "٣"}},
	{"a due time that is none", "1-11", []string{"body", "x", "due", "-1"}},
	{"a due time that is too large", "1-12", []string{"body", "x", "due", "18446744073709551615"}},
	{"unknown fields keep their order", "1-7", []string{"z", "1", "body", "x", "a", "2", "z", "", "", "3", "Body", "4", "rc ", "5"}},
	{"headers that are none", "1-8", []string{"body", "x", "headers", `{"a":1}`}},
	{"a null header", "1-9", []string{"body", "x", "headers", `{"a":null}`}},
	{"a name without a value", "1-10", []string{"body", "x", "rc"}},
	{"ids near their end", "18446744073709551615-18446744073709551615", []string{"body", "x"}},
}

func TestParseGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Entries, and the messages they are. A message's empty texts and zero counters are left out.\n" + legend)
	for _, c := range entryCases {
		fmt.Fprintf(&b, "\n== %s\nentry %s\n", c.name, c.id)
		writeFields(&b, "field", c.fields)
		writeMessage(&b, wire.Parse(c.id, c.fields))
	}
	golden(t, "entries.golden", b.String())
}

func writeMessage(b *strings.Builder, m wire.Message) {
	fmt.Fprintf(b, "-> id %s\n", m.ID)
	if at := wire.Time(m.ID); !at.IsZero() {
		fmt.Fprintf(b, "-> published %s\n", at.Format("2006-01-02T15:04:05.000Z07:00"))
	}
	if m.HasBody {
		fmt.Fprintf(b, "-> body %s\n", quote(m.Body))
	} else {
		b.WriteString("-> no body\n")
	}
	h := wire.ParseHeaders(m.Headers)
	for _, k := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(b, "-> header %s %s\n", quote(k), quote(h[k]))
	}
	for _, v := range [][2]string{{"did", m.DID}, {"from", m.From}, {"err", m.Err}, {"reason", m.Reason}} {
		if v[1] != "" {
			fmt.Fprintf(b, "-> %s %s\n", v[0], quote(v[1]))
		}
	}
	for _, v := range []struct {
		name string
		n    int
	}{{"rc", m.RC}, {"lost", m.Lost}, {"losses", m.Losses}, {"cut", m.Cut}, {"redriven", m.Redriven}} {
		if v.n != 0 {
			fmt.Fprintf(b, "-> %s %d\n", v.name, v.n)
		}
	}
	if m.Due != 0 {
		fmt.Fprintf(b, "-> due %d\n", m.Due)
	}
	for _, u := range wire.Unknown(m.Fields) {
		fmt.Fprintf(b, "-> unknown %s %s\n", quote(u[0]), quote(u[1]))
	}
}

func TestNewGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# What is published for a body, headers and a dedupe id.\n" + legend)
	for _, c := range []struct {
		name, body string
		headers    map[string]string
		did        string
	}{
		{"a body", `{"id":1}`, nil, ""},
		{"nothing", "", map[string]string{}, ""},
		{"all", "a\x00\xff", map[string]string{"b": "2", "a": "<&>\u2028", "": "\""}, "\x00 1"},
	} {
		fields, err := wire.New(nil, []byte(c.body), c.headers, c.did)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n== %s\n", c.name)
		writeFields(&b, "field", fields)
		m := wire.Parse("1-0", fields)
		if m.Body != c.body || !m.HasBody || m.DID != c.did || !maps.Equal(wire.ParseHeaders(m.Headers), c.headers) {
			t.Errorf("%s: read again as %+v", c.name, m)
		}
		if u := wire.Unknown(fields); len(u) != 0 {
			t.Errorf("%s: unknown fields %q", c.name, u)
		}
	}
	golden(t, "new.golden", b.String())
}
