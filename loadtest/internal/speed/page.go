package speed

import (
	"fmt"
	"os"
	"strings"
)

// Marks in the page: what stands between them is written by a run.
const (
	begin = "<!-- written by `make speed` -->"
	end   = "<!-- end -->"
)

// Rewrite puts text between the marks of the page.
func Rewrite(page, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), begin+"\n")
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no %s … %s", page, begin, end)
	}
	return os.WriteFile(page, []byte(before+begin+"\n\n"+strings.TrimSpace(text)+"\n\n"+end+after), 0o644)
}
