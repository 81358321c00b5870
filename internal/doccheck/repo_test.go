package doccheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is the root of this repository, and its pages.
func repository(t *testing.T) (root string, ps []page) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if ps, err = pages(root); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(ps, func(p page) bool { return p.name == "README.md" }) {
		t.Fatalf("%s has no README.md", root)
	}
	return root, ps
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	root, ps := repository(t)
	report(t, checkLinks(root, ps))
}

func TestGoBlocks(t *testing.T) {
	t.Parallel()
	root, ps := repository(t)
	blocks, problems := allBlocks(ps)
	report(t, problems)
	problems, err := checkGo(root, t.TempDir(), blocks)
	if err != nil {
		t.Fatal(err)
	}
	report(t, problems)
}

// The quick start is short: what main holds, in the README's first program and in the example.
func TestQuickStartIsShort(t *testing.T) {
	t.Parallel()
	root, ps := repository(t)
	example, err := os.ReadFile(filepath.Join(root, "examples", "quickstart", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"examples/quickstart": string(example)}
	blocks, _ := allBlocks(ps)
	for _, b := range blocks {
		if isGo, _ := goKind(b); isGo && b.page == "README.md" && texts[b.page] == "" {
			texts[b.page] = b.text
		}
	}
	for where, text := range texts {
		_, body, found := strings.Cut(text, "\nfunc main() {\n")
		body, _, ended := strings.Cut(body, "\n}\n")
		if n := strings.Count(body, "\n") + 1; !found || !ended || n > 22 {
			t.Errorf("%s: main has %d lines, at most 22", where, n)
		}
	}
	if len(texts) != 2 {
		t.Error("README.md has no program")
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	root, ps := repository(t)
	binary := filepath.Join(t.TempDir(), "xstreamq")
	build := exec.Command("go", "build", "-o", binary, "./cmd/xstreamq")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the CLI: %v\n%s", err, out)
	}
	blocks, _ := allBlocks(ps)
	report(t, checkCommands([]string{binary}, blocks))
}
