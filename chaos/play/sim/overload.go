package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/queue"
)

// overload changes a plan so that calls to the stores take time, and adds floods that come faster than
// the stores can decide. So requests queue while others are under way, and the nodes' admission
// and pace say which are decided. It has a random stream of its own, so that seeds keep their meaning
// without it. A flood comes from callers of its own, some of which do not wait long.
func overload(p *Plan) {
	random := p.random(forBusy, 0)
	for i := range p.Regions {
		r := &p.Regions[i]
		r.Servers = []ServerPlan{{Way: ways[random.IntN(len(ways))], Each: times[random.IntN(len(times))]}}
		for range random.IntN(4) {
			a := Act{Do: Flood, Region: i, Limit: random.IntN(3), Key: random.IntN(len(p.Keys)), Cost: 3,
				For: allocator.Second/4 + random.Int64N(allocator.Second)}
			// Half to four times what the store can decide in round trips of one request, if that is not
			// very many.
			a.Amount = min(500_000_000/r.Servers[0].Each*(1+random.Int64N(8)), 4_000_000)
			a.At = random.Int64N(max(p.Heal-a.For, 1))
			p.Acts = append(p.Acts, a)
		}
	}
	serve(p)
}

// What a message to a server may take, and a call there, µs.
var ways, times = []int64{50, 200, 1000, 4000}, []int64{20, 200, 1000}

// patience is how long the callers of a flood wait. 0: as callers do who say nothing.
var patience = []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 5 * time.Second}

// flood reports whether a request is one of a flood.
func (rq *request) flood() bool { return rq.q.Caller != "" }

// flooded makes a request one of a flood: of a caller, who waits as long as it likes.
func (o *offering) flooded(rq *request) {
	caller := o.random.IntN(8)
	rq.q.Caller = fmt.Sprintf("flood %d", caller)
	rq.q.Wait = patience[caller%len(patience)]
	rq.q.Cost = min(quantity.Units(1+caller%3), o.act.Cost)
}

// key returns the key of one of the requests of a call. Those of a flood are of all keys, so that one call
// is for several servers.
func (o *offering) key(place int) int {
	if o.act.Do != Flood {
		return o.act.Key
	}
	return (o.act.Key + place) % len(o.w.plan.Keys)
}

// takesTime reports whether calls to the node's store take time, so that requests wait for others.
func (n *node) takesTime() bool { return len(n.w.plan.Regions[n.r.index].Servers) > 0 }

// underWay returns the most that a region's store may have charged to a bucket for requests that
// wait for its answer.
func (b *bucket) underWay(r *region) (sum quantity.Units) {
	for _, n := range r.nodes {
		for rq := range n.deciding {
			if slices.Contains(rq.under, b) {
				sum += rq.q.Cost
			}
		}
	}
	return sum
}

// lostSince reports whether the store may have lost something since it decided a request.
func (n *node) lostSince(rq *request) bool { return n.takesTime() && n.r.lost >= rq.asked }

// begins notes that a node is asked to decide a request.
func (n *node) begins(rq *request) {
	if !n.takesTime() {
		return
	}
	rq.asked, rq.pauses = n.w.now, n.pauses
	rq.shown, rq.told = maps.Clone(n.r.shown), maps.Clone(n.told)
	rq.under = nil
	for _, spec := range n.live.Buckets(rq.q) {
		rq.under = append(rq.under, n.w.bucket(spec.ID))
	}
	n.asksServers([]*request{rq})
	n.deciding[rq] = struct{}{}
}

// said notes that a node has said something to a request: within the time that the request waits,
// unless its machine stood still.
func (n *node) said(rq *request) {
	if _, under := n.deciding[rq]; !under {
		return
	}
	delete(n.deciding, rq)
	n.checkAnswered(rq)
	n.checkCarried(rq)
}

// calmAfter is how long after the last fault and flood no request is refused any more, µs.
const calmAfter = 5 * allocator.Second

// refuses notes that a node has no time for a request. It may have none for what is on other servers
// than those that are flooded.
func (n *node) refuses(rq *request) {
	n.w.counts.Refused++
	if calm := min(n.r.calm(rq.asks), n.w.plan.Heal); n.w.now > calm+calmAfter {
		n.w.breaks("liveness", "%s refuses requests %v after the last flood of their servers", n.name, span(n.w.now-calm))
	}
}

// checkAnswered checks that a request was answered within the time that it waits, if the node ran all
// the while. What a part of a request that spans shards was charged is given back before the answer,
// perhaps of both attempts of one that was repeated too often. Of requests in one call those that are
// asked about again are so one after the other.
func (n *node) checkAnswered(rq *request) {
	wait := max(cmp.Or(rq.q.Wait, admit.DefaultWait), n.way.Deadline()) + queue.AnswerBefore
	if n.w.plan.Together > 1 { // it may be in one call with any other
		wait = max(wait, slices.Max(patience))
	}
	if trips := max(4*n.w.plan.Shards, int(n.w.plan.Together)); n.w.plan.Together > 1 || n.w.spans(rq.under) {
		wait += time.Duration(trips) * (n.way.Deadline() + queue.AnswerBefore)
	}
	if took := span(n.w.now - rq.asked); rq.pauses == n.pauses && n.w.now >= n.paused && took > wait {
		n.w.breaks("answers", "%s: a request is not answered within %v, but %v", n.name, wait, took)
	}
}

// allAnswered checks that no request waits too long in the end.
func (w *world) allAnswered() {
	for _, r := range w.regions {
		for _, n := range r.nodes {
			for rq := range n.deciding {
				n.checkAnswered(rq)
				n.checkCarried(rq)
			}
		}
	}
}
