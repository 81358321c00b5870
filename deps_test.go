package xstreamq_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowedModules is all that a program takes on with this library: go-redis and what
// it needs itself. One more is every user's business, so the list is kept here.
var allowedModules = []string{
	modulePath,
	"github.com/redis/go-redis/v9",
	"github.com/cespare/xxhash/v2",
	"go.uber.org/atomic",
	"golang.org/x/sys",
}

// The library and its dashboard, and also their tests, live on go-redis and the standard library.
func TestLinksOnlyGoRedis(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{modulePath}, {modulePath + "/dash"}, {"-test", "./..."}} {
		linked := linkedModules(t, args...)
		for _, module := range linked {
			if !slices.Contains(allowedModules, module) {
				t.Errorf("go list -deps %s: module %s is linked; allowed are %s",
					strings.Join(args, " "), module, strings.Join(allowedModules, ", "))
			}
		}
		if !slices.Contains(linked, "github.com/redis/go-redis/v9") {
			t.Errorf("go list -deps %s does not name go-redis: it found only %q", strings.Join(args, " "), linked)
		}
	}
}

// linkedModules are the modules that the packages of this module named by args need.
func linkedModules(t *testing.T, args ...string) (modules []string) {
	t.Helper()
	const format = "{{if not .Standard}}{{with .Module}}{{.Path}}{{else}}no module: {{.ImportPath}}{{end}}{{end}}"
	list := exec.Command("go", slices.Concat([]string{"list", "-deps", "-f", format}, args)...)
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for line := range strings.FieldsSeq(string(out)) {
		modules = append(modules, line)
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}
