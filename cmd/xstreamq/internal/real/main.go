// Command real runs a file of webhook payloads through the xstreamq command line and a private redis-server: real FILE.
// It exits 1 on any difference. See package webhooks.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/webhooks"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: real FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "real:", err)
		os.Exit(1)
	}
}

func run(file string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "xstreamq-real")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "xstreamq")
	b, err := exec.Command("go", "build", "-o", bin, "github.com/xstreamq/xstreamq/cmd/xstreamq").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the CLI: %w\n%s", err, b)
	}
	return webhooks.Run(file, bin, out)
}
