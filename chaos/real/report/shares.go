package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// claims are the shares of one region in the order of time.
type claims struct {
	region int
	list   []Share
}

// claimsOf returns the claims by region.
func claimsOf(r Run, l Limit) []claims {
	all := make([]claims, len(r.Regions))
	for i := range all {
		all[i].region = i
	}
	for _, s := range l.Shares {
		if s.Region >= 0 && s.Region < len(all) && s.At >= 0 && s.At <= r.Length {
			all[s.Region].list = append(all[s.Region].list, s)
		}
	}
	return all
}

// shares draws one row for each region, all to the same scale: its share as a stepped line, its
// fixed split as a dashed line, and a strip where it was degraded.
func shares(lay layout, r Run, l Limit) markup {
	all := claimsOf(r, l)
	rowHeight, gap := 64.0, 26.0
	if len(all) > 4 {
		rowHeight = 34
	}
	most := 0.0
	for _, s := range l.Shares {
		most = max(most, float64(s.Share), float64(s.Entitlement))
	}
	whole := drawing{plot: plot{layout: lay, top: nameLane + 2,
		height: (rowHeight + gap) * float64(len(all)), length: r.Length}}
	whole.shade(r.Bands)
	for i, c := range all {
		row := drawing{plot: plot{layout: lay, top: whole.top + gap + float64(i)*(rowHeight+gap),
			height: rowHeight, length: r.Length, max: most * 1.05}}
		row.claims(r, c)
		whole.body.WriteString(row.body.String())
	}
	whole.times()
	return whole.svg("Share of each region over time, against its fixed split.")
}

// claims draws one region's row.
func (d *drawing) claims(r Run, c claims) {
	d.rect(fill(c.region), d.left, d.top-15, 9, 9)
	d.text("fault", d.left+14, d.top-6, fit(c.words(r), d.width-d.left-20))
	d.amounts(d.max, 2, true)
	d.line("base", d.left, d.bottom(), d.end(), d.bottom())
	if len(c.list) == 0 {
		return
	}
	list := d.thin(c.list)
	held, split := d.stairs(list, r.Length)
	first, last := px(d.x(list[0].At)), px(d.x(r.Length))
	d.path(fill(c.region)+" wash", "M"+first+" "+px(d.bottom())+"L"+held+"L"+last+" "+
		px(d.bottom())+"z")
	d.path("split", "M"+split)
	d.path("share s"+fill(c.region), "M"+held)
	for _, b := range c.degraded(r.Length) {
		x := d.x(b.From)
		d.rect("degraded", x, d.bottom()-5, max(d.x(b.To)-x, 1.5), 5)
	}
	end := list[len(list)-1]
	marginal := []label{{y: d.y(float64(end.Share)), text: short(float64(end.Share)),
		class: "name"}}
	if end.Share != end.Entitlement {
		marginal = append(marginal, label{y: d.y(float64(end.Entitlement)), text: "split " +
			short(float64(end.Entitlement)), class: "limitname"})
	} else {
		marginal[0].text += " = split"
	}
	d.labels(marginal)
}

// stairs returns the points of the stepped lines of share and split, without the first letter of
// their paths.
func (d *drawing) stairs(list []Share, end time.Duration) (held, split string) {
	var h, s strings.Builder
	for i, c := range list {
		y, f := px(d.y(float64(c.Share))), px(d.y(float64(c.Entitlement)))
		if i == 0 {
			h.WriteString(px(d.x(c.At)) + " " + y)
			s.WriteString(px(d.x(c.At)) + " " + f)
			continue
		}
		x := px(d.x(c.At))
		if c.Share != list[i-1].Share {
			h.WriteString("H" + x + "V" + y)
		}
		if c.Entitlement != list[i-1].Entitlement {
			s.WriteString("H" + x + "V" + f)
		}
	}
	x := px(d.x(end))
	return h.String() + "H" + x, s.String() + "H" + x
}

// thin keeps the first, the lowest, the highest and the last claim of each pixel. The line drawn
// through them covers the same pixels.
func (d *drawing) thin(list []Share) []Share {
	var kept []Share
	for len(list) > 0 {
		column := int(d.x(list[0].At))
		n := slices.IndexFunc(list, func(s Share) bool { return int(d.x(s.At)) != column })
		if n < 0 {
			n = len(list)
		}
		low, high := 0, 0
		for i, s := range list[:n] {
			if s.Share < list[low].Share {
				low = i
			}
			if s.Share > list[high].Share {
				high = i
			}
		}
		picked := []int{0, low, high, n - 1}
		slices.Sort(picked)
		for _, i := range slices.Compact(picked) {
			kept = append(kept, list[i])
		}
		list = list[n:]
	}
	return kept
}

// degraded returns the times in which the region was out of touch.
func (c claims) degraded(end time.Duration) []Band {
	var list []Band
	open := false
	for _, s := range c.list {
		switch {
		case s.Degraded && !open:
			list = append(list, Band{From: s.At, To: end})
		case !s.Degraded && open:
			list[len(list)-1].To = s.At
		}
		open = s.Degraded
	}
	return list
}

// words describes a region's row.
func (c claims) words(r Run) string {
	text := regionName(r.Regions[c.region])
	if len(c.list) == 0 {
		return text + ": nothing known"
	}
	low, high := c.list[0].Share, c.list[0].Share
	var apart time.Duration
	for _, s := range c.list {
		low, high = min(low, s.Share), max(high, s.Share)
	}
	for _, b := range c.degraded(r.Length) {
		apart += b.To - b.From
	}
	if low == high {
		text += fmt.Sprintf(": %s throughout", count(low))
	} else {
		text += fmt.Sprintf(": %s to %s", count(low), count(high))
	}
	if apart > 0 {
		text += ", degraded " + span(apart)
	}
	return text
}
