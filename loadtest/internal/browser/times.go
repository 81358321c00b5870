package browser

import (
	"slices"
	"time"
)

// PageTime is how long a page took, from the start of its navigation until all of it was drawn.
type PageTime struct {
	Name         string
	Best, Median time.Duration
	Asked        []string // addresses of the JSON that it read, but for the live stream
}

// Times opens each of the pages (a name and a query) of a dashboard some times, in a new tab.
func (b *Browser) Times(dashboard string, pages [][2]string, runs int) ([]PageTime, error) {
	p, err := b.Page(1280, 800, "light")
	if err != nil {
		return nil, err
	}
	defer p.Close()
	out := make([]PageTime, len(pages))
	for i, page := range pages {
		all := make([]time.Duration, runs)
		for n := range all {
			if err := p.Go(dashboard + page[1]); err != nil {
				return nil, err
			}
			ms, err := Eval[float64](p, `performance.getEntriesByName('page').at(-1).startTime`)
			if err != nil {
				return nil, err
			}
			all[n] = time.Duration(ms * float64(time.Millisecond))
		}
		asked, err := Eval[[]string](p, `performance.getEntriesByType('resource').map(e => e.name).filter(n => /\/api\/(?!live)/.test(n))`)
		if err != nil {
			return nil, err
		}
		slices.Sort(all)
		out[i] = PageTime{page[0], all[0], all[len(all)/2], asked}
	}
	return out, nil
}
