package rules

import (
	"time"

	"github.com/quotad/quotad/region/memory/tally"
)

// Recount adds up what the buckets counted, and begins another period of counting if the present
// one is over at a time. A node calls it every few seconds. What a bucket counts in the moment in
// which another one takes its place may be missed.
func (r *Rules) Recount(now time.Time) {
	r.Each(func(a *Applied) bool {
		r.found.hottest.Add(a.Bucket.ID, a.Hash, a.Tally.Take())
		return true
	})
	r.found.hottest.Turn(now)
}

// Hottest returns the buckets with the most units lately, as [tally.Sketch.Hottest] does, and since
// when they were counted: since these rules were made, if that is less than two periods ago.
func (r *Rules) Hottest(now time.Time, most int) (hottest []tally.Hot, since time.Time) {
	r.Recount(now)
	return r.found.hottest.Hottest(most), r.found.hottest.Since()
}

// Each calls see with the buckets that were asked for lately, at most MaxFound, until it returns
// false.
func (r *Rules) Each(see func(*Applied) bool) {
	for i := range r.found.pages {
		p := r.found.pages[i].Load()
		if p != nil && !p.each(see) {
			return
		}
	}
}

// each is Rules.Each for a page. It reports whether there may be more.
func (p *page) each(see func(*Applied) bool) bool {
	for i := range p {
		for j := range p[i] {
			if a := p[i][j].Load(); a != nil && !see(a) {
				return false
			}
		}
	}
	return true
}
