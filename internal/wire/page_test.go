package wire_test

import (
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// What docs/wire-format.md says is taken out of it here and held against the code.

// section is the text under a heading, up to the next heading of its rank or above.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/wire-format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut("\n"+string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/wire-format.md has no heading %q", heading)
	}
	rank := strings.IndexByte(heading, ' ')
	if at := regexp.MustCompile(`(?m)^#{1,` + strconv.Itoa(rank) + `} `).FindStringIndex(rest); at != nil {
		rest = rest[:at[0]]
	}
	return rest
}

// blocks are the fenced blocks of one language.
func blocks(t *testing.T, text, language string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatalf("no ```%s block", language)
	}
	return out
}

// firstColumn is what stands in backticks in the first column of a section's tables.
func firstColumn(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(.*?)` \\|").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatal("no table")
	}
	return out
}

// find is the groups of the one place in text that matches; blanks in the pattern match any white space.
func find(t *testing.T, text, pattern string) []string {
	t.Helper()
	all := regexp.MustCompile(strings.ReplaceAll(pattern, " ", `\s+`)).FindAllStringSubmatch(text, -1)
	if len(all) != 1 {
		t.Fatalf("%q is %d times on the page", pattern, len(all))
	}
	return all[0][1:]
}

func sameSet(t *testing.T, what string, page, code []string) {
	t.Helper()
	page, code = slices.Sorted(slices.Values(page)), slices.Sorted(slices.Values(code))
	if !slices.Equal(page, code) {
		t.Errorf("%s: the page has\n%q\nthe code\n%q", what, page, code)
	}
}

func TestPageKeys(t *testing.T) {
	t.Parallel()
	text := section(t, "## Keys")
	s := keys.NewStream("", "orders")
	g := s.Group("svc")
	sent, _ := strings.CutSuffix(s.Sent("x"), "11f6ad8ec52a2984abaafd7c3b516503785c2072") // SHA-1 of x
	seen, _ := strings.CutSuffix(g.Seen("x"), "11f6ad8ec52a2984abaafd7c3b516503785c2072")
	sameSet(t, "keys", firstColumn(t, text), []string{
		s.Main, s.Due, s.Parked, s.Groups, s.Meta, s.Probe(), s.Registry(), sent + "<sha1 of the dedupe id>",
		g.Retry, g.DLQ, g.Due, g.Parked, g.Paused, g.Workers, g.Meta, seen + "<sha1 of the message's id>",
	})
	prefixed := find(t, text, "with prefix `(.*?)` the queue is `(.*?)`, the registry `(.*?)`")
	s = keys.NewStream(prefixed[0], "orders")
	if s.Main != prefixed[1] || s.Registry() != prefixed[2] {
		t.Errorf("with prefix %s: queue %s, registry %s", prefixed[0], s.Main, s.Registry())
	}
	for _, limit := range append(find(t, text, "has 1 to (\\d+) bytes of valid"),
		append(find(t, text, "A prefix has 0 to (\\d+) bytes"), find(t, text, "A dedupe id has 1 to (\\d+) bytes")...)...) {
		if limit != strconv.Itoa(keys.MaxName) {
			t.Errorf("limit %s", limit)
		}
	}
}

func TestPageFields(t *testing.T) {
	t.Parallel()
	text := section(t, "## Entries")
	sameSet(t, "fields", firstColumn(t, text), slices.Collect(maps.Values(constants(t, "message.go", ""))))
	if n := find(t, text, "at most ([0-9,]+) bytes")[0]; n != thousands(wire.MaxError) {
		t.Errorf("err: at most %s bytes", n)
	}
	if p := find(t, text, "when it matches `(.*?)`")[0]; p != counters.String() {
		t.Errorf("counters match %s", p)
	}
	// What a producer may not set is all that the library sets, but for oid, which has a paragraph of its own.
	var ours []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(.*?)` \\|.*\\| library \\|$").FindAllStringSubmatch(text, -1) {
		if m[1] != wire.OID {
			ours = append(ours, m[1])
		}
	}
	forbidden := find(t, section(t, "## Publish from any language"), "may not\\*\\* - set ([^:]*):")[0]
	sameSet(t, "fields that are not a producer's", quoted(forbidden), ours)
	// Moves set fields at the end, in an order that lib.lua has.
	order := find(t, text, "once at the end, in the order ([^.]*)\\.")[0]
	lua := source(t, "lib.lua")
	if got, want := quoted(order), quoted(strings.ReplaceAll(find(t, lua, `local ORDER = \{(.*?)\}`)[0], "'", "`")); !slices.Equal(got, want) {
		t.Errorf("the page orders %q, lib.lua %q", got, want)
	}
	wide, err := strconv.Atoi(find(t, lua, `local WIDE = (\d+)`)[0])
	if err != nil {
		t.Fatal(err)
	}
	whole := section(t, "# Wire format")
	for _, m := range regexp.MustCompile(`([0-9,]+)\s+fields`).FindAllStringSubmatch(whole, -1) {
		if m[1] != thousands(wide) {
			t.Errorf("%s fields; scripts move %d", m[1], wide)
		}
	}
}

// quoted is what stands in backticks.
func quoted(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	if len(s) > 3 {
		s = s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return s
}

func source(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../lua/scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// constants are the string constants of a file, those of one type when typ is not empty.
func constants(t *testing.T, file, typ string) map[string]string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			if id, ok := v.Type.(*ast.Ident); typ != "" && (!ok || id.Name != typ) {
				continue
			}
			for i, value := range v.Values {
				if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					out[v.Names[i].Name], err = strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	return out
}

func TestPageReasons(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, file := range files {
		maps.Copy(reasons, constants(t, file, "Reason"))
	}
	sameSet(t, "reasons", firstColumn(t, section(t, "## Dead letters")), slices.Collect(maps.Values(reasons)))
}

func TestPageParkedValue(t *testing.T) {
	t.Parallel()
	text := section(t, "## Parked values")
	said := quoted(find(t, text, "The fields (.*) are")[0])
	packed := wire.Pack(said)
	digits := strings.Join(strings.Fields(blocks(t, text, "hex")[0]), "")
	if value, err := hex.DecodeString(digits); err != nil || string(value) != packed || len(said) != 4 {
		t.Errorf("fields %q pack to %q, not to %q (%v)", said, packed, value, err)
	}
	pretty := strings.Join(strings.Fields(blocks(t, text, "text")[0]), "")
	if got := strings.ReplaceAll(pretty, `\x01`, "\x01"); got != packed {
		t.Errorf("%q packs to %q, not to %q", said, packed, got)
	}
}

func TestPageMarkers(t *testing.T) {
	t.Parallel()
	text := section(t, "## Markers")
	s := keys.NewStream("", "orders")
	sent := find(t, text, "For dedupe id `(.*?)` it is `(.*?)`")
	if got := s.Sent(sent[0]); got != sent[1] {
		t.Errorf("sent marker of %s: %s", sent[0], got)
	}
	seen := find(t, text, "For id `(.*?)` it is `(.*?)`")
	if got := s.Group("svc").Seen(seen[0]); got != seen[1] {
		t.Errorf("seen marker of %s: %s", seen[0], got)
	}
}

// Every field of a meta hash on the page is one that scripts write, and the other way round.
func TestPageMeta(t *testing.T) {
	t.Parallel()
	_, stream, _ := strings.Cut(section(t, "## Records of the library"), "**Stream meta**")
	stream, group, _ := strings.Cut(stream, "**Group meta**")
	group, _, _ = strings.Cut(group, "**Pause flag**")
	// Where the hashes stand among each script's keys.
	for _, c := range []struct {
		what, text string
		key        map[string]string
	}{
		{"stream meta", stream, map[string]string{"group.lua": "4", "compact.lua": "3"}},
		{"group meta", group, map[string]string{"tick.lua": "6", "promote.lua": "5", "register.lua": "2"}},
	} {
		var written []string
		for file, key := range c.key {
			for _, m := range regexp.MustCompile(`'HSET', KEYS\[`+key+`\], (.*)\)`).FindAllStringSubmatch(source(t, file), -1) {
				names := regexp.MustCompile(`(?:^|, )'([a-z]+)', `).FindAllStringSubmatch(m[1], -1)
				for _, n := range names {
					written = append(written, n[1])
				}
			}
			for _, m := range regexp.MustCompile(`name in ipairs\({(.*?)}\) do[^@]*?'HSET', KEYS\[`+key+`\], name,`).FindAllStringSubmatch(source(t, file), -1) {
				written = append(written, strings.Split(strings.ReplaceAll(m[1], "'", ""), ", ")...)
			}
		}
		slices.Sort(written)
		sameSet(t, c.what, firstColumn(t, c.text), slices.Compact(written))
	}
}
