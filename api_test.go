package xstreamq_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	modulePath = "github.com/xstreamq/xstreamq"
	goldenAPI  = "testdata/api.txt"
)

var update = flag.Bool("update", false, "rewrite "+goldenAPI)

// What users can write against is pinned: a change of it is a decision, seen in a
// review, and a changed line or a lost one breaks somebody. The text comes from what
// the compiler exports, so promoted methods and values of constants are in it.
func TestAPI(t *testing.T) {
	t.Parallel()
	got := describeAPI(loadPackage(t, modulePath))
	if *update {
		if err := os.WriteFile(goldenAPI, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(goldenAPI)
	if err != nil {
		t.Fatal(err)
	}
	want := string(golden)
	for line := range strings.Lines(want) {
		if !strings.Contains("\n"+got, "\n"+line) {
			t.Errorf("gone: %s", line)
		}
	}
	for line := range strings.Lines(got) {
		if !strings.Contains("\n"+want, "\n"+line) {
			t.Errorf("new: %s", line)
		}
	}
	if got != want {
		t.Errorf("the exported API is not the one of %s; if that is meant: go test -run TestAPI -update .", goldenAPI)
	}
}

// loadPackage reads a package from the compiler's export data.
func loadPackage(t *testing.T, path string) *types.Package {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}", path)
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list -export %s: %v\n%s", path, err, &stderr)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[pkg] = file
	}
	load := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	pkg, err := importer.ForCompiler(token.NewFileSet(), "gc", load).Import(path)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// describeAPI is one line for each exported name, field and method, sorted within its kind.
func describeAPI(pkg *types.Package) string {
	var out strings.Builder
	qualify := types.RelativeTo(pkg)
	for _, kind := range []string{"const", "var", "func", "type"} {
		for _, name := range pkg.Scope().Names() { // sorted
			obj := pkg.Scope().Lookup(name)
			if !obj.Exported() || kindOf(obj) != kind {
				continue
			}
			switch o := obj.(type) {
			case *types.Const:
				value := o.Val().ExactString()
				if o.Val().Kind() == constant.String {
					value = o.Val().String()
				}
				fmt.Fprintf(&out, "%s = %s\n", types.ObjectString(o, qualify), value)
			case *types.TypeName:
				out.WriteString(describeType(o, qualify))
			default:
				fmt.Fprintln(&out, types.ObjectString(obj, qualify))
			}
		}
	}
	return out.String()
}

func kindOf(obj types.Object) string {
	kind, _, _ := strings.Cut(types.ObjectString(obj, nil), " ")
	return kind
}

func describeType(o *types.TypeName, qualify types.Qualifier) string {
	named, ok := o.Type().(*types.Named)
	if !ok || o.IsAlias() {
		return types.ObjectString(o, qualify) + "\n"
	}
	var lines []string
	head := "type " + types.TypeString(named, qualify)
	if params := named.TypeParams(); params.Len() > 0 {
		head = "type " + o.Name() + "["
		for i := range params.Len() {
			if i > 0 {
				head += ", "
			}
			head += params.At(i).Obj().Name() + " " + types.TypeString(params.At(i).Constraint(), qualify)
		}
		head += "]"
	}
	switch u := named.Underlying().(type) {
	case *types.Struct:
		head += " struct"
		for i := range u.NumFields() {
			f := u.Field(i)
			name := f.Name()
			if f.Embedded() {
				name = "embeds"
			}
			if f.Exported() {
				lines = append(lines, fmt.Sprintf("\t%s %s%s", name, types.TypeString(f.Type(), qualify), tagOf(u.Tag(i))))
			}
		}
	case *types.Interface:
		head += " interface"
		for method := range u.Methods() {
			if !method.Exported() {
				head += " (only this package implements it)"
				break
			}
		}
	default:
		head += " " + types.TypeString(u, qualify)
	}
	return head + "\n" + strings.Join(append(lines, describeMethods(named, qualify)...), "")
}

func tagOf(tag string) string {
	if tag == "" {
		return "\n"
	}
	return " `" + tag + "`\n"
}

// describeMethods is the method set of a pointer to the type, which holds all.
func describeMethods(named *types.Named, qualify types.Qualifier) (lines []string) {
	var of types.Type = named
	if !types.IsInterface(named) {
		of = types.NewPointer(named)
	}
	set := types.NewMethodSet(of)
	byValue := types.NewMethodSet(named)
	for method := range set.Methods() {
		m := method.Obj()
		if !m.Exported() {
			continue
		}
		receiver := "*"
		if byValue.Lookup(m.Pkg(), m.Name()) != nil {
			receiver = ""
		}
		signature := strings.TrimPrefix(types.TypeString(m.Type(), qualify), "func")
		lines = append(lines, fmt.Sprintf("\t(%s%s) %s%s\n", receiver, named.Obj().Name(), m.Name(), signature))
	}
	slices.Sort(lines)
	return lines
}
