package sim

import (
	"slices"
	"time"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/store"
)

// serve changes a plan whose stores take time so that in half of the plans each consists of several
// servers, as a Redis Cluster does, of which some do not answer for a while. It has a random stream of
// its own. With the Lua it changes nothing, because the embedded Redis is not divided.
func serve(p *Plan) {
	random := p.random(forServers, 0)
	if p.Lua || random.IntN(2) == 0 {
		return
	}
	if p.Shards == 0 {
		p.Shards = 2 + random.IntN(3)
	}
	for i := range p.Regions {
		r := &p.Regions[i]
		for range 1 + random.IntN(p.Shards-1) {
			r.Servers = append(r.Servers, ServerPlan{ways[random.IntN(len(ways))], times[random.IntN(len(times))]})
		}
		for range random.IntN(3) {
			a := Act{Do: Silence, Region: i, Peer: -1, Node: random.IntN(len(r.Servers)),
				For: 1 + random.Int64N(3*allocator.Second)}
			a.At = random.Int64N(max(p.Heal-a.For, 1))
			p.Acts = append(p.Acts, a)
		}
	}
}

// servers returns how the servers of the region's store behave now.
func (r *region) servers() (all []lab.Server) {
	plan := r.w.plan.Regions[r.index].Servers
	if len(plan) == 0 {
		plan = []ServerPlan{{}}
	}
	for i, s := range plan {
		all = append(all, lab.Server{Far: span(s.Way), Each: span(s.Each + r.each), Silent: r.silent[i] > 0})
	}
	return all
}

// serverOf returns which server of the region's store holds a bucket.
func (r *region) serverOf(b *bucket) int {
	return max(slices.Index(r.w.shards, store.ShardOf(r.w.keyOf(b))), 0) % len(r.silent)
}

// reached reports whether calls reach the server that holds a bucket.
func (r *region) reached(b *bucket) bool { return r.down == 0 && r.silent[r.serverOf(b)] == 0 }

// troubles records until when an act may concern the servers of the region's store.
func (r *region) troubles(a Act) {
	for i := range r.troubled {
		if a.Do != Silence || i == a.Node%len(r.silent) {
			r.troubled[i] = max(r.troubled[i], r.w.now+a.For)
		}
	}
}

// serverSet is some of the servers of a region's store: the bit 1<<i says whether the i-th is one.
type serverSet uint64

// calm returns since when nothing went wrong with some servers of the region's store, and no flood asked
// for what they hold, µs.
func (r *region) calm(of serverSet) (since int64) {
	for i, at := range r.troubled {
		if of&(1<<i) != 0 {
			since = max(since, at)
		}
	}
	return since
}

// trips measures for how long round trips to one server are under way.
type trips struct {
	now        int   // under way
	since, sum int64 // since when some are, and for how long some were before, µs
}

// took returns for how long some were under way so far, µs.
func (t *trips) took(now int64) int64 {
	if t.now > 0 {
		return t.sum + now - t.since
	}
	return t.sum
}

// waits lets time pass for a round trip to servers of the store that a request waits for.
func (n *node) waits(to []int, d time.Duration) {
	if n.live == nil {
		return
	}
	for _, i := range to {
		n.trips[i] = trips{n.trips[i].now + 1, n.w.now, n.trips[i].took(n.w.now)}
	}
	n.live.Waits(d)
	for _, i := range to {
		n.trips[i] = trips{n.trips[i].now - 1, n.w.now, n.trips[i].took(n.w.now)}
	}
}

// carried returns for how long round trips to each server of the store were under way so far, µs.
func (n *node) carried() (all []int64) {
	for i := range n.trips {
		all = append(all, n.trips[i].took(n.w.now))
	}
	return all
}

// asksServers notes which servers requests are for that the node is asked to decide in one call. It
// answers them together.
func (n *node) asksServers(all []*request) {
	if !n.takesTime() {
		return
	}
	asks, before := serverSet(0), n.carried()
	for _, rq := range all {
		for _, b := range rq.under {
			at := n.r.serverOf(b)
			asks |= 1 << at
			if rq.flood() {
				n.r.troubled[at] = max(n.r.troubled[at], n.w.now)
			}
		}
	}
	for _, rq := range all {
		rq.asks, rq.before = asks, before
	}
}

// checkCarried checks that a request has waited for its store no longer than the node had round trips under
// way to the servers that the request is for. So it never waits for what another has to do, but to learn
// which documents are in force.
func (n *node) checkCarried(rq *request) {
	if rq.pauses != n.pauses || n.w.now < n.paused || rq.asked < n.r.learned() {
		return
	}
	took := n.w.now - rq.asked
	for i, at := range n.carried() {
		if rq.asks&(1<<i) != 0 {
			took -= at - rq.before[i]
		}
	}
	if took > 0 {
		n.w.breaks("lanes", "%s: a request waits for %v while no round trip is under way to its servers",
			n.name, span(took))
	}
}

// learned returns until when nodes of the region may learn which documents are in force, µs.
func (r *region) learned() int64 { return r.changed + Calms[documentChanged].Within.Microseconds() }

// checkReached checks that a request is decided with the store whose servers answer, whatever the others
// do. It is not so of what the store has lost, since nodes open a store as a whole, nor while its nodes
// learn which documents are in force.
func (n *node) checkReached(rq *request, d admit.Decision) {
	if !n.takesTime() || !withoutStore(d) || n.r.wasFarAhead() ||
		slices.ContainsFunc(rq.buckets, func(b *bucket) bool { return b.closed[n.r.index].at > 0 }) {
		return
	}
	if calm := n.r.calm(rq.asks); n.w.now > max(calm+calmAfter, n.r.learned()) {
		n.w.breaks("lanes", "%s answers %s, and nothing has happened to the servers of the request for %v",
			n.name, d.Reason, span(n.w.now-calm))
	}
}
