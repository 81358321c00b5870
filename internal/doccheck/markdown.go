package doccheck

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// page is one Markdown file.
type page struct {
	name string // slash-separated, from the root of the repository
	text string
}

// block is one fenced code block.
type block struct {
	page string
	line int    // of its first line of code, from 1
	info string // the words after the opening fence
	text string
}

func (b block) at(offset int) string { return fmt.Sprintf("%s:%d", b.page, b.line+offset) }

// pages reads every Markdown file under root, but for hidden, built and test-data directories.
func pages(root string) ([]page, error) {
	var found []page
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "testdata", "node_modules"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found = append(found, page{filepath.ToSlash(rel), string(text)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("doccheck: pages under %s: %w", root, err)
	}
	return found, nil
}

// split parts a page into its code blocks and its prose; prose has one element a
// line of the page, empty within blocks, so that line numbers hold.
func (p page) split() (blocks []block, prose []string, problems []string) {
	var open *block
	var fence, indent string
	var code []string
	for i, line := range strings.Split(p.text, "\n") {
		text := strings.TrimLeft(line, " ")
		if open == nil {
			mark := text[:len(text)-len(strings.TrimLeft(text, "`~"))]
			if len(mark) < 3 || strings.Contains(text[len(mark):], "`") {
				prose = append(prose, line)
				continue
			}
			fence, indent, code = mark, line[:len(line)-len(text)], nil
			open = &block{page: p.name, line: i + 2, info: strings.TrimSpace(text[len(mark):])}
		} else if strings.HasPrefix(text, fence) && strings.Trim(text, fence[:1]+" \r") == "" {
			open.text = strings.Join(append(code, ""), "\n")
			blocks = append(blocks, *open)
			open = nil
		} else {
			code = append(code, strings.TrimPrefix(line, indent))
		}
		prose = append(prose, "")
	}
	if open != nil {
		problems = append(problems, fmt.Sprintf("%s: the code block never ends", open.at(-1)))
	}
	return blocks, prose, problems
}

// allBlocks are the code blocks of all pages.
func allBlocks(ps []page) (blocks []block, problems []string) {
	for _, p := range ps {
		b, _, bad := p.split()
		blocks, problems = append(blocks, b...), append(problems, bad...)
	}
	return blocks, problems
}
