package lua

import (
	"slices"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// mutant is the scripts with one rule taken out or replaced by what looks as good, and the check that must see it.
type mutant struct {
	name, caught string
	patches      []patch
}

// TestMutants: a rule that can go without a test failing is not tested.
func TestMutants(t *testing.T) {
	t.Parallel()
	checks := allChecks()
	c := redistest.Shared(t).Client(t)
	for _, m := range slices.Concat(leaseMutants, moveMutants, streamMutants) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(checks, func(ch check) bool { return ch.name == m.caught })
			if i < 0 {
				t.Fatalf("no check is named %q", m.caught)
			}
			scripts, err := swapped(append([]patch{clockPatch}, m.patches...))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range m.patches {
				for name, s := range scripts {
					if s.name == p.file && name == load(s.name).sha {
						if err := c.ScriptLoad(t.Context(), s.text).Err(); err != nil {
							t.Fatalf("the mutant of %s.lua is no script: %v", s.name, err)
						}
					}
				}
			}
			caughtBy(t, checks[i], newBench(t, m.patches...))
		})
	}
}

func caughtBy(t *testing.T, ch check, b *bench) {
	t.Helper()
	faults := b.holds(ch)
	if len(faults) == 0 {
		t.Errorf("the check %q does not see it", ch.name)
	}
	for _, f := range faults {
		for _, crash := range []string{"attempt to", "user_script", "Script attempted", "unknown reply"} {
			if strings.Contains(f, crash) {
				t.Errorf("the mutant is broken, not wrong: %s", f)
			}
		}
		t.Log(f)
	}
}

var leaseMutants = []mutant{
	{"heartbeat that revives a dead owner", "heartbeat: dead", []patch{
		{"heartbeat", `if not l or l.state ~= 'live' then return 'gone' end`, `if not l then return 'gone' end l.state = 'live'`},
	}},
	{"heartbeat that makes a record", "heartbeat: missing", []patch{
		{"heartbeat", `if not l or l.state ~= 'live' then return 'gone' end`, `l = l or {vis = 30000, ver = '', state = 'live', suspect = ''}`},
	}},
	{"heartbeat of a foreign record", "heartbeat: foreign or unreadable", []patch{
		{"heartbeat", `if not l or l.state ~= 'live' then`, `if not l or l.state == 'dead' then`},
	}},
	{"tick that revives a dead owner", "tick: heartbeats", []patch{
		{"tick", `if l and l.state == 'live' then
      beat`, `if l then l.state = 'live'
      beat`},
	}},
	{"suspect written by a plain HSET", "arm: missing", []patch{
		{"arm", `if not l or l.state ~= 'live' then return 'gone' end`, `l = l or {vis = 30000, hb = 0, ver = '', state = 'live'}`},
	}},
	{"suspect written into a dead record", "arm: dead or foreign", []patch{
		{"arm", `if not l or l.state ~= 'live' then return 'gone' end`, `if not l then return 'gone' end`},
	}},
	{"registration over an existing field", "register: never over a record of any kind", []patch{
		{"register", `if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return 'taken' end`, ``},
	}},
	{"reclaimer's own visibility", "tick: a sweeper with a short visibility takes nobody's life", []patch{
		{"tick", `local vis = l.state`, `local own = lease(redis.call('HGET', KEYS[3], consumer)) local vis = own and own.vis or l.state`},
	}},
	{"least visibility of the group", "tick: dead only past visibility and grace, the owner's own", []patch{
		{"tick", `local vis = l.state`, `local vis = least or l.state`},
	}},
	{"no grace", "tick: dead only past visibility and grace, the owner's own", []patch{
		{"tick", `t - l.hb > vis + grace`, `t - l.hb > vis`},
	}},
	{"sweep interval over a quarter of the visibility", "tick: sweeps at least every quarter of the least visibility", []patch{
		{"tick", `interval = math.min(interval, math.floor(least / 4))`, `interval = interval + 0`},
	}},
	{"totals replaced", "tick: totals", []patch{{"tick", `tonumber(had) + `, ``}}},
	{"a total begins anew above 0", "tick: totals", []patch{{"tick", `'^%d+$') or '0'`, `'^%d+$') or '1'`}}},
	{"totals of a removed group", "tick: totals", []patch{{"tick", `if state ~= 'removed' then`, `if true then`}}},
	{"every tick sweeps", "tick: sweeps when it is due, once", []patch{
		{"tick", `t - swept >= interval * 0.8`, `t - swept >= 0`},
	}},
	{"a gap is not credited", "tick: a gap forward is credited, less one interval", []patch{
		{"tick", `credit = gap - (gap > 0 and interval or 0)`, `credit = 0`},
	}},
	{"a gap backward is not credited", "tick: a clock set back moves heartbeats back", []patch{
		{"tick", `credit = gap - (gap > 0 and interval or 0)`, `credit = gap > 0 and gap - interval or 0`},
	}},
	{"gap holds reclaim", "tick: stalls that come again and again do not stop reclaim", []patch{
		{"tick", `credit = gap - (gap > 0 and interval or 0)`, `credit = gap`},
	}},
	{"every pause between sweeps is a gap", "tick: three intervals are no gap", []patch{
		{"tick", `math.abs(gap) > 3 * interval`, `math.abs(gap) > 2 * interval`},
	}},
	{"heartbeats from the future stay", "tick: a clock set back a little leaves no heartbeat in the future", []patch{
		{"tick", `elseif credit > 0 or l.hb > t then`, `elseif credit ~= 0 then`},
	}},
	{"heartbeats since the clock was set back are moved too", "tick: a heartbeat since the clock was set back is not moved", []patch{
		{"tick", `elseif credit > 0 or l.hb > t then`, `elseif credit ~= 0 or l.hb > t then`},
	}},
	{"the first sweep judges", "tick: the first sweep, or one whose time was lost, marks nobody", []patch{
		{"tick", `if not swept then
          l.hb, changed = t, true
        elseif`, `if`},
		{"tick", `if swept and t - l.hb`, `if t - l.hb`},
	}},
	{"unknown owner left alone", "tick: unknown owners are entered and die of age", []patch{
		{"tick", `if not known[c[1]] then`, `if false then`},
	}},
	{"unknown owner of the retry stream left alone", "tick: unknown owners are entered and die of age", []patch{
		{"tick", `for _, stream in ipairs({KEYS[1], KEYS[2]}) do
      local p`, `for _, stream in ipairs({KEYS[1]}) do
      local p`},
	}},
	{"unknown owner by the largest visibility registered now", "tick: an unknown owner may have the largest visibility ever registered", []patch{
		{"tick", `tonumber(meta[3] or '') or 0`, `0`},
	}},
	{"the largest visibility is not kept", "tick: an unknown owner may have the largest visibility ever registered", []patch{
		{"register", `if not most or vis > most then`, `if false then`},
	}},
	{"only entry of a dead owner not named", "tick: a dead owner's only entry, in the retry stream, is named", []patch{
		{"tick", `then l.suspect = r[1][1] end`, `then l.suspect = '' end`},
	}},
	{"first of many entries named", "tick: a dead owner's only entry, in the retry stream, is named", []patch{
		{"tick", `#r == 1 and (m.err or #m == 0)`, `#r >= 1`},
	}},
	{"all owners marked at once", "tick: marks and names a bounded number of owners", []patch{
		{"tick", `and budget > 0 then`, `then`},
	}},
	{"the same owners are named by every sweep", "tick: names each of many dead owners before long", []patch{
		{"tick", `dead[(t + i) % #dead + 1]`, `dead[i]`},
	}},
	{"position = last delivered", "tick: records the position that loses nothing", []patch{
		{"tick", `position(KEYS[1], last)`, `last.last`},
	}},
	{"a sweep in the name of a vanished group forgets it", "tick: a vanished group keeps its record", []patch{
		{"tick", `    if last then
      local pos = position(KEYS[1], last)`, `    do
      local pos = last and position(KEYS[1], last) or '0-0'`},
	}},
	{"DELCONSUMER uncounted", "remove: holds entries of the main stream", []patch{
		{"remove", `if held > 0 then return held end`, ``},
	}},
	{"DELCONSUMER counted in the main stream alone", "remove: holds entries of both streams, one deleted", []patch{
		{"remove", `for _, stream in ipairs({KEYS[1], KEYS[2]}) do
    local p`, `for _, stream in ipairs({KEYS[1]}) do
    local p`},
	}},
	{"reclaim of a live owner", "reclaim: a live owner keeps all", []patch{
		{"reclaim", `if not l or l.state ~= 'dead' then`, `if not l then`},
	}},
	{"reclaim of an owner without a record", "reclaim: a live owner keeps all", []patch{
		{"reclaim", `if not l or l.state ~= 'dead' then return {'', 0, 0} end`, `l = l or {state = 'dead'} if l.state == 'live' then return {'', 0, 0} end`},
	}},
}
