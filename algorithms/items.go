package algorithms

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/quantity"
)

// MaxItemsLoad bounds the load of the Decides in one call of the decide script. Redis serves nobody
// else meanwhile.
const MaxItemsLoad = 128

// Items is a call of the decide script: Decides in order, each decided for itself. The script opens
// a bucket once, however many Decides are about it, and writes each simple item at once (see lean.lua),
// the others when all are decided. If that is much work it answers the last of them with StatusLater.
// Add fills it. The zero value is empty.
type Items struct {
	Fence
	Each []Decide

	commit  bool
	load    int64
	limits  []limitOf
	buckets []bucketOf
	places  map[string]int // of the buckets, by key
	at      []int          // the places of each Decide's buckets, one after the other
	order   *arranged      // of a number of Decides; nil: it has none
}

// limitOf is a limit of the call: what its buckets have in common.
type limitOf struct {
	terms                       Terms
	shadow, alternative, always bool
	mostOwed                    quantity.Units
}

// How a limit takes part in a decision, as the script is told.
const (
	modeDenies int64 = iota
	modeShadow
	modeAlternative
	modeAlways
)

func (l limitOf) mode() int64 {
	switch {
	case l.always:
		return modeAlways
	case l.shadow:
		return modeShadow
	case l.alternative:
		return modeAlternative
	}
	return modeDenies
}

// bucketOf is a bucket of the call.
type bucketOf struct {
	key         string
	limit       int // its place in limits
	existsUntil quantity.StoreTime
	items       int // that are about it
}

// Add adds a Decide if it may be in this call, and reports whether it did. The first may. Another one
// may not if its epoch or generation differs, if it or those before only ask, if a bucket has other
// terms than before, or if the call has enough to do.
func (c *Items) Add(d Decide) bool {
	load := d.load()
	if len(c.Each) == 0 {
		c.Fence, c.commit, c.places = d.Fence, d.Commit, make(map[string]int, len(d.Buckets))
		c.order = &arranged{}
	} else if c.Fence != d.Fence || !c.commit || !d.Commit || c.load+load > MaxItemsLoad ||
		!c.agrees(d) {
		return false
	}
	for i := range d.Buckets {
		c.at = append(c.at, c.bucket(&d.Buckets[i]))
	}
	c.Each, c.load = append(c.Each, d), c.load+load
	return true
}

// load returns the load of the Decide in a call. Eight further costs count as much as a bucket. If
// it is a simple item on buckets that are not plain after all, the script finds out how much work
// it is.
func (c Decide) load() (sum int64) {
	if c.simple() {
		return int64(len(c.Buckets))
	}
	for _, b := range c.Buckets {
		sum += LoadOf(b.Terms.Kind)
	}
	return sum * int64(7+c.requests()) / 8
}

// agrees reports whether a Decide has the terms that the call has of the same buckets.
func (c *Items) agrees(d Decide) bool {
	for i := range d.Buckets {
		b := &d.Buckets[i]
		if place, known := c.places[b.Key]; known && c.limits[c.buckets[place].limit] != of(b) {
			return false
		}
	}
	return true
}

func of(b *LimitTarget) limitOf {
	return limitOf{b.Terms, b.Shadow, b.Alternative, b.Always, b.MostOwed}
}

// bucket returns the place of a bucket in the call, and adds it if the call does not have it. It
// exists as long as any of the Decides knows it to.
func (c *Items) bucket(b *LimitTarget) (place int) {
	if place, known := c.places[b.Key]; known {
		known := &c.buckets[place]
		known.existsUntil, known.items = max(known.existsUntil, b.ExistsUntil), known.items+1
		return place
	}
	limit := 0
	for limit < len(c.limits) && c.limits[limit] != of(b) {
		limit++
	}
	if limit == len(c.limits) {
		c.limits = append(c.limits, of(b))
	}
	place = len(c.buckets)
	c.places[b.Key] = place
	c.buckets = append(c.buckets, bucketOf{b.Key, limit, b.ExistsUntil, 1})
	return place
}

// Keys returns the script's KEYS after the token's: the buckets, and then each Once.
func (c Items) Keys() []string {
	keys := make([]string, 0, len(c.buckets)+len(c.Each))
	a := c.arrange()
	for _, place := range a.order {
		keys = append(keys, c.buckets[place].key)
	}
	for _, d := range c.Each {
		if d.Once != "" {
			keys = append(keys, d.Once)
		}
	}
	return keys
}

// Args returns the script's ARGV.
func (c Items) Args() []any {
	a := make(args, 0, 16+9*len(c.limits)+2*len(c.buckets)+5*len(c.Each))
	a.fence(c.Fence)
	a.num(flag(c.commit), RememberedFor, Repeats, int64(len(c.limits)))
	for _, l := range c.limits {
		a.terms(c.Fence, l.terms)
		a.num(l.mode(), int64(l.mostOwed))
	}
	how := c.arrange()
	a.num(int64(len(how.simple)))
	a.simple(&c, how)
	several := how.order[how.first:]
	a.num(int64(len(several)))
	for _, place := range several {
		b := &c.buckets[place]
		a.num(int64(b.limit)+1, int64(b.existsUntil))
	}
	for _, i := range how.others {
		d := &c.Each[i]
		buckets := int64(len(d.Buckets))
		if d.Parts != nil {
			buckets = -buckets
		}
		a.num(flag(d.Once != ""), buckets)
		for _, place := range c.at[how.starts[i]:][:len(d.Buckets)] {
			a.num(int64(how.places[place]) + 1)
		}
		if d.PerBucket {
			a.num(-1)
		} else {
			a.num(int64(len(d.Costs)))
		}
		for _, cost := range d.Costs {
			a.num(int64(cost))
		}
		for _, part := range d.Parts {
			a.num(int64(part))
		}
	}
	return a
}

// ItemsDecided answers Items. The Status of its Head is StatusOK unless the store let the script
// not in; its Now is the latest of the answers.
type ItemsDecided struct {
	Head
	Each []Decided // for each Decide
}

// Parse reads the reply to c.
func (c Items) Parse(reply any) (ItemsDecided, error) {
	r := read(DecideScript.Name, reply)
	all := ItemsDecided{Each: make([]Decided, len(c.Each))}
	if h, refused := r.refused(); refused {
		for i := range all.Each {
			all.Each[i].Head = h
			all.took(h)
		}
		return all, r.end()
	}
	now, lag := quantity.StoreTime(r.num()), r.num()
	room, how := c.room(), c.arrange()
	behind := make([]int, 0, len(c.Each))
	for _, i := range how.simple {
		status := Status(r.num())
		if status == statusFurther {
			behind = append(behind, i)
			continue
		}
		all.Each[i] = r.plain(status, now, lag, &c.Each[i], &room)
		all.took(all.Each[i].Head)
	}
	first := len(how.simple) == len(behind) // of all that is answered
	for _, i := range append(behind, how.others...) {
		if !first && !r.more() {
			all.Each[i].Status = StatusLater
			continue
		}
		all.Each[i] = r.decided(&c.Each[i], now, &room)
		all.took(all.Each[i].Head)
		first = false
	}
	return all, r.end()
}

// refused reads the reply to a call in which nothing was decided: the store let the script not in,
// or its time is in none of the periods that the call names.
func (r *reader) refused() (h Head, refused bool) {
	switch {
	case len(r.flat) == 1 && (r.flat[0] == int64(StatusUnknown) || r.flat[0] == int64(StatusClock)):
		return Head{Status: Status(r.num())}, true
	case len(r.flat) == 2 && r.flat[0] == int64(StatusCalendar):
		return Head{Status: Status(r.num()), Now: quantity.StoreTime(r.num())}, true
	}
	return h, false
}

// room is memory for the answers to a call, made at once.
type room struct {
	answers  []Answer
	verdicts []Verdict
	states   []State
}

func (c *Items) room() (r room) {
	answers, verdicts := 0, 0
	for i := range c.Each {
		d := &c.Each[i]
		answers += d.requests()
		verdicts += d.requests() * len(d.Buckets)
	}
	return room{make([]Answer, answers), make([]Verdict, verdicts), make([]State, len(c.at))}
}

// cut cuts n elements off a list.
func cut[E any](all *[]E, n int) []E {
	some := (*all)[:n:n]
	*all = (*all)[n:]
	return some
}

// decided reads the answer to a Decide, of a call at store time now, into some of the room.
func (r *reader) decided(c *Decide, now quantity.StoreTime, room *room) Decided {
	d := Decided{Head: Head{Status: Status(r.num())}}
	switch d.Status {
	case StatusLater:
		return d
	case StatusLost:
		d.Now, d.LostAt, d.Lost = quantity.StoreTime(r.num()), quantity.StoreTime(r.num()),
			int(r.num())-1
		return d
	case StatusUnreadable:
		d.Why = r.str()
		return d
	case StatusOK:
	case StatusImplausible: // its buckets are caught up all the same
		d.Now = now
		return d
	default:
		if r.err == nil {
			r.err = fmt.Errorf("script %s: value %d of the reply says that an item is %v", r.script,
				r.at, d.Status)
		}
		return d
	}
	d.Now = quantity.StoreTime(r.num())
	again := r.num()
	d.Repeated, d.TooOften = again == 1, again == 2
	d.Answers = cut(&room.answers, c.requests())
	for i := range d.Answers {
		d.Answers[i].Admitted = r.num() == 1
		d.Answers[i].Verdicts = cut(&room.verdicts, len(c.Buckets))
		for b := range d.Answers[i].Verdicts {
			v := &d.Answers[i].Verdicts[b]
			v.Remaining, v.Retry = quantity.Units(r.num()), r.num()
			if c.Buckets[b].Terms.Kind == LeakyBucket {
				v.Delay = r.num()
			} else {
				v.Owed = quantity.Units(r.num())
			}
		}
	}
	d.Buckets = cut(&room.states, len(c.Buckets))
	for i := range d.Buckets {
		d.Buckets[i] = r.state(c.Buckets[i].Terms)
	}
	return d
}

// With answers the call by deciding one Decide after the other, as the script does, for twins of a
// store. Each has the call's fence.
func (c Items) With(decide func(Decide) Decided) ItemsDecided {
	all := ItemsDecided{Each: make([]Decided, len(c.Each))}
	for i, d := range c.Each {
		d.Fence, d.Buckets = c.Fence, slices.Clone(d.Buckets)
		for n := range d.Buckets {
			b := &d.Buckets[n]
			b.ExistsUntil = c.buckets[c.places[b.Key]].existsUntil
		}
		all.Each[i] = decide(d)
		all.took(all.Each[i].Head)
	}
	return all
}

// took notes the head of an answer. What refused reads is about the whole call.
func (a *ItemsDecided) took(h Head) {
	if h.Status == StatusUnknown || h.Status == StatusClock || h.Status == StatusCalendar {
		a.Status = h.Status
	}
	a.Now = max(a.Now, h.Now)
}
