package algorithms

import (
	"maps"
	"slices"
)

// Clone returns a copy that shares nothing with the twin.
func (w *Twin) Clone() *Twin {
	c := *w
	c.floors, c.notes, c.answered = maps.Clone(w.floors), maps.Clone(w.notes),
		maps.Clone(w.answered)
	c.buckets = cloneMap(w.buckets, (*bucket).clone)
	c.decided = cloneMap(w.decided, func(r remembered) remembered {
		r.Decided = r.Decided.clone()
		return r
	})
	c.settled = cloneMap(w.settled, func(g Settled) Settled {
		g.Charges = slices.Clone(g.Charges)
		return g
	})
	return &c
}

func (b *bucket) clone() *bucket {
	c := *b
	c.rows = cloneMap(b.rows, maps.Clone[map[string]Row])
	c.unknown, c.booked, c.sums = maps.Clone(b.unknown), maps.Clone(b.booked), maps.Clone(b.sums)
	c.entries = slices.Clone(b.entries)
	return &c
}

func (d Decided) clone() Decided {
	d.Buckets, d.Answers = slices.Clone(d.Buckets), slices.Clone(d.Answers)
	for i := range d.Answers {
		d.Answers[i].Verdicts = slices.Clone(d.Answers[i].Verdicts)
	}
	return d
}

// cloneMap copies a map whose values are copied by clone.
func cloneMap[K comparable, V any](m map[K]V, clone func(V) V) map[K]V {
	c := maps.Clone(m)
	for k, v := range c {
		c[k] = clone(v)
	}
	return c
}
