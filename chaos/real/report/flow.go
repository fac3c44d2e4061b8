package report

import (
	"fmt"
	"strings"
	"time"
)

// flow draws what was offered, and the outcomes, in units a second.
func flow(lay layout, r Run, l Limit) (chart markup, merged int) {
	d := drawing{plot: plot{layout: lay, top: nameLane + 2, height: 170, length: r.Length}}
	slots, merged := d.slots(l.Slots)
	for _, s := range slots {
		d.max = max(d.max, float64(max(total(s.Offered...), total(s.outcomes()...)))*s.rate())
	}
	pace, paced := l.pace()
	paced = paced && (d.max == 0 || pace < 3*d.max)
	if paced {
		d.max = max(d.max, pace)
	}
	d.max *= 1.08
	d.shade(r.Bands)
	d.amounts(d.max, 5, false)
	marginal := d.outcomes(r, slots)
	if paced {
		d.line("pace", d.left, d.y(pace), d.end(), d.y(pace))
		marginal = append(marginal, label{y: d.y(pace), text: "limit " + short(pace) + "/s",
			class: "limitname"})
	}
	if lay.tips {
		for _, s := range slots {
			x := d.x(s.At)
			d.tip(x, d.x(s.At+s.Length)-x, s.words(r))
		}
	}
	d.times()
	d.labels(marginal)
	return d.svg("Units a second over time: offered, and admitted by region. The table below has the sums."), merged
}

// pace returns the limit in units a second, and whether it bounds each slot: that of windows of a
// second does, whose slots are counted by the window that decisions name. Over other windows more
// may well be admitted in one second than in another, which the chart of windows shows.
func (l Limit) pace() (perSecond float64, known bool) {
	return float64(l.Units), l.bySecond() && l.Units > 0
}

// bySecond reports whether the limit counts in fixed windows of a second.
func (l Limit) bySecond() bool { return l.Algorithm == "fixed_window" && l.Window == time.Second }

// slots leaves out what is outside the run. If there are more slots than columns fit, it merges so
// many neighbours into one.
func (p plot) slots(all []Slot) (list []Slot, merged int) {
	room := max(1, int(p.inner()/narrowest))
	merged = max(1, (len(all)+room-1)/room)
	for i, s := range all {
		if s.Length <= 0 || s.At > p.length || s.At+s.Length < 0 {
			continue
		}
		if n := len(list); n > 0 && i%merged != 0 {
			list[n-1] = list[n-1].plus(s)
			continue
		}
		list = append(list, s)
	}
	return list, merged
}

// plus merges s with the later slot o.
func (s Slot) plus(o Slot) Slot {
	return Slot{
		At: s.At, Length: max(s.Length, o.At+o.Length-s.At),
		Offered: sums(s.Offered, o.Offered), Admitted: sums(s.Admitted, o.Admitted),
		Denied: sums(s.Denied, o.Denied), Unknown: sums(s.Unknown, o.Unknown),
	}
}

// sums adds two lists per region.
func sums(a, b []int64) []int64 {
	list := make([]int64, max(len(a), len(b)))
	for i := range list {
		list[i] = total(at(a, i), at(b, i))
	}
	return list
}

// rate returns the factor from the slot's amounts to amounts a second.
func (s Slot) rate() float64 { return 1 / s.Length.Seconds() }

// outcomes returns what was offered and not denied: admitted by region, then unknown by region.
func (s Slot) outcomes() []int64 { return append(sums(s.Admitted, nil), s.Unknown...) }

// outcomes draws the stack of each slot and the line of what was offered.
func (d *drawing) outcomes(r Run, slots []Slot) []label {
	if len(slots) == 0 {
		return nil
	}
	parts := make([]strings.Builder, len(r.Regions))
	var unknown, offered strings.Builder
	for i, s := range slots {
		x, rate := d.x(s.At), s.rate()
		w := d.x(s.At+s.Length) - x
		below := 0.0
		for region := range parts {
			n := float64(at(s.Admitted, region)) * rate
			parts[region].WriteString(d.part(x, w, below, below+n))
			below += n
		}
		n := float64(total(s.Unknown...)) * rate
		unknown.WriteString(d.part(x, w, below, below+n))
		pen := "L"
		if i == 0 {
			pen = "M"
		}
		fmt.Fprintf(&offered, "%s%s %sh%s", pen, px(x), px(d.y(float64(total(s.Offered...))*rate)),
			px(w))
	}
	for i := range parts {
		d.path(fill(i), parts[i].String())
	}
	d.path("unknown", unknown.String())
	d.path("offered", offered.String())
	last := slots[len(slots)-1]
	list := d.regionLabels(r, last.Admitted, last.rate())
	return append(list, label{y: d.y(float64(total(last.Offered...)) * last.rate()),
		text: "offered", class: "name"})
}

// words describes the content of a slot.
func (s Slot) words(r Run) string {
	lines := []string{between(s.At, s.Length), "offered " + count(total(s.Offered...)),
		"admitted " + count(total(s.Admitted...)), "denied " + count(total(s.Denied...))}
	if n := total(s.Unknown...); n > 0 {
		lines = append(lines, "no answer: "+count(n))
	}
	for i, region := range r.Regions {
		lines = append(lines, fmt.Sprintf("%s: %s of %s", regionName(region),
			count(at(s.Admitted, i)), count(at(s.Offered, i))))
	}
	return strings.Join(lines, "\n")
}
