package growth

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// A picture has a panel for each axis, and one for what the colours mean.
const (
	columns         = 3
	panelW, panelH  = 330, 230
	left, right     = 48, 14 // of a panel, beside its plot
	above, below    = 34, 40
	plotW, plotH    = panelW - left - right, panelH - above - below
	steepest        = 20 // beyond it the upright axis is logarithmic too
	publishC, drain = "publish", "drain"
)

const style = `<style>
text{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d1d9e0}.publish{stroke:#0969da;fill:#0969da}.drain{stroke:#bc4c00;fill:#bc4c00}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.faint{fill:#9198a1}.grid{stroke:#3d444d}.publish{stroke:#58a6ff;fill:#58a6ff}.drain{stroke:#f0883e;fill:#f0883e}.ground{fill:#0d1117}}
polyline{fill:none!important;stroke-width:2}
</style>
`

// Draw is the picture of the rows, as SVG, for pages that are light and for those that are dark.
func Draw(rows []Row) string {
	var b strings.Builder
	lines := (len(rows) + columns) / columns // with the panel of the key
	w, h := columns*panelW, lines*panelH
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui,sans-serif" font-size="12" role="img" aria-label="Cost of a message as work grows">`+"\n", w, h)
	b.WriteString(style)
	b.WriteString(`<rect class="ground" width="100%" height="100%" fill="#fff"/>` + "\n")
	for i, r := range rows {
		fmt.Fprintf(&b, `<g transform="translate(%d,%d)">`+"\n", i%columns*panelW, i/columns*panelH)
		panel(&b, r)
		b.WriteString("</g>\n")
	}
	i := len(rows)
	fmt.Fprintf(&b, `<g transform="translate(%d,%d)">`+"\n", i%columns*panelW, i/columns*panelH)
	for n, text := range []struct{ class, text string }{{publishC, "publish, 64 callers"}, {drain, "drain"}} {
		y := above + 20 + 24*n
		fmt.Fprintf(&b, `<polyline class="%s" points="%d,%d %d,%d"/>`, text.class, left, y, left+40, y)
		mark(&b, text.class, left+20, float64(y), "")
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", left+50, y+4, text.text)
	}
	fmt.Fprintf(&b, `<text class="faint" x="%d" y="%d">µs a message, medians; less is better</text>`+"\n</g>\n</svg>\n", left, above+72)
	return b.String()
}

func panel(b *strings.Builder, r Row) {
	all := slices.Concat(r.Publish.Micros, r.Drain.Micros)
	low, high := slices.Min(all), slices.Max(all)
	ticks, y := linear(high)
	unit := "µs"
	if high > steepest*low {
		ticks, y = logarithmic(low, high)
		unit = "µs, log"
	}
	fmt.Fprintf(b, `<text x="%d" y="16" font-weight="600">%s</text><text class="faint" x="%d" y="16" text-anchor="end">%s</text>`+"\n",
		left, html.EscapeString(r.Name), panelW-right, unit)
	for _, t := range ticks {
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fh%d"/><text class="faint" x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", left, y(t), plotW, left-6, y(t)+4, t)
	}
	x := func(i int) float64 {
		first, last := math.Log(float64(r.At[0])), math.Log(float64(r.At[len(r.At)-1]))
		return left + 8 + (plotW-16)*(math.Log(float64(r.At[i]))-first)/max(last-first, 1e-9)
	}
	for i, at := range r.At {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %dv4"/><text class="faint" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x(i), above+plotH, x(i), above+plotH+17, label(at, r.Bytes))
	}
	curveOf(b, publishC, r, r.Publish.Micros, x, y)
	curveOf(b, drain, r, r.Drain.Micros, x, y)
}

func curveOf(b *strings.Builder, class string, r Row, micros []float64, x func(int) float64, y func(float64) float64) {
	fmt.Fprintf(b, `<polyline class="%s" points="`, class)
	for i, v := range micros {
		fmt.Fprintf(b, "%.1f,%.1f ", x(i), y(v))
	}
	b.WriteString(`"/>`)
	for i, v := range micros {
		mark(b, class, x(i), y(v), fmt.Sprintf("%s at %s: %s µs", class, label(r.At[i], r.Bytes), micro(v)))
	}
	b.WriteString("\n")
}

// mark is round or square, for who cannot tell the colours apart.
func mark(b *strings.Builder, class string, x, y float64, title string) {
	if class == publishC {
		fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle>`, class, x, y, title)
		return
	}
	fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="7" height="7"><title>%s</title></rect>`, class, x-3.5, y-3.5, title)
}

// linear begins at nothing, with up to five round ticks.
func linear(high float64) (ticks []float64, y func(float64) float64) {
	step := math.Pow(10, math.Floor(math.Log10(high/2)))
	for _, by := range []float64{2, 2.5, 2} { // 2, 5, 10
		if high/step <= 4 {
			break
		}
		step *= by
	}
	for t := 0.0; t < high+step; t += step {
		ticks = append(ticks, t)
	}
	top := ticks[len(ticks)-1]
	return ticks, func(v float64) float64 { return above + plotH*(1-v/top) }
}

// logarithmic has powers of ten as ticks.
func logarithmic(low, high float64) (ticks []float64, y func(float64) float64) {
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	for e := from; e <= to; e++ {
		ticks = append(ticks, math.Pow(10, e))
	}
	return ticks, func(v float64) float64 { return above + plotH*(1-(math.Log10(v)-from)/(to-from)) }
}
