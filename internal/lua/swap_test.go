package lua

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// patch is a change to the text of a script, made when a test runs. It must apply exactly once.
type patch struct{ file, old, new string }

// clockPatch lets the scripts read the time from a key beside the stream. All else is as it ships; that the scripts take
// the server's TIME, and take it in one place only, are tests of their own.
var clockPatch = patch{
	"lib", `local t = redis.call('TIME')`,
	`local t = redis.call('GET', string.match(KEYS[1], '^.-}') .. '.clock') t = {string.sub(t, 1, -4), string.sub(t, -3) .. '000'}`,
}

func names() []string {
	list, err := files.ReadDir("scripts")
	if err != nil {
		panic(err)
	}
	var out []string
	for _, f := range list {
		if name := strings.TrimSuffix(f.Name(), ".lua"); name != "lib" {
			out = append(out, name)
		}
	}
	return out
}

// swapped are the scripts with patches applied, by the name and by the text under which the wrappers send them.
func swapped(patches []patch) (map[string]script, error) {
	texts := map[string]string{"lib": source("lib")}
	for _, name := range names() {
		texts[name] = source(name)
	}
	for _, p := range patches {
		text, ok := texts[p.file]
		if n := strings.Count(text, p.old); !ok || n != 1 || p.old == p.new {
			return nil, fmt.Errorf("the patch of %s.lua applies %d times, want once:\n%s", p.file, n, p.old)
		}
		texts[p.file] = strings.Replace(text, p.old, p.new, 1)
	}
	out := map[string]script{}
	for _, name := range names() {
		ships := load(name)
		s := newScript(name, texts["lib"], texts[name])
		out[ships.sha], out[ships.text] = s, s
	}
	return out, nil
}

// swap is a runner that sends another text than the wrapper asks for.
type swap struct {
	Runner
	by map[string]script
}

func (s swap) Process(ctx context.Context, cmd redis.Cmder) error {
	args := cmd.Args() // the command's own
	if text, ok := args[1].(string); ok {
		if to, ok := s.by[text]; ok {
			switch args[0] {
			case "evalsha":
				args[1] = to.sha
			case "eval":
				args[1] = to.text
			}
		}
	}
	return s.Runner.Process(ctx, cmd)
}
