//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const skillDir = "../../skills/xstreamq"

var frontMatter = regexp.MustCompile(`\A---\nname: (.+)\ndescription: (.+)\n---\n`)

// TestSkill runs every line of every shell block of the skill, as it stands, on a server that has what it speaks of, and
// holds its front matter to what those who read skills expect. internal/doccheck compiles its Go blocks.
func TestSkill(t *testing.T) {
	t.Parallel()
	s, rdb := testServer(t)
	bin := exampleTool(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = filepath.WalkDir(skillDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		program := fenced(string(text), "go")
		for _, block := range fenced(string(text), "sh") {
			for line := range strings.Lines(block) {
				seen++
				delayed := exampleState(t, s.URL(), rdb) // anew: lines remove and move things
				line = strings.ReplaceAll(exampleLine(strings.TrimSpace(line), s.URL(), delayed), "../xstreamq", root)
				files := map[string]string{}
				if strings.HasPrefix(line, "go mod ") && len(program) > 0 { // what the module is for
					files["app.go"] = program[0]
					if strings.Contains(program[0], `"testing"`) {
						files = map[string]string{"app_test.go": program[0]}
					}
				}
				t.Run(line, func(t *testing.T) { runExample(t, bin, s.URL(), line, files) })
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 30 {
		t.Errorf("only %d lines", seen)
	}
}

func TestSkillFrontMatter(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(skillDir, "SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := frontMatter.FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("it does not begin with a name and a description")
	}
	if m[1] != filepath.Base(skillDir) {
		t.Errorf("name %q is not that of its directory", m[1])
	}
	if len(m[2]) > 1024 || strings.Contains(m[2], ": ") {
		t.Errorf("the description has %d bytes, at most 1024, and no colon that YAML would stumble over", len(m[2]))
	}
	if n := strings.Count(string(text), "\n"); n > 150 {
		t.Errorf("%d lines: what is long belongs in references", n)
	}
}

// fenced are the texts of the page's blocks of one language.
func fenced(page, language string) (blocks []string) {
	for {
		_, rest, found := strings.Cut(page, "\n```"+language+"\n")
		if !found {
			return blocks
		}
		block, after, _ := strings.Cut(rest, "\n```")
		blocks, page = append(blocks, block), after
	}
}
