package doccheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goKind sorts the blocks: whole files, fragments, and what is neither.
func goKind(b block) (isGo, fragment bool) {
	words := strings.Fields(b.info)
	if len(words) == 0 || words[0] != "go" {
		return false, false
	}
	return true, len(words) > 1 && words[1] == "fragment"
}

// checkGo reports the Go blocks that break a rule of this package. Whole files are
// vetted together in dir, a module beside those of root's workspace.
func checkGo(root, dir string, blocks []block) (problems []string, err error) {
	exported, err := exportedNames(root)
	if err != nil {
		return nil, err
	}
	whole := 0
	for _, b := range blocks {
		isGo, fragment := goKind(b)
		if !isGo {
			continue
		}
		file, why := parse(b.text, fragment)
		if why == "" {
			why = checkFormat(b.text)
		}
		switch {
		case why != "":
			problems = append(problems, b.at(0)+": "+why)
		case fragment:
			for _, name := range missingNames(file, exported) {
				problems = append(problems, fmt.Sprintf("%s: xstreamq.%s does not exist", b.at(0), name))
			}
		default:
			whole++
			if err := writeFile(root, dir, whole, b, file); err != nil {
				return nil, err
			}
		}
	}
	if whole == 0 {
		return problems, nil
	}
	if err := writeWorkspace(root, dir); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		problems = append(problems, fmt.Sprintf("go vet of the Go blocks: %v\n%s", err, bytes.TrimSpace(out)))
	}
	return problems, nil
}

// parse reads a whole file, or a fragment as declarations, else as statements.
func parse(text string, fragment bool) (file *ast.File, why string) {
	tries := []string{text}
	if fragment {
		tries = []string{"package p; " + text, "package p; func _() { " + text + "\n}"}
	} else if !strings.Contains("\n"+text, "\npackage ") {
		return nil, "a Go block is a whole file with its package clause, or ```go fragment"
	}
	var err error
	for _, src := range tries {
		if file, err = parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution); err == nil {
			return file, ""
		}
	}
	return nil, err.Error()
}

func checkFormat(text string) string {
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return err.Error()
	}
	if string(formatted) != text {
		return "not formatted by gofmt; it would be\n" + string(formatted)
	}
	return ""
}

// missingNames are the names that the file takes from package xstreamq in vain.
func missingNames(file *ast.File, exported map[string]bool) (missing []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "xstreamq" && !exported[sel.Sel.Name] {
				missing = append(missing, sel.Sel.Name)
			}
		}
		return true
	})
	return missing
}

// exportedNames are the package-level names of package xstreamq.
func exportedNames(root string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("doccheck: %w", err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, id := range s.Names {
							names[id.Name] = true
						}
					}
				}
			}
		}
	}
	for name := range names {
		if !ast.IsExported(name) {
			delete(names, name)
		}
	}
	return names, nil
}

// writeFile writes a block as a package of its own whose errors name the page.
func writeFile(root, dir string, n int, b block, file *ast.File) error {
	pkg := filepath.Join(dir, fmt.Sprintf("block%d", n))
	if err := os.Mkdir(pkg, 0o700); err != nil {
		return fmt.Errorf("doccheck: %w", err)
	}
	name := "block.go"
	for _, imp := range file.Imports {
		if imp.Path.Value == `"testing"` {
			name = "block_test.go"
		}
	}
	text := fmt.Sprintf("//line %s:%d\n%s", filepath.Join(root, b.page), b.line, b.text)
	if err := os.WriteFile(filepath.Join(pkg, name), []byte(text), 0o600); err != nil {
		return fmt.Errorf("doccheck: %w", err)
	}
	return nil
}

// writeWorkspace makes dir a module in a workspace with all of root's.
func writeWorkspace(root, dir string) error {
	cmd := exec.Command("go", "work", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("doccheck: read %s/go.work: %w", root, err)
	}
	var work struct {
		Go  string
		Use []struct{ DiskPath string }
		// Only versioned replaces by directories stand in this repository's go.work.
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal(out, &work); err != nil {
		return fmt.Errorf("doccheck: read %s/go.work: %w", root, err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "go %s\nuse .\n", work.Go)
	for _, u := range work.Use {
		fmt.Fprintf(&text, "use %q\n", filepath.Join(root, u.DiskPath))
	}
	for _, r := range work.Replace {
		fmt.Fprintf(&text, "replace %s %s => %q\n", r.Old.Path, r.Old.Version, filepath.Join(root, r.New.Path))
	}
	files := map[string]string{"go.work": text.String(), "go.mod": "module blocks.invalid\n\ngo " + work.Go + "\n"}
	if sums, err := os.ReadFile(filepath.Join(root, "go.work.sum")); err == nil {
		files["go.work.sum"] = string(sums)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("doccheck: %w", err)
		}
	}
	return nil
}
