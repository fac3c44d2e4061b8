package algorithms

import (
	"fmt"

	"github.com/quotad/quotad/quantity"
)

// How the decide script answers a simple item; see lean.lua.
const (
	statusPlain   Status = StatusCalendar + 1 + iota // plain, and known to be in the store
	statusUnseen                                     // plain, and not known to be there
	statusFurther                                    // its answer follows behind the simple ones
)

// decidesPlainly reports whether lean.lua decides on plain buckets of the kind.
func (k Kind) decidesPlainly() bool {
	return k == FixedWindow || k == SlidingWindowCounter || k == TokenBucket
}

// simple reports whether a Decide is a simple item: one cost, or the same cost several times on one
// bucket, on buckets that no other Decide of the call is about, all of kinds that lean.lua decides,
// to be charged and not to be remembered; of one bucket all of one part. at is where its buckets
// begin in Items.at. Of several limits each denies by itself.
func (c *Items) simple(d *Decide, at int) bool {
	if !c.commit || len(d.Buckets) == 0 || !d.simple() {
		return false
	}
	for i := range d.Buckets {
		if c.buckets[c.at[at+i]].items > 1 {
			return false
		}
	}
	return true
}

// simple reports whether a Decide may be a simple item.
func (c *Decide) simple() bool {
	if c.PerBucket || c.Parts != nil && (len(c.Buckets) > 1 || !c.onePart()) || c.Once != "" || len(c.Costs) != 1 && !c.repeatsOneCost() {
		return false
	}
	for i := range c.Buckets {
		b := &c.Buckets[i]
		if !b.Terms.Kind.decidesPlainly() || !b.alone() && len(c.Buckets) > 1 {
			return false
		}
	}
	return true
}

// onePart reports whether all requests have the same part, less than the whole: then it is told
// once.
func (c *Decide) onePart() bool {
	for _, part := range c.Parts {
		if part != c.Parts[0] || part >= Whole {
			return false
		}
	}
	return true
}

// repeatsOneCost reports whether a Decide is several requests of the same cost on one bucket.
func (c *Decide) repeatsOneCost() bool {
	if len(c.Buckets) != 1 || len(c.Costs) == 0 || len(c.Costs) > MaxCosts {
		return false
	}
	for _, cost := range c.Costs[1:] {
		if cost != c.Costs[0] {
			return false
		}
	}
	return true
}

// arranged is the order in which the script is given the items and buckets of a call.
type arranged struct {
	simple []int // the simple items, by their places in Each
	others []int // the other items
	order  []int // the buckets, those of simple items first, by their places in the call
	first  int   // how many buckets are those of simple items
	places []int // of each bucket, by its place in the call, that in order
	starts []int // where the buckets of each item begin in Items.at
	items  int   // how many there are
}

// arrange returns the order for the Decides that were added so far. Copies of Items share it.
func (c *Items) arrange() *arranged {
	if c.order == nil {
		return &arranged{}
	}
	if c.order.items != len(c.Each) {
		*c.order = c.arranged()
	}
	return c.order
}

func (c *Items) arranged() (a arranged) {
	a.items = len(c.Each)
	memory := make([]int, 0, 3*len(c.Each)+2*len(c.buckets))
	part := func(n int) []int {
		memory = memory[:len(memory)+n]
		return memory[len(memory)-n : len(memory) : len(memory)]
	}
	a.simple, a.others, a.starts = part(len(c.Each))[:0], part(len(c.Each))[:0],
		part(len(c.Each))[:0]
	a.order, a.places = part(len(c.buckets))[:0], part(len(c.buckets))
	at := 0
	for i := range c.Each {
		d := &c.Each[i]
		a.starts = append(a.starts, at)
		if c.simple(d, at) {
			a.simple = append(a.simple, i)
			for _, place := range c.at[at:][:len(d.Buckets)] {
				a.places[place] = len(a.order)
				a.order = append(a.order, place)
			}
		} else {
			a.others = append(a.others, i)
		}
		at += len(d.Buckets)
	}
	a.first = len(a.order)
	for place := range c.buckets {
		if next := len(a.order); !a.isSimple(place) {
			a.places[place] = next
			a.order = append(a.order, place)
		}
	}
	return a
}

// isSimple reports whether a bucket is of a simple item.
func (a *arranged) isSimple(place int) bool {
	at := a.places[place]
	return at < a.first && a.order[at] == place
}

// simple writes the arguments of the simple items.
func (a *args) simple(c *Items, how *arranged) {
	for n := 0; n < len(how.simple); {
		i := how.simple[n]
		cost, places := int64(c.Each[i].Costs[0]), c.at[how.starts[i]:][:len(c.Each[i].Buckets)]
		if len(places) == 1 {
			b, run := &c.buckets[places[0]], c.run(how, n)
			a.num(int64(run), int64(b.limit)+1, int64(b.existsUntil), cost)
			if d := &c.Each[i]; d.Parts == nil {
				a.num(int64(len(d.Costs)))
			} else {
				a.num(-int64(len(d.Costs)), int64(d.Parts[0]))
			}
			n += run
			continue
		}
		a.num(-int64(len(places)), cost)
		for _, place := range places {
			b := &c.buckets[place]
			a.num(int64(b.limit)+1, int64(b.existsUntil))
		}
		n++
	}
}

// run returns how many simple items from the n-th on, each on one bucket, differ in the bucket alone.
func (c *Items) run(how *arranged, n int) (items int) {
	first := how.simple[n]
	b := &c.buckets[c.at[how.starts[first]]]
	for _, i := range how.simple[n:] {
		d, its := &c.Each[i], &c.buckets[c.at[how.starts[i]]]
		if len(d.Buckets) > 1 || d.Costs[0] != c.Each[first].Costs[0] ||
			len(d.Costs) != len(c.Each[first].Costs) || d.Part(0, 0) != c.Each[first].Part(0, 0) || its.limit != b.limit ||
			its.existsUntil != b.existsUntil {
			break
		}
		items++
	}
	return items
}

// plain reads the answer to a simple item on plain buckets, of which the first number was read. The
// script answered at a time; its clock was behind that by lag, in microseconds.
func (r *reader) plain(status Status, now quantity.StoreTime, lag int64, c *Decide,
	room *room) Decided {
	d := Decided{Head: Head{Status: StatusOK, Now: now}, Answers: cut(&room.answers, len(c.Costs)),
		Buckets: cut(&room.states, len(c.Buckets))}
	verdicts := cut(&room.verdicts, len(c.Buckets))
	admitted := true
	for i := range c.Buckets {
		if i > 0 {
			status = Status(r.num())
		}
		if status != statusPlain && status != statusUnseen && r.err == nil {
			r.err = fmt.Errorf("script %s: value %d of the reply says that a simple item is %v",
				r.script, r.at, status)
		}
		target := &c.Buckets[i]
		d.Buckets[i], verdicts[i] = r.plainBucket(target.Terms, now, lag)
		if status == statusPlain {
			d.Buckets[i].ExistsUntil = target.Terms.Weighs(d.Buckets[i].Cell).
				Add(target.Terms.FillTime())
		}
		admitted = admitted && (verdicts[i].Retry == 0 || target.Shadow)
	}
	last := len(d.Answers) - 1
	d.Answers[last] = Answer{Admitted: admitted, Verdicts: verdicts}
	for i := range last { // all of them have the same cost and one bucket, and end alike
		before := cut(&room.verdicts, 1)
		before[0] = verdicts[0]
		if verdicts[0].Retry == 0 {
			before[0].Remaining += c.Costs[0] * quantity.Units(last-i)
		}
		d.Answers[i] = Answer{Admitted: admitted, Verdicts: before}
	}
	return d
}

// plainBucket reads what the script says of one plain bucket.
func (r *reader) plainBucket(t Terms, now quantity.StoreTime, lag int64) (s State, v Verdict) {
	one, two := quantity.Units(r.num()), r.num()
	switch t.Kind {
	case FixedWindow:
		s = plainWindow(t, now, one)
		if v.Retry = two; two > 0 {
			v.Retry += lag
		}
	case SlidingWindowCounter:
		s = plainCounter(t, now, one, quantity.Units(two))
	default:
		s = plainTokens(t, now, one, two)
	}
	if s.Reset > 0 {
		s.Reset += lag
	}
	v.Remaining = s.Free
	return s, v
}

// plainState is what the state of all plain buckets has in common.
func plainState(t Terms, now quantity.StoreTime, used quantity.Units) State {
	return State{Cell: t.CellAt(now), Entitlement: t.Entitlement, Share: t.Entitlement,
		NextShare: t.Entitlement, Used: used}
}

// plainWindow returns the state of a plain fixed_window.
func plainWindow(t Terms, now quantity.StoreTime, used quantity.Units) State {
	s := plainState(t, now, used)
	s.Free = max(t.Entitlement-used, 0)
	if used > 0 {
		s.Reset = t.Opens(s.Cell + 1).Sub(now)
	}
	return s
}

// plainCounter returns the state of a plain sliding_window_counter; before is what was used in the
// cell before.
func plainCounter(t Terms, now quantity.StoreTime, used, before quantity.Units) State {
	s := plainState(t, now, used)
	ticks := t.ticks()
	fading := before * quantity.Units(ticks-now.Sub(s.Cell.OpensAt(t.Cell))/t.Tick)
	s.Used, s.Fading = used+ceilDiv(fading, ticks), floorDiv(fading, ticks)
	s.Free = max(floorDiv(t.Entitlement*quantity.Units(ticks)-fading, ticks)-used, 0)
	switch ends := (s.Cell + 1).OpensAt(t.Cell).Sub(now); {
	case used > 0:
		s.Reset = ends + t.Cell
	case before > 0:
		s.Reset = ends
	}
	return s
}

// plainTokens returns the state of a plain token_bucket; the level is that of a tick.
func plainTokens(t Terms, now quantity.StoreTime, level quantity.Units, at int64) State {
	ticks := t.ticks()
	free, full := floorDiv(level, ticks), t.Burst*quantity.Units(ticks)
	s := plainState(t, now, t.Burst-free)
	s.Free = max(free, 0)
	if level < full {
		whole := at + ceilDiv(int64(full-level), int64(t.Entitlement))
		s.Reset = max(whole*t.Tick-int64(now), 0)
	}
	return s
}
