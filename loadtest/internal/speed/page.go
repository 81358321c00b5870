package speed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// end closes what a chore writes into a page.
const end = "<!-- end -->"

func begin(chore string) string { return "<!-- written by `make " + chore + "` -->" }

// Rewrite puts text between the marks that a chore has in the page.
func Rewrite(page, chore, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	mark := begin(chore)
	before, rest, ok := strings.Cut(string(old), mark+"\n")
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no %s … %s", page, mark, end)
	}
	return os.WriteFile(page, []byte(before+mark+"\n\n"+strings.TrimSpace(text)+"\n\n"+end+after), 0o644)
}

// Machine is what the figures depend on most.
func Machine(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return fmt.Sprintf("%d cores, %s", runtime.NumCPU(), runtime.Version())
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(string(out), "Redis server v="), " ")
	return fmt.Sprintf("%d cores with the server beside, Redis %s, %s", runtime.NumCPU(), version, runtime.Version())
}

// Taken says when, on what and how often the figures were taken, and what else is to say.
func Taken(ctx context.Context, rounds int, note string) string {
	return strings.TrimSpace(fmt.Sprintf("Taken %s, %s, rounds: %d. %s", time.Now().UTC().Format(time.DateOnly), Machine(ctx), rounds, note))
}
