package oracle

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// timeline is the ceiling of the kinds that have a meter: all admissions of one
// bucket, played through the meter when somebody asks.
//
// An unknown outcome may have been admitted at any time of an interval. It is
// counted in full from the beginning of the interval, and grows old only from
// its end. So at each instant it weighs what it would if it had been admitted at
// the latest time of its interval that is not after the instant, and no other
// time weighs more: the later an admission the more of it is left, in all of
// these kinds. As every unknown can have had its worst time at once, a level is
// found exactly if some choice of times and outcomes leads to it: nothing is
// missed and nothing is made up. Two levels of different instants may need
// different choices.
type timeline struct {
	cellOf   func(at int64) int64
	newMeter func() meter
	cells    map[int64]struct{} // those that an answer lies in
	spans    []span
	merged   int // length of spans when they were last merged
}

// span is units admitted at one time, or of unknown outcome in one interval.
type span struct {
	from, to int64 // µs, inclusive; the same if the outcome is known
	region   string
	unknown  bool
	units    int64
}

func newTimeline(cellOf func(at int64) int64, newMeter func() meter) ceiling {
	return &timeline{cellOf: cellOf, newMeter: newMeter, cells: map[int64]struct{}{}}
}

// answered takes the decision at the store time that it names, be it true or
// not: naming a wrong one is another offence, found by the judge.
func (t *timeline) answered(a Answer, admitted int64) {
	at := held(a.At)
	t.add(span{from: at, to: at, region: a.Region, units: admitted})
}

func (t *timeline) unknown(a Answer, from, to int64) {
	from = held(from)
	t.add(span{from: from, to: max(from, held(to)), region: a.Region, unknown: true, units: a.Cost})
}

// add keeps one span. What can be merged is merged whenever the list has
// doubled, so that it costs no more than sorting once.
func (t *timeline) add(s span) {
	t.cells[t.cellOf(s.from)] = struct{}{}
	if s.units == 0 {
		return
	}
	t.spans = append(t.spans, s)
	if len(t.spans) >= 2*t.merged+1024 {
		t.merge()
	}
}

// merge sorts the spans by their beginning and adds up those that differ in
// their units alone.
func (t *timeline) merge() {
	slices.SortFunc(t.spans, compareSpans)
	merged := t.spans[:0]
	for _, s := range t.spans {
		if n := len(merged); n > 0 && compareSpans(merged[n-1], s) == 0 {
			merged[n-1].units = add(merged[n-1].units, s.units)
			continue
		}
		merged = append(merged, s)
	}
	t.spans, t.merged = merged, len(merged)
}

// compareSpans is zero for spans that can be merged.
func compareSpans(a, b span) int {
	if c := cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), strings.Compare(a.region, b.region)); c != 0 || a.unknown == b.unknown {
		return c
	}
	if a.unknown {
		return 1
	}
	return -1
}

// tallies plays the history twice, with the unknown outcomes and without, and
// returns the highest level of each cell in which something was answered.
func (t *timeline) tallies() []tally {
	t.merge()
	found := make(map[int64]*tally, len(t.cells))
	for cell := range t.cells {
		found[cell] = &tally{cell: cell}
	}
	play(t.newMeter(), t.spans, func(at, since, level int64) {
		if c := found[t.cellOf(at)]; level > c.all {
			c.all, c.at, c.since = level, at, since
		}
	})
	known := slices.DeleteFunc(slices.Clone(t.spans), func(s span) bool { return s.unknown })
	play(t.newMeter(), known, func(at, _, level int64) {
		c := found[t.cellOf(at)]
		c.known = max(c.known, level)
	})
	sorted := make([]tally, 0, len(found))
	for _, cell := range slices.Sorted(maps.Keys(found)) {
		sorted = append(sorted, *found[cell])
	}
	return sorted
}

// play shows the level after each instant at which a span begins: between them
// it only falls. The spans are in the order of their beginning; those that have
// begun and not ended are counted beside the meter, and enter it at their end.
func play(m meter, spans []span, show func(at, since, level int64)) {
	byEnd := slices.Clone(spans)
	slices.SortFunc(byEnd, func(a, b span) int { return cmp.Compare(a.to, b.to) })
	var open wide
	for i := 0; i < len(spans); {
		at := spans[i].from
		for ; byEnd[0].to < at; byEnd = byEnd[1:] {
			open = open.minus(product(byEnd[0].units, 1))
			m.advance(byEnd[0].to)
			m.admit(byEnd[0].units)
		}
		for ; i < len(spans) && spans[i].from == at; i++ {
			open = open.plus(product(spans[i].units, 1))
		}
		m.advance(at)
		show(at, m.since(), add(m.level(), open.over(1)))
	}
}

// counted looks through the whole history: it is asked of a few tallies only.
func (t *timeline) counted(worst tally) (regions map[string]int64, unknown int64) {
	regions = map[string]int64{}
	for _, s := range t.spans {
		if s.from > worst.at || s.to < worst.since {
			continue
		}
		regions[s.region] = add(regions[s.region], s.units)
		if s.unknown {
			unknown = add(unknown, s.units)
		}
	}
	return regions, unknown
}
