// Package mutant builds workers from sources with a rule taken out, so that it can be seen whether the trials would notice.
// The sources stay as they are: the go command overlays them for one build.
package mutant

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
)

// Mutant is one rule taken out, and the trial that must find it.
type Mutant struct {
	Name    string
	File    string // below the repository's root
	Old     string // stands there once
	New     string
	Profile string
	For     time.Duration // of faults; messages are as many as fit
	Finds   []string      // one of these kinds of findings at least
}

// All mutants.
func All() []Mutant {
	return []Mutant{
		{
			Name: "ack-before-copy", File: "internal/lua/scripts/settle.lua", Profile: "wrongtype", For: 6 * time.Second, Finds: []string{ledger.LostKind},
			Old: `    local member = park(KEYS[4], KEYS[3], src .. '/' .. id, rewrite(f, set), now() + tonumber(delay))
    ack(k, group, src, id)
`,
			New: `    ack(k, group, src, id)
    local member = park(KEYS[4], KEYS[3], src .. '/' .. id, rewrite(f, set), now() + tonumber(delay))
`,
		},
		{
			Name: "no-owner-check", File: "internal/lua/scripts/lib.lua", Profile: "naps", For: 20 * time.Second,
			Finds: []string{ledger.TwiceKind, ledger.UndoneKind, ledger.BesideKind, ledger.NeedlessKind, ledger.SpentKind},
			Old:   `return redis.call('XPENDING', k[src], group, id, id, 1, consumer)[1] ~= nil`,
			New:   `return true`,
		},
		{
			Name: "acks-dropped", File: "internal/engine/settler.go", Profile: "short", For: 7 * time.Second, Finds: []string{ledger.UndoneKind},
			Old: `	ack := lua.NewOnce(ctx, args...)
`,
			New: `	ack := lua.NewOnce(ctx, args...)
	if ack.Cmd != nil {
		s.finishAll(list, func(int) lua.Settled { return lua.Settled{Status: lua.Acked} })
		return
	}
`,
		},
		{
			Name: "reclaimers-own-visibility", File: "internal/lua/scripts/tick.lua", Profile: "mixed", For: 15 * time.Second,
			Finds: []string{ledger.BesideKind, ledger.NeedlessKind},
			Old:   `local vis = l.state`,
			New:   `local own = lease(redis.call('HGET', KEYS[3], consumer)) local vis = own and own.vis or l.state`,
		},
		{
			Name: "group-made-again-at-the-end", File: "internal/lua/scripts/group.lua", Profile: "groups", For: 10 * time.Second, Finds: []string{ledger.LostKind},
			Old: `what, at = 'remade', pos`,
			New: `what, at = 'remade', '$'`,
		},
	}
}

// Apply is the file's text with the rule taken out.
func (m Mutant) Apply(text string) (string, error) {
	if n := strings.Count(text, m.Old); n != 1 {
		return "", fmt.Errorf("mutant %s: its text stands %d times in %s, want once", m.Name, n, m.File)
	}
	return strings.Replace(text, m.Old, m.New, 1), nil
}

// Build makes the chaos program of the mutant in dir and returns its path. root is the repository's.
func (m Mutant) Build(root, dir string) (string, error) {
	file := filepath.Join(root, m.File)
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	changed, err := m.Apply(string(text))
	if err != nil {
		return "", err
	}
	other := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(other, []byte(changed), 0o600); err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: other}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	program := filepath.Join(dir, "chaos")
	cmd := exec.Command("go", "build", "-overlay", list, "-o", program, "./loadtest/cmd/chaos")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant %s: %w\n%s", m.Name, err, out)
	}
	return program, nil
}
