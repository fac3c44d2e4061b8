package algorithms

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quotad/quotad/quantity"
)

// Twin is a region's store in Go: it answers every call as the scripts do. Tests compare the Lua
// with it, and the protocol's tests and simulations run on it. Not safe for concurrent use.
type Twin struct {
	Generation uint64 // 0: no token
	Region     string
	Epoch      string
	layout     int64
	mark       quantity.StoreTime
	calls      int64
	lostAt     quantity.StoreTime
	floors     map[string]uint64
	buckets    map[string]*bucket
	secret     string
	replid     string
	since      uint64
	begun      quantity.StoreTime
	notes      map[string]string
	older      bool // a node has found this to be an older copy of the store
	// by node: the latest store time that it was answered with
	answered map[string]quantity.StoreTime
	decided  map[string]remembered // by Once
	together bool                  // the calls of AtOnce are under way
	moved    bool                  // one of these has moved the mark
	settled  map[string]Settled    // by receipt
}

// Open answers the open script at store time t (us).
func (w *Twin) Open(t quantity.StoreTime, c Open) Opened {
	if w.Generation == c.Expected && (w.Generation == 0 || w.Epoch == c.Epoch) && w.mark >= c.Mark &&
		(c.Lost || !w.older) {
		if w.Generation == 0 {
			w.since = c.Generation
		}
		w.Generation, w.Region, w.Epoch, w.secret, w.replid = c.Generation, c.Region, c.Epoch,
			c.Secret, c.Replid
		latest := max(t, w.mark)
		if c.Lost {
			latest = max(latest, c.Seen)
			w.lostAt, w.since, w.older = latest, c.Generation, false
			clear(w.answered)
		}
		w.begun, w.mark, w.layout = latest, latest, c.Layout
		o := w.opened(c.Node)
		o.OK = true
		return o
	}
	return w.opened(c.Node)
}

func (w *Twin) opened(node string) Opened {
	return Opened{Generation: w.Generation, Region: w.Region, Epoch: w.Epoch, LostAt: w.lostAt,
		Secret: w.secret,
		Replid: w.replid, Since: w.since, Begun: w.begun, Mark: w.mark,
		Answered: max(w.answered[node], w.begun), Layout: w.layout, Older: w.older}
}

// Nodes answers the nodes script.
func (w *Twin) Nodes(c Nodes) (n NodeTimes) {
	if w.Generation == 0 || w.Generation != c.Generation {
		return NodeTimes{Status: StatusUnknown}
	}
	for node, at := range w.answered {
		if at > w.begun {
			put(&n.At, node, at)
		}
	}
	if len(n.At) > MaxNodes {
		return NodeTimes{Status: StatusCrowded}
	}
	return n
}

// keptNodes is how many nodes a token remembers at most.
const keptNodes = 4 * MaxNodes

// latest returns the nodes that were answered, the latest first.
func (w *Twin) latest() []string {
	return slices.SortedFunc(maps.Keys(w.answered), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.answered[b], w.answered[a]), cmp.Compare(a, b))
	})
}

// Note answers the note script.
func (w *Twin) Note(c Note) Noted {
	if c.Text != "" && w.Generation != c.Generation {
		return Noted{}
	}
	before := w.notes[c.Name]
	if c.Text != "" {
		put(&w.notes, c.Name, c.Text)
	}
	return Noted{OK: true, Before: before}
}

// Beat answers the beat script at store time t.
func (w *Twin) Beat(t quantity.StoreTime, c Beat) Beaten {
	head := w.enter(t, c.Fence)
	if head.Status == StatusClock {
		w.show(c.Node)
		head.Now = w.mark
	}
	b := Beaten{Head: head}
	if head.Status != StatusOK && head.Status != StatusClock {
		return b
	}
	latest := w.latest()
	for _, node := range latest[:min(len(latest), MaxNodes)] {
		put(&b.At, node, w.answered[node])
	}
	for _, node := range latest[min(len(latest), keptNodes):] {
		delete(w.answered, node)
	}
	return b
}

// Adopt answers the adopt script.
func (w *Twin) Adopt(c Adopt) Adopted {
	switch {
	case w.Generation == 0 || w.Generation != c.Generation:
		return Adopted{Mark: w.mark}
	case w.Epoch != c.Epoch && w.Epoch != c.Expected:
		return Adopted{Epoch: w.Epoch, Mark: w.mark}
	}
	w.Epoch = c.Epoch
	for _, name := range c.Forgotten {
		delete(w.notes, name)
	}
	return Adopted{OK: true, Epoch: w.Epoch, Mark: w.mark}
}

// Flush loses everything, as FLUSHALL does.
func (w *Twin) Flush() { *w = Twin{} }

// Decide answers the decide script about one item at store time t.
func (w *Twin) Decide(t quantity.StoreTime, c Decide) Decided {
	terms := make([]Terms, len(c.Buckets))
	for i, b := range c.Buckets {
		terms[i] = b.Terms
	}
	head := w.enter(t, c.Fence, terms...)
	if head.Status != StatusOK {
		return Decided{Head: head}
	}
	now := head.Now
	before, again := w.decided[c.Once]
	if again && before.repeats < Repeats {
		if c.Commit {
			before.repeats++
			w.decided[c.Once] = before
		}
		before.Repeated = true
		return before.under(c.Buckets)
	}
	open, at := make([]limiter, 0, len(c.Buckets)), make([]held, len(c.Buckets))
	// What was opened may have caught up under another entitlement, and is saved whatever comes of it.
	defer func() {
		for _, l := range open {
			if c.Commit {
				l.save()
			}
		}
	}()
	for i, b := range c.Buckets {
		h := w.find(b.Key, b.Terms, b.ExistsUntil, now)
		if h.lost() {
			head = h.lostHead()
			head.Lost = i
			return Decided{Head: head}
		}
		open, at[i] = append(open, h.limiter()), h
	}
	if c.Once != "" && (c.PerBucket || len(c.Costs) != 1) || len(c.Costs) > MaxCosts || c.chargesQueue() {
		return Decided{Head: Head{Status: StatusImplausible, Now: now}}
	}
	d := Decided{Head: head, TooOften: again}
	if slices.ContainsFunc(c.Costs,
		func(cost quantity.Units) bool { return cost < c.leastCost() || cost > MaxUnits }) ||
		slices.ContainsFunc(c.Parts, func(part quantity.PPM) bool { return part < 1 || part > Whole }) {
		return Decided{Head: Head{Status: StatusImplausible, Now: now}}
	}
	for n := range c.requests() {
		d.Answers = append(d.Answers, answer(open, &c, n, now.Sub(t)))
	}
	for i, l := range open {
		if c.Commit {
			l.save()
		}
		s := at[i].show(l)
		if s.Reset > 0 {
			s.Reset += now.Sub(t)
		}
		d.Buckets = append(d.Buckets, s)
	}
	if c.Once != "" && !again && c.Commit && (d.Answers[0].Admitted || c.charges()) {
		put(&w.decided, c.Once, remembered{Decided: d})
	}
	return d
}

// remembered is the answer given under a Once.
type remembered struct {
	Decided
	repeats int64 // how often it was given again
}

// under returns the answer with the entitlements of the terms that are asked under now.
func (r remembered) under(targets []LimitTarget) Decided {
	r.Buckets = slices.Clone(r.Buckets)
	for i := range r.Buckets {
		r.Buckets[i].Entitlement = targets[i].Terms.Entitlement
	}
	return r.Decided
}

// answer decides one request on all buckets, and charges all or none. lag is how far the clock is
// behind the mark, in microseconds. Retry and Delay count from the clock, so answer adds the lag to
// both.
func answer(open []limiter, c *Decide, request int, lag int64) Answer {
	a := Answer{Admitted: true, Verdicts: make([]Verdict, len(open))}
	alternatives, full := 0, 0
	for i, l := range open {
		target := &c.Buckets[i]
		if target.Alternative {
			alternatives++
		}
		if cost := c.Cost(request, i); !(target.Always && cost > 0) && !l.fits(max(cost, 1), c.Part(request, i)) {
			a.Verdicts[i].Retry = l.retry(max(cost, 1), c.Part(request, i))
			a.Admitted = a.Admitted && (target.Shadow || target.Alternative)
			if target.Alternative {
				full++
			}
		}
	}
	if alternatives > 0 && full == alternatives {
		a.Admitted = false
	}
	for i, l := range open {
		v, cost := &a.Verdicts[i], c.Cost(request, i)
		switch {
		case cost == 0:
		case c.Buckets[i].Always:
			v.Owed = max(cost-max(l.state().Free, 0), 0)
			if l.charge(cost, c.Buckets[i].MostOwed); v.Owed > 0 {
				v.Retry = l.retry(1, Whole)
			}
		case a.Admitted && v.Retry == 0:
			v.Delay = l.take(cost)
		}
		v.Remaining = l.state().Free
		if v.Retry > 0 {
			v.Retry += lag
		}
		if v.Delay > 0 {
			v.Delay += lag
		}
	}
	return a
}

// enter checks the fence, raises the high-water mark of time, and returns the mark as Now. It also
// checks that the call names the periods that the terms need at that time.
func (w *Twin) enter(t quantity.StoreTime, g Fence, terms ...Terms) Head {
	known := w.Generation != 0 && w.Generation == g.Generation
	w.older = w.older || known && max(w.answered[g.Node], w.begun) < g.Seen
	switch {
	case !known || w.Epoch != g.Epoch || w.older:
		return Head{Status: StatusUnknown}
	case t.Sub(g.Clock) > MaxClockStep || g.Clock.Sub(t) > MaxClockStep:
		return Head{Status: StatusClock}
	}
	w.calls++
	w.move(t)
	w.show(g.Node)
	w.Expire(w.mark)
	for _, of := range terms {
		if !g.names(of, w.mark) {
			return Head{Status: StatusCalendar, Now: w.mark}
		}
	}
	return Head{Now: w.mark}
}

// move raises the mark to time t. If the clock is behind the mark, it raises the mark by 1 us. So
// each answer is later than the one before, and an older copy of the store is known by that.
func (w *Twin) move(t quantity.StoreTime) {
	switch {
	case t >= w.mark:
		w.mark = t
	case !w.moved:
		w.mark++
	}
	w.moved = w.together
}

// AtOnce runs calls as one script does: only the first moves the store's time.
func (w *Twin) AtOnce(calls func()) {
	w.together, w.moved = true, false
	defer func() { w.together, w.moved = false, false }()
	calls()
}

// show notes that a node is answered with the mark.
func (w *Twin) show(node string) {
	put(&w.answered, node, max(w.answered[node], w.mark))
}

// put puts a value into a map, and makes the map if there is none.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// Expire drops the buckets that Redis has dropped by time t of its own clock: those whose last
// useful moment is more than KeySlack ago. Redis does so even if scripts reject its clock.
func (w *Twin) Expire(t quantity.StoreTime) {
	for key, b := range w.buckets {
		if b.stored && b.expires+KeySlack < t {
			delete(w.buckets, key)
		}
	}
}

// Holds reports whether there is a bucket under a key.
func (w *Twin) Holds(key string) bool { return w.buckets[key] != nil }

// Buckets returns the keys of all buckets, in no order.
func (w *Twin) Buckets() []string { return slices.Collect(maps.Keys(w.buckets)) }

// bucket returns the hash under a key, an empty one if there is none.
func (w *Twin) bucket(key string) *bucket {
	b := w.buckets[key]
	if b == nil {
		b = &bucket{rows: map[quantity.Cell]map[string]Row{}}
		put(&w.buckets, key, b)
	}
	return b
}

// hold returns a bucket at time now, under its terms.
func (w *Twin) hold(key string, t Terms, now quantity.StoreTime) held {
	return w.bucket(key).hold(t, now, w.lostAt, w.calls)
}

// find is hold for a caller that knows until which store time the bucket exists. A bucket that is
// missing before that time was deleted. find marks it as lost, like every bucket of a store that
// lost its data.
func (w *Twin) find(key string, t Terms, known, now quantity.StoreTime) held {
	h := w.hold(key, t, now)
	if h.stored || known <= now {
		return h
	}
	h.stored, h.vanished = true, now
	h.keep()
	h.bucket.kept = 0 // of a window, the caller knows better than this call until when it exists
	return w.hold(key, t, now)
}

// Delete deletes a bucket, as DEL does.
func (w *Twin) Delete(key string) { delete(w.buckets, key) }
