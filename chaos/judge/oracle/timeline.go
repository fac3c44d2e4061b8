package oracle

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// timeline is the ceiling of the kinds that have a meter. It keeps all admissions of one bucket,
// and plays them through the meter when tallies is called.
//
// An unknown outcome may have been admitted at any time of an interval. It is counted in full from
// the beginning of the interval, and ages only from the end of the interval. So at each instant it
// weighs as if it had been admitted at the latest time of its interval that is not after the
// instant. No other time weighs more, because in all of these kinds a later admission has more of
// it left. Every unknown outcome can have had its worst time at once. Therefore a level is found if
// and only if some choice of times and outcomes leads to it. Two levels at different instants may
// need different choices.
type timeline struct {
	cellOf   func(at int64) int64
	newMeter func() meter
	cells    map[int64]struct{} // cells in which an answer lies
	spans    []span
	merged   int // len(spans) after the last merge
}

// span is units admitted at one time, or units of unknown outcome in an interval.
type span struct {
	from, to int64 // µs, inclusive; equal if the outcome is known
	region   string
	unknown  bool
	units    int64
}

func newTimeline(cellOf func(at int64) int64, newMeter func() meter) ceiling {
	return &timeline{cellOf: cellOf, newMeter: newMeter, cells: map[int64]struct{}{}}
}

// answered uses the store time that the decision names, even a wrong one: naming a wrong time is
// another violation, which the judge finds.
func (t *timeline) answered(a Answer, admitted int64) {
	at := held(a.At)
	t.add(span{from: at, to: at, region: a.Region, units: admitted})
}

func (t *timeline) unknown(a Answer, from, to int64) {
	from = held(from)
	t.add(span{from: from, to: max(from, held(to)), region: a.Region, unknown: true, units: a.Cost})
}

// add adds one span. Whenever the list has doubled, spans are merged, so that all merging costs no
// more than sorting once.
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

// merge sorts the spans by their beginning and adds up those that differ only in their units.
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

// compareSpans orders spans. It returns 0 for spans that can be merged.
func compareSpans(a, b span) int {
	if c := cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to),
		strings.Compare(a.region, b.region)); c != 0 || a.unknown == b.unknown {
		return c
	}
	if a.unknown {
		return 1
	}
	return -1
}

// tallies plays the history twice, with and without the unknown outcomes, and returns the highest
// level of each cell in which an answer lies.
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

// play calls show with the level after each instant at which a span begins: in between, the level
// only falls. spans must be in the order of their beginning. Spans that have begun and not ended
// are added to the meter's level, and enter the meter at their end.
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

// counted scans the whole history, which is acceptable because it is called for a few tallies only.
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
