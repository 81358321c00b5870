package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by release builds (-ldflags -X main.version=…); others say what the build information says.
var version string

type versionJSON struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	Commit  string `json:"commit"`
}

func newVersion(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  xstreamq version --json",
		Args:    args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if a.json {
				return a.printJSON(v)
			}
			line := fmt.Sprintf("xstreamq %s (%s)", v.Version, v.Go)
			if v.Commit != "" {
				line = fmt.Sprintf("xstreamq %s (%s, commit %s)", v.Version, v.Go, v.Commit)
			}
			_, err := fmt.Fprintln(a.out, escape(line))
			return err
		},
	}, jsonObject, "version", "go", "commit")
}

func buildVersion() versionJSON {
	v := versionJSON{Version: version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}
