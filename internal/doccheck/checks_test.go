package doccheck

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const samplePage = "# Head `one` & two\n" +
	"## Same\n## Same\n" +
	"[a](#head-one--two) [b](#same-1) [c](docs/x.md#deep) [d](docs/x.md) ![i](<docs/x.md> \"t\") [w](https://x.y/z)\n" +
	"`[no](nowhere.md)` [e](gone.md) [f](#gone) [g](docs/x.md#gone) [h](../out.md)\n" +
	"```text\n[no](nowhere.md)\n```\n" +
	"[ref]: docs/none.md\n<a href=\"/docs/x.md\"> <img src=\"docs/no.png\">\n"

func TestCheckLinks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "README.md"), samplePage)
	write(t, filepath.Join(root, "docs", "x.md"), "### Deep\n[up](../README.md#same)\n")
	write(t, filepath.Join(root, ".hidden", "y.md"), "[x](none)\n")
	write(t, filepath.Join(root, "testdata", "y.md"), "[x](none)\n")
	ps, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"README.md:5: link to gone.md: no such file",
		"README.md:5: link to #gone: no such heading in README.md",
		"README.md:5: link to docs/x.md#gone: no such heading in docs/x.md",
		"README.md:5: link to ../out.md: it leaves the repository",
		"README.md:9: link to docs/none.md: no such file",
		"README.md:10: link to docs/no.png: no such file",
	}
	if got := checkLinks(root, ps); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	p := page{"p.md", "x\n```go\na\n\n```\n- item\n  ~~~~ sh  \n  b\n  ~~~\n    c\n  ~~~~\ny ```inline``` z\n```go\nopen\n"}
	blocks, prose, problems := p.split()
	want := []block{{"p.md", 3, "go", "a\n\n"}, {"p.md", 8, "sh", "b\n~~~\n  c\n"}}
	if !slices.Equal(blocks, want) {
		t.Errorf("blocks %+v, want %+v", blocks, want)
	}
	if len(prose) != strings.Count(p.text, "\n")+1 || prose[11] != "y ```inline``` z" || prose[2] != "" {
		t.Errorf("prose %q does not keep the page's lines", prose)
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "p.md:13") {
		t.Errorf("problems %q, want one for the block that never ends", problems)
	}
}

func TestCheckGo(t *testing.T) {
	t.Parallel()
	root, _ := filepath.Abs(filepath.Join("..", ".."))
	cases := []struct{ name, info, text, want string }{
		{"program", "go", "package main\n\nimport _ \"github.com/xstreamq/xstreamq\"\n\nfunc main() {}\n", ""},
		{"test", "go", "package p\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Log(1) }\n", ""},
		{"statements", "go fragment", "c, err := xstreamq.Open(url)\nuse(c, err)\n", ""},
		{"declarations", "go fragment", "type T struct{}\n\nfunc (T) f() {}\n", ""},
		{"another language", "golang", "nonsense", ""},
		{"no package clause", "go", "x := 1\n", "p.md:7: a Go block is a whole file"},
		{"syntax", "go", "package p\n\nfunc {\n", "p.md:7: 3:6"},
		{"fragment syntax", "go fragment", "x := := 1\n", "p.md:7: "},
		{"format", "go fragment", "x:=1\n", "not formatted"},
		{"no such name", "go fragment", "xstreamq.NoSuchThing()\n", "p.md:7: xstreamq.NoSuchThing does not exist"},
		{"types", "go", "package p\n\nvar x int = \"y\"\n", "p.md:9: cannot use"},
		{"vet", "go", "package p\n\nimport \"fmt\"\n\nfunc f() { fmt.Printf(\"%d\", \"x\") }\n", "p.md:11:"},
		{"internal", "go", "package p\n\nimport _ \"github.com/xstreamq/xstreamq/internal/keys\"\n", "use of internal package"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			problems, err := checkGo(root, t.TempDir(), []block{{"p.md", 7, c.info, c.text}})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(problems, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("problems %q, want %q", got, c.want)
			}
		})
	}
}

// fakeCLI behaves as the real one does when asked for help.
const fakeCLI = `for last; do :; done
[ "$last" = --help ] || { echo "Error: run without --help"; exit 9; }
case "$*" in
*--bogus*) echo "Error: unknown flag: --bogus"; exit 2 ;;
"dlq ls "*) printf 'Lists.\n\nUsage:\n  xstreamq dlq ls STREAM GROUP [flags]\n' ;;
"dlq "*) printf 'Dead.\n\nUsage:\n  xstreamq dlq [command]\n' ;;
"work "*) printf 'Usage:\n  xstreamq work STREAM GROUP -- CMD... [flags]\n' ;;
--help) printf 'Usage:\n  xstreamq [command]\n' ;;
*) echo "Error: unknown command"; exit 2 ;;
esac
`

func TestCheckCommands(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "fake")
	write(t, script, fakeCLI)
	cli := []string{"sh", script}
	cases := []struct{ line, want string }{
		{"xstreamq", ""},
		{"xstreamq dlq ls orders svc --limit 3 | head", ""},
		{"$ go run ./cmd/xstreamq dlq ls orders 'a | b' # all", ""},
		{"xstreamq work orders svc -- sh -c 'exit 1' --bogus", ""},
		{"xstreamq dlq \\\n  ls orders --bogus", "p.md:3: xstreamq dlq   ls orders --bogus: with --help: exit status 2: Error: unknown flag"},
		{"redis-cli xadd orders '*' body 1", ""},
		{"xstreamqd nothing", ""},
		{"xstreamq nothing", "unknown command"},
		{"xstreamq dlq nothing", `"xstreamq dlq" has no command "nothing"`},
		{"xstreamq dlq ls 'open", "a quote that never ends"},
		{"make && xstreamq nothing", ""},
	}
	for _, c := range cases {
		got := strings.Join(checkCommands(cli, []block{{"p.md", 3, "sh", c.line + "\n"}}), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: problems %q, want %q", c.line, got, c.want)
		}
	}
	if got := checkCommands(cli, []block{{"p.md", 3, "text", "xstreamq nothing\n"}}); got != nil {
		t.Errorf("a block that is no shell block: %q", got)
	}
}
