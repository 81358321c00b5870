package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Used is the processor time that the process has used; false when it is gone.
func (p *Process) Used() (time.Duration, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before it may hold anything
	words := strings.Fields(rest)
	if len(words) < 13 {
		return 0, false
	}
	user, err := strconv.ParseInt(words[11], 10, 64)
	system, err2 := strconv.ParseInt(words[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100), err == nil && err2 == nil // 100 ticks a second, on all of Linux
}
