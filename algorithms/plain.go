package algorithms

import (
	"fmt"

	"github.com/quotad/quotad/quantity"
)

// How the decide script answers a single item; see plain.lua.
const (
	statusPlain   Status = StatusLater + 1 + iota // plain, and known to be in the store
	statusUnseen                                  // plain, and not known to be there
	statusFurther                                 // its answer follows behind the single ones
)

// decidesPlainly says whether plain.lua decides on plain buckets of the kind.
func (k Kind) decidesPlainly() bool {
	return k == FixedWindow || k == SlidingWindowCounter || k == TokenBucket
}

// single says whether a Decide is a single item: one cost on one bucket that no other Decide of the
// call is about, to be charged and not to be remembered. at is where its buckets begin in Items.at.
func (c *Items) single(d *Decide, at int) bool {
	return c.commit && len(d.Buckets) == 1 && len(d.Costs) == 1 && d.Once == "" &&
		c.buckets[c.at[at]].items == 1
}

// arranged is the order in which the script is given the items and buckets of a call.
type arranged struct {
	singles []int // the single items, by their places in Each
	others  []int // the other items
	order   []int // the buckets, those of single items first, by their places in the call
	places  []int // of each bucket, by its place in the call, that in order
	starts  []int // where the buckets of each item begin in Items.at
}

func (c *Items) arrange() (a arranged) {
	memory := make([]int, 0, 3*len(c.Each)+2*len(c.buckets))
	part := func(n int) []int {
		memory = memory[:len(memory)+n]
		return memory[len(memory)-n : len(memory) : len(memory)]
	}
	a.singles, a.others, a.starts = part(len(c.Each))[:0], part(len(c.Each))[:0],
		part(len(c.Each))[:0]
	a.order, a.places = part(len(c.buckets))[:0], part(len(c.buckets))
	at := 0
	for i := range c.Each {
		d := &c.Each[i]
		a.starts = append(a.starts, at)
		if c.single(d, at) {
			a.places[c.at[at]] = len(a.order)
			a.singles, a.order = append(a.singles, i), append(a.order, c.at[at])
		} else {
			a.others = append(a.others, i)
		}
		at += len(d.Buckets)
	}
	for place := range c.buckets {
		if next := len(a.order); !a.isSingle(place) {
			a.places[place] = next
			a.order = append(a.order, place)
		}
	}
	return a
}

// isSingle says whether a bucket is that of a single item.
func (a *arranged) isSingle(place int) bool {
	at := a.places[place]
	return at < len(a.singles) && a.order[at] == place
}

// plain reads the rest of the answer to a single item about a plain bucket. The script answered at
// a time; its clock was behind that by lag, in microseconds.
func (r *reader) plain(status Status, now quantity.StoreTime, lag int64, c *Decide,
	room *room) Decided {
	d := Decided{Head: Head{Status: StatusOK, Now: now}}
	if status != statusPlain && status != statusUnseen {
		if r.err == nil {
			r.err = fmt.Errorf("script %s: value %d of the reply says that a single item is %v",
				r.script, r.at, status)
		}
		return d
	}
	target := &c.Buckets[0]
	one, two := quantity.Units(r.num()), r.num()
	var s State
	var v Verdict
	switch target.Terms.Kind {
	case FixedWindow:
		s = plainWindow(target.Terms, d.Now, one)
		if v.Retry = two; two > 0 {
			v.Retry += lag
		}
	case SlidingWindowCounter:
		s = plainCounter(target.Terms, d.Now, one, quantity.Units(two))
	default:
		s = plainTokens(target.Terms, d.Now, one, two)
	}
	if s.Reset > 0 {
		s.Reset += lag
	}
	if status == statusPlain {
		s.ExistsUntil = target.Terms.Weighs(s.Cell).Add(target.Terms.fillTime())
	}
	v.Remaining = s.Free
	d.Answers, d.Buckets = cut(&room.answers, 1), cut(&room.states, 1)
	d.Buckets[0] = s
	d.Answers[0] = Answer{Admitted: v.Retry == 0 || target.Shadow, Verdicts: cut(&room.verdicts, 1)}
	d.Answers[0].Verdicts[0] = v
	return d
}

// plainState is what the state of all plain buckets has in common.
func plainState(t Terms, now quantity.StoreTime, used quantity.Units) State {
	return State{Cell: CellAt(now, t.Cell), Entitlement: t.Entitlement, Share: t.Entitlement,
		NextShare: t.Entitlement, Used: used}
}

// plainWindow returns the state of a plain fixed_window.
func plainWindow(t Terms, now quantity.StoreTime, used quantity.Units) State {
	s := plainState(t, now, used)
	s.Free = max(t.Entitlement-used, 0)
	if used > 0 {
		s.Reset = (s.Cell + 1).OpensAt(t.Cell).Sub(now)
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
