//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/webhooks"
)

// TestWebhooksSample is `make real` on a small file of our own.
func TestWebhooksSample(t *testing.T) {
	t.Parallel()
	bin, err := exec.LookPath("xstreamq") // testscript.Main put this test binary there
	if err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	err = webhooks.Run("testdata/webhooks-sample.ndjson", bin, &report)
	t.Log("\n" + report.String())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(report.String(), "all as it must be") {
		t.Error("the check did not go to its end")
	}
}
