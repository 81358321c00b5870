//go:build unix && !linux

package proc

import "time"

// Used is not known here.
func (p *Process) Used() (time.Duration, bool) { return 0, false }
