package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repo is a repository of its own, with these files committed.
func repo(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	put(t, dir, files)
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "begin"}} {
		if out, err := in(dir, "git", args...); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return dir
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a script among them
			t.Fatal(err)
		}
	}
}

// in runs a command in dir, outside this workspace and without the user's own git settings.
func in(dir, name string, args ...string) (output string, err error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GOWORK=off", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com",
		"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func script(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReleaseTags(t *testing.T) {
	t.Parallel()
	tags := script(t, "scripts/release-tags")
	files := map[string]string{"CHANGELOG.md": "## [Unreleased]\n\n## [1.2.3] - 2026-12-01\n", "go.mod": "module github.com/xstreamq/xstreamq\n"}
	nested := []string{"cmd/xstreamq", "otelxstreamq", "promxstreamq", "xstreamqtest"}
	for _, m := range nested {
		files[m+"/go.mod"] = "module github.com/xstreamq/xstreamq/" + m + "\n\nrequire github.com/xstreamq/xstreamq v1.2.3\n"
	}
	cases := []struct {
		name, version string
		change        map[string]string // not committed
		commit        bool
		want          string
	}{
		{"no version", "1.2.3", nil, false, "is no version"},
		{"not clean", "v1.2.3", map[string]string{"go.mod": "module x\n"}, false, "not clean"},
		{"no section", "v1.2.4", nil, false, "no section [1.2.4]"},
		{"another version", "v1.2.3", map[string]string{"otelxstreamq/go.mod": "module o\n\nrequire github.com/xstreamq/xstreamq v0.0.0\n"}, true, "otelxstreamq/go.mod requires another version"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := repo(t, files)
			put(t, dir, c.change)
			if c.commit {
				if out, err := in(dir, "git", "commit", "-qam", "change"); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			out, err := in(dir, tags, c.version)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%v\n%s", err, out)
			}
			if made, _ := in(dir, "git", "tag"); made != "" {
				t.Errorf("it made %q", made)
			}
		})
	}
	dir := repo(t, files)
	if out, err := in(dir, tags, "v1.2.3"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := strings.Join(nested, "/v1.2.3\n") + "/v1.2.3\n"
	want = strings.Replace(want, "xstreamqtest/", "v1.2.3\nxstreamqtest/", 1) // as git sorts them
	if made, err := in(dir, "git", "tag"); err != nil || made != want {
		t.Errorf("%v, %q, want %q", err, made, want)
	}
}

func TestPreCommit(t *testing.T) {
	t.Parallel()
	hook := script(t, "scripts/hooks/pre-commit")
	files := map[string]string{"go.mod": "module x.example\n\ngo 1.26\n", "a/a.go": "package a\n", "scripts/size": "#!/bin/sh\ntest ! -e too-large\n"}
	cases := []struct{ name, file, text, want string }{
		{"good", "b/b.go", "package b\n", ""},
		{"no Go", "note.md", "x\n", ""},
		{"format", "a/a.go", "package  a\n", "a/a.go"},
		{"vet", "a/a.go", "package a\n\nvar _ int = \"x\"\n", "cannot use"},
		{"size", "too-large", "x\n", "exit status 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := repo(t, files)
			put(t, dir, map[string]string{c.file: c.text})
			if out, err := in(dir, "git", "add", "-A"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, err := in(dir, hook)
			if err != nil {
				out += err.Error()
			}
			if (err == nil) != (c.want == "") || !strings.Contains(out, c.want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
