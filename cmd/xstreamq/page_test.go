//go:build unix

package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the generated pages anew")

const cliPage = "../../docs/cli.md"

// TestCLIPage compares docs/cli.md with what the commands say of themselves: everything behind its heading Commands is made
// here. `make docs` writes it.
func TestCLIPage(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "\n## Commands\n"
	head, _, found := strings.Cut(string(old), mark)
	if !found {
		t.Fatalf("%s has no heading Commands", cliPage)
	}
	comparePage(t, cliPage, string(old), head+mark+commandPages())
}

// comparePage fails when a page is stale, and writes it with -update.
func comparePage(t *testing.T, path, old, now string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil { //nolint:gosec // a page that everybody may read
			t.Fatal(err)
		}
		return
	}
	was, is := strings.Split(old, "\n"), strings.Split(now, "\n")
	for i, line := range is {
		if i >= len(was) || was[i] != line {
			t.Fatalf("%s is stale at line %d: run `make docs`\nit has  %q\nand not %q", path, i+1, append(was, "")[min(i, len(was))], line)
		}
	}
	if len(was) != len(is) {
		t.Fatalf("%s is stale: run `make docs`", path)
	}
}

func commandPages() string {
	all := leaves(testRoot())
	var b strings.Builder
	b.WriteString("\n| command | what |\n|---|---|\n")
	paths := slices.Sorted(maps.Keys(all))
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasPrefix(p, "xstreamq completion ") })
	for _, path := range paths {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", strings.TrimPrefix(path, "xstreamq "), strings.ReplaceAll(path, " ", "-"), all[path].Short)
	}
	for _, path := range paths {
		b.WriteString(commandPage(path, all[path]))
	}
	return b.String()
}

func commandPage(path string, cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n```text\n%s\n```\n", path, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	for part := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(part, "  ") {
			part = "```text\n" + part + "\n```"
		}
		b.WriteString("\n" + part + "\n")
	}
	switch keys := strings.Fields(cmd.Annotations[jsonKeys]); cmd.Annotations[jsonForm] {
	case jsonArrayOf:
		fmt.Fprintf(&b, "\nJSON: an array of `%s`.\n", jsonText(keys))
	case jsonLines:
		fmt.Fprintf(&b, "\nJSON: a line each of `%s`.\n", jsonText(keys))
	default:
		if len(keys) > 0 {
			fmt.Fprintf(&b, "\nJSON: `%s`.\n", jsonText(keys))
		}
	}
	if flags := cmd.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		if usage := strings.TrimRight(flags.FlagUsages(), "\n"); usage != "" {
			fmt.Fprintf(&b, "\n```text\n%s\n```\n", usage)
		}
	}
	b.WriteString("\n```sh\n")
	for line := range strings.Lines(cmd.Example) {
		b.WriteString(strings.TrimPrefix(line, "  "))
	}
	return b.String() + "\n```\n"
}

func jsonText(keys []string) string { return `{"` + strings.Join(keys, `","`) + `"}` }
