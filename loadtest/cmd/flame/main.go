// Flame draws a CPU profile as a flame graph: flame TITLE PROFILE >OUT.svg. A box is a function, as wide as the share of
// time it and what it called took; what stands on it is what it called. Boxes under 0.2 % are left out.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "flame:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: flame TITLE PROFILE >OUT.svg")
	}
	f, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	p, err := profile.Parse(f)
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	_, err = io.WriteString(out, draw(args[0], stacks(p)))
	return err
}

// node is a function where it was called from.
type node struct {
	name  string
	value int64
	calls map[string]*node
}

func (n *node) call(name string) *node {
	if n.calls[name] == nil {
		n.calls[name] = &node{name: name, calls: map[string]*node{}}
	}
	return n.calls[name]
}

// stacks adds up the samples, from the root of each stack; the last kind of value is that of time.
func stacks(p *profile.Profile) *node {
	root := &node{name: "all", calls: map[string]*node{}}
	for _, s := range p.Sample {
		v := s.Value[len(s.Value)-1]
		at := root
		at.value += v
		for _, l := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(l.Line) {
				at = at.call(short(line.Function.Name))
				at.value += v
			}
		}
	}
	return root
}

// short leaves of a name's path the last part.
func short(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

const (
	width  = 1200.0
	line   = 16
	least  = 0.002
	letter = 6.2
)

func draw(title string, root *node) string {
	var b strings.Builder
	deep := depth(root, root.value)
	high := (deep + 3) * line
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %d" font-family="monospace" font-size="11">`+"\n", width, high)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="4" y="13">%s</text>`+"\n", html.EscapeString(title))
	box(&b, root, root.value, 0, high-line)
	b.WriteString("</svg>\n")
	return b.String()
}

func drawn(n *node, total int64) []*node {
	var list []*node
	for c := range maps.Values(n.calls) {
		if float64(c.value) >= least*float64(total) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	return list
}

func depth(n *node, total int64) int {
	deep := 0
	for _, c := range drawn(n, total) {
		deep = max(deep, depth(c, total))
	}
	return deep + 1
}

func box(b *strings.Builder, n *node, total int64, x float64, y int) {
	share := float64(n.value) / float64(total)
	w := share * width
	fmt.Fprintf(b, `<g><title>%s: %.1f %%</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" stroke="#fff" stroke-width=".5"/>`,
		html.EscapeString(n.name), 100*share, x, y, w, line-1, colour(n.name))
	if room := int((w - 4) / letter); room >= 3 {
		text := n.name
		if len(text) > room {
			text = text[:room-2] + ".."
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`, x+2, y+line-5, html.EscapeString(text))
	}
	b.WriteString("</g>\n")
	for _, c := range drawn(n, total) {
		box(b, c, total, x, y-line)
		x += float64(c.value) / float64(total) * width
	}
}

// colour tells whose code it is: ours, go-redis, the runtime, the rest.
func colour(name string) string {
	pkg, _, _ := strings.Cut(name, ".")
	hue := 40
	switch {
	case slices.Contains([]string{"xstreamq", "engine", "commit", "conn", "lua", "wire", "keys"}, pkg):
		hue = 200
	case pkg == "v9" || pkg == "proto" || pkg == "pool":
		hue = 0
	case pkg == "runtime":
		hue = 90
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return fmt.Sprintf("hsl(%d,60%%,%d%%)", hue, 70+h.Sum32()%12)
}
