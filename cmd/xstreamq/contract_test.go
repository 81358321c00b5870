//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// leaves are the commands that do something, by path.
func leaves(root *cobra.Command) map[string]*cobra.Command {
	found := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		if !cmd.HasSubCommands() {
			found[cmd.CommandPath()] = cmd
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
	return found
}

func testRoot() *cobra.Command {
	a, _, _ := testApp(nil)
	return newRoot(a)
}

func flagWords(fs *pflag.FlagSet) (words []string) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		words = append(words, "--"+f.Name)
		if f.Shorthand != "" {
			words = append(words, "-"+f.Shorthand)
		}
	})
	return words
}

// TestContract compares the commands and flags there are with testdata/contract.txt.
func TestContract(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/contract.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		n := 0
		for n < len(words) && !strings.HasPrefix(words[n], "-") {
			n++
		}
		flags := slices.Sorted(slices.Values(words[n:]))
		want[strings.Join(words[:n], " ")] = flags
	}
	root := testRoot()
	got := map[string][]string{"xstreamq": slices.Sorted(slices.Values(flagWords(root.PersistentFlags())))}
	for path, cmd := range leaves(root) {
		got[path] = slices.Sorted(slices.Values(flagWords(cmd.LocalNonPersistentFlags())))
	}
	for path, flags := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is not in testdata/contract.txt: add it with its flags, %q", path, flags)
		} else if !slices.Equal(flags, want[path]) {
			t.Errorf("%s has the flags %q, by testdata/contract.txt %q", path, flags, want[path])
		}
	}
	for path := range want {
		if _, ok := got[path]; !ok {
			t.Errorf("%s is in testdata/contract.txt and does not exist", path)
		}
	}
}

// scripted is one use of the command line in a testscript.
type scripted struct {
	path  string
	flags []string
	keys  []string // what a keys line behind it says
}

var scriptWord = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)

// readScripts finds every use of xstreamq in the scripts, also within sh -c.
func readScripts(t *testing.T) (uses []scripted) {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts (%v)", err)
	}
	root := testRoot()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(text), "\n-- ")
		for line := range strings.Lines(script) {
			if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "code 2 ") { // refused: that tests no flag
				continue
			}
			if keys, ok := strings.CutPrefix(line, "keys "); ok {
				uses[len(uses)-1].keys = strings.Fields(keys)
				continue
			}
			for i, part := range strings.Split(line, "xstreamq ") {
				if i > 0 {
					uses = append(uses, readUse(root, part))
				}
			}
		}
	}
	return uses
}

func readUse(root *cobra.Command, line string) scripted {
	line, _, _ = strings.Cut(line, " -- ")
	words := scriptWord.FindAllString(line, -1)
	u := scripted{path: root.Name()}
	if cmd, _, err := root.Find(slices.Clone(words)); err == nil {
		u.path = cmd.CommandPath()
	}
	for _, w := range words {
		if strings.HasPrefix(w, "-") {
			name, _, _ := strings.Cut(w, "=")
			u.flags = append(u.flags, strings.TrimRight(name, ";)"))
		}
	}
	return u
}

// TestScriptsUseEveryFlag: no command and no flag is without a test.
func TestScriptsUseEveryFlag(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, u := range readScripts(t) {
		used[u.path] = true
		for _, f := range u.flags {
			used[u.path+" "+f], used["xstreamq "+f] = true, true
		}
	}
	root := testRoot()
	for _, f := range flagWords(root.PersistentFlags()) {
		if !used["xstreamq "+f] {
			t.Errorf("no testscript uses %s", f)
		}
	}
	for path, cmd := range leaves(root) {
		if !used[path] {
			t.Errorf("no testscript uses %s", path)
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !used[path+" --"+f.Name] && (f.Shorthand == "" || !used[path+" -"+f.Shorthand]) {
				t.Errorf("no testscript uses %s --%s", path, f.Name)
			}
		})
	}
}

// TestScriptsPinJSON: what each command says its JSON has is compared with what comes out, in some testscript.
func TestScriptsPinJSON(t *testing.T) {
	t.Parallel()
	pinned := map[string][][]string{}
	for _, u := range readScripts(t) {
		if u.keys != nil {
			pinned[u.path] = append(pinned[u.path], slices.Sorted(slices.Values(u.keys)))
		}
	}
	for path, cmd := range leaves(testRoot()) {
		keys, has := cmd.Annotations[jsonKeys]
		if !has {
			if pinned[path] != nil {
				t.Errorf("%s has JSON that it does not declare", path)
			}
			continue
		}
		want := slices.Sorted(slices.Values(strings.Fields(keys)))
		if !slices.ContainsFunc(pinned[path], func(got []string) bool { return slices.Equal(got, want) }) {
			t.Errorf("no testscript has `keys` with %q after %s --json (there are %q)", want, path, pinned[path])
		}
	}
}
