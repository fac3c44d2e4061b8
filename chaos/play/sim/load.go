package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// offering is an act of load in progress.
type offering struct {
	w       *world
	act     Act
	random  *rand.Rand
	until   int64
	sent    int
	classes *rand.Rand // of requests; nil: none was sent yet
	// largeCosts are which requests cost so much, and how much; nil: none was sent yet
	largeCosts *rand.Rand
}

// offer begins an act of load.
func (w *world) offer(a Act) {
	if a.Do == Proxy {
		w.proxies(a)
		return
	}
	o := &offering{w: w, act: a, random: w.plan.random(forActs, a.ID), until: w.now + a.For}
	w.counts.Deeds[a.Do]++
	switch a.Do {
	case Steady, Wave, Flood:
		o.next()
	case Burst:
		for range a.Amount {
			w.in(o.random.Int64N(a.For+1), o.send)
		}
	case Edge:
		o.edge()
	}
}

// next sends a request and schedules the next one. In the off phase of a wave it sends nothing and
// waits for the on phase.
func (o *offering) next() {
	w := o.w
	if w.now >= o.until {
		return
	}
	// Amount is in thousandths of a request a second.
	each := 1_000_000_000 / max(o.act.Amount, 1)
	if o.act.Do == Wave {
		period := w.wave(o.act)
		if phase := (w.now + int64(o.act.Region%2)*period) % (2 * period); phase >= period {
			w.in(2*period-phase, o.next)
			return
		}
	}
	o.send()
	w.in(each/2+o.random.Int64N(each)+1, o.next)
}

// wave returns the length of the on or off phase of a wave, µs: half to four times the region's
// longest round trip.
func (w *world) wave(a Act) int64 {
	trip := int64(1000)
	for _, oneWay := range w.plan.OneWay[a.Region] {
		trip = max(trip, 2*oneWay)
	}
	return trip * int64(1+a.ID%8) / 2
}

// edge sends bursts around the ends of cells.
func (o *offering) edge() {
	w, r := o.w, o.w.regions[o.act.Region]
	l := w.limits[o.act.Limit%len(w.limits)]
	cells := l.buckets[0].cells()
	left := cells.Opens(cells.At(r.clock()) + 1).Sub(r.clock())
	if w.now+left >= o.until {
		return
	}
	for i := range o.act.Amount {
		before := []int64{1, 1000, 20_000, 100_000, -1, -1000, -20_000, 0}[o.random.IntN(8)]
		w.in(max(left-before+i, 0), o.send)
	}
	w.in(left+cells.Length/2, o.edge)
}

// send makes one call, usually with one request.
func (o *offering) send() {
	w, r := o.w, o.w.regions[o.act.Region]
	var all []*request
	var to *node
	for i := range o.together() {
		if n, rq := o.request(r, o.key(i)); n != nil && o.begin(n, rq, o.key(i)) {
			to, all = n, append(all, rq)
		}
	}
	switch len(all) {
	case 0:
	case 1:
		w.ask(to, all[0])
	default:
		w.askTogether(to, all)
	}
}

// request returns a request of a key and the node to ask, or nil if no node of the region lives.
func (o *offering) request(r *region, key int) (*node, *request) {
	w := o.w
	l := w.limits[o.act.Limit%len(w.limits)]
	var alive []*node
	for _, n := range r.nodes {
		if n.live != nil {
			alive = append(alive, n)
		}
	}
	rq := &request{q: w.question(l.policy.Domain, key)}
	rq.q.Cost = o.cost()
	o.class(rq)
	if o.act.Do == Flood {
		o.flooded(rq)
	}
	chance := o.random.IntN(100)
	if len(alive) == 0 {
		return nil, nil
	}
	n := r.routed(key, alive[o.random.IntN(len(alive))])
	o.sent++
	switch {
	case chance < 5:
		rq.q.ID = fmt.Sprintf("%d.%d", o.act.ID, o.sent)
		again := *rq
		// A client that believes it heard no answer tries again.
		w.in(o.random.Int64N(2_000_000), func() {
			if n := r.routed(key, r.nodes[0]); n.live != nil {
				w.ask(n, &again)
			}
		})
	case chance < 25 && w.plan.Refunds:
		rq.q.Receipt, rq.refund = true, 1+o.random.Int64N(3_000_000)
		if rq.refund%2 == 0 { // some of it was used, or all of it
			rq.used = quantity.Units(rq.refund/2) % (rq.q.Cost + 1)
		}
	case chance == 99:
		rq.q.Cost = []quantity.Units{0, -1, algorithms.MaxUnits + 1, 1 << 62}[o.random.IntN(4)]
	}
	if chance < 99 && !rq.q.Receipt && rq.q.ID == "" {
		o.large(n, rq, l)
	}
	return n, rq
}

// cost returns a random cost from 1 to the act's Cost, usually a small one.
func (o *offering) cost() quantity.Units {
	cost := o.act.Cost
	for cost > 1 && o.random.IntN(3) > 0 {
		cost /= 2
	}
	return max(cost, 1)
}
