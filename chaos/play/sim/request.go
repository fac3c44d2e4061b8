package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/judge/oracle"
	stepped "github.com/quotad/quotad/chaos/lab/node"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/store"
)

// request is a request and its fate.
type request struct {
	q       admit.Request
	buckets []*bucket // of the limits that apply to it, once a node has matched it
	node    *node
	sent    int64
	refund  int64                // settle it so many µs later; 0: never
	used    quantity.Units       // by what it is settled, at most its cost
	done    func(admit.Decision) // called with the decision; may be nil
	old     bool                 // the decision rests on a store's answer from before the wait
	back    []quantity.Units     // of each bucket: what refunds that may have failed gave back

	asked  int64     // when a node was asked last, µs
	pauses int       // of the node, at that time
	under  []*bucket // that applied then
	asks   serverSet // that hold them, and what the other requests of its call are about
	before []int64   // of each server: node.carried
	// the latest times of the stores that anybody had been shown then, and that the node had been told
	shown, told map[store.Shard]quantity.StoreTime
}

// held is a waiting request.
type held struct {
	*request
	waiting *stepped.Waiting
	over    bool
}

func (w *world) question(domain string, key int) admit.Request {
	return admit.Request{Domain: domain, Descriptors: w.plan.descriptors(w.plan.Keys[key]), Cost: 1}
}

// ask has a node decide a request. If the node is dead, nothing happens.
func (w *world) ask(n *node, rq *request) {
	rq.node, rq.sent = n, w.now
	n.at(w.now, func() {
		n.begins(rq)
		n.live.Run(func() { n.answered(rq, n.live.Check(rq.q)) })
	})
}

// askTogether has a node decide several requests in one call.
func (w *world) askTogether(n *node, all []*request) {
	for _, rq := range all {
		rq.node, rq.sent = n, w.now
	}
	n.at(w.now, func() {
		questions := make([]admit.Request, len(all))
		for i, rq := range all {
			n.begins(rq)
			questions[i] = rq.q
		}
		n.asksServers(all)
		n.live.Run(func() {
			n.live.CheckTogether(questions, func(i int, said stepped.Said) {
				if n.live != nil { // it may die while carrying out the effects of the request before
					n.answered(all[i], said)
				}
			})
		})
	})
}

// answered handles a node's answer to a request: a decision, a wait, or an error.
func (n *node) answered(rq *request, said stepped.Said) {
	n.w.counts.Requests++
	n.said(rq)
	rq.buckets = nil
	for _, spec := range said.Buckets {
		rq.buckets = append(rq.buckets, n.w.bucket(spec.ID))
	}
	switch {
	case queue.IsOverload(said.Err) && n.takesTime():
		n.refuses(rq)
	case said.Err != nil:
		if rq.q.Cost >= 1 && rq.q.Cost <= algorithms.MaxUnits {
			n.w.breaks("answers", "%s: a request of %d units ends with %v", n.name, rq.q.Cost, said.Err)
		}
	case said.Waiting != nil:
		n.wait(rq, said.Waiting)
	default:
		n.decided(rq, said.Decision)
	}
	n.drain()
	if n.live != nil {
		n.observed()
	}
}

// wait keeps a request until its wait is over, at most for its patience. The store has denied it,
// unless the node remembered that.
func (n *node) wait(rq *request, wait *stepped.Waiting) {
	for _, b := range rq.buckets {
		if n.r.reached(b) && !n.refused() {
			n.mayUse(b)
		}
	}
	h := &held{request: rq, waiting: wait}
	n.waiting = append(n.waiting, h)
	n.in(wait.Patience.Microseconds()+1, func() { n.goOn(h, false, true) })
}

// goOn goes on with a waiting request, unless that was done already.
func (n *node) goOn(h *held, helps, timedOut bool) {
	if h.over {
		return
	}
	h.over = true
	n.waiting = slices.DeleteFunc(n.waiting, func(other *held) bool { return other == h })
	n.begins(h.request)
	n.live.Run(func() {
		said := n.live.Again(h.waiting, helps, timedOut)
		h.old = !said.Asked // the store's earlier answer still counts
		n.answered(h.request, said)
	})
}

// unanswered ends a request whose node has died. It had been charged nothing: only denied requests
// wait.
func (h *held) unanswered() { h.over = true }

// settle goes on with the requests for which the settled bucket ends the wait.
func (n *node) settle(one exchange.Settled) {
	if n.live == nil { // it died while carrying out an earlier effect
		return
	}
	n.live.Settle(one)
	for _, h := range slices.Clone(n.waiting) {
		if !slices.Contains(h.waiting.Buckets, one.Bucket) {
			continue
		}
		if helps, over := h.waiting.Over(); over {
			n.in(1, func() { n.goOn(h, helps, false) })
		}
	}
}

// decided checks a decision, passes it to the judges, and schedules its refund if it is to have
// one.
func (n *node) decided(rq *request, d admit.Decision) {
	if rq.q.Cost < 1 || rq.q.Cost > algorithms.MaxUnits {
		n.w.breaks("answers", "%s decides on a cost of %d: %+v", n.name, rq.q.Cost, d)
		return
	}
	n.w.counts.decided(d)
	n.w.digest.decided(n, n.w.now, rq, d)
	if rq.done != nil {
		rq.done(d)
	}
	n.checkLive(rq, d)
	n.checkReached(rq, d)
	if n.w.trace != nil {
		n.tellDecision(rq, d)
	}
	if n.repeated(rq, d) {
		return
	}
	for _, b := range rq.buckets {
		own, earlier := asLimit(d, b)
		if !rq.old && !earlier && d.At != 0 && !d.FromMemory && d.Limit == b.limit.policy.Name {
			if d.Reason != admit.Never || !n.w.spans(rq.buckets) { // else it may be the time of another shard
				n.checkTime(rq, b, d.At)
			}
			n.hears()
		}
		switch {
		case rq.old || d.FromMemory && !d.Allowed: // the store was not asked
		case d.FromMemory: // it may have been asked for more units to hold
			n.mayUse(b)
		case d.At != 0 && !n.lostSince(rq):
			n.uses(b)
		case n.r.reached(b) && !n.r.refuses(): // the reply may have been lost
			n.mayUse(b)
		}
		if !earlier && !rq.q.Question { // else nothing was charged
			n.judge(rq, b, own)
		}
	}
	if d.Allowed && d.Receipt != "" && rq.refund > 0 {
		n.in(rq.refund, func() { n.refund(rq, d) })
	}
}

// asLimit returns a decision at the time at which the limit of one bucket made it. Limits in different
// shards have times of their own. earlier says that an earlier attempt of the request was charged
// to the bucket at that time, and not this one. Of that the judge knows as little as of a request
// that is repeated as a whole: when it was sent.
func asLimit(d admit.Decision, b *bucket) (own admit.Decision, earlier bool) {
	for _, s := range d.Limits {
		if s.Limit == b.limit.policy.Name && s.At != 0 {
			d.At = s.At
			return d, s.Earlier
		}
	}
	return d, false
}

// judge passes a decision to the judge of one bucket.
func (n *node) judge(rq *request, b *bucket, d admit.Decision) {
	if b.limit.policy.Shadow {
		n.checkShadow(b, d)
		return
	}
	a := n.answerOf(rq, b, d)
	n.judgesClass(rq, b, &a, d)
	late := n.spendsLate(b, &a, d)
	if d.Allowed {
		n.noteAdmitted(b, a, d)
	}
	b.judge.Record(a)
	n.w.checkCeiling(b, quantity.Cell(a.Cell))
	if b.decidedIn(d) && !late {
		n.checkSplit(b, d)
	}
}

// decidedIn reports whether a decision was made by this bucket, in its store.
func (b *bucket) decidedIn(d admit.Decision) bool {
	return d.Limit == b.limit.policy.Name && d.At != 0
}

// answerOf returns a decision as the judge of a bucket hears of it.
func (n *node) answerOf(rq *request, b *bucket, d admit.Decision) oracle.Answer {
	at := d.At
	if at == 0 { // decided without the store, by the node's clock
		at = n.r.clock()
	}
	a := oracle.Answer{Bucket: n.w.plan.Keys[b.key], Region: n.r.name, Node: n.title,
		Sequence: d.Sequence,
		Cost:     int64(rq.q.Cost), Outcome: oracle.Denied, At: int64(at),
		Cell: b.limit.rule.CellOf(int64(at)),
		Sent: time.UnixMicro(n.w.plan.starts() + n.w.plan.Into + rq.sent), Seen: n.w.judgeTime(),
		Entitlement: int64(d.Entitlement), Share: int64(d.Share), Degraded: d.Degraded}
	if d.Allowed {
		a.Outcome = oracle.Admitted
	}
	if b.decidedIn(d) {
		a.Cell = int64(d.Cell)
	}
	return a
}

// noteAdmitted records an admission of which the judge hears.
func (n *node) noteAdmitted(b *bucket, a oracle.Answer, d admit.Decision) {
	at, units := quantity.StoreTime(a.At), quantity.Units(a.Cost)
	b.whileFenced(n.r, at, units)
	b.labels[a.Cell] += units
	b.flows[n.r.index].admits(b.windowAt(at), units)
	if d.Reason == admit.StoreFailureLocal {
		n.spentLocally(b, units)
	}
	n.openly(b, a, d)
	n.admits(b, d, units)
}

// checkCeiling checks that no more was admitted of a window's cell than its limit, and what is allowed
// above it.
func (w *world) checkCeiling(b *bucket, cell quantity.Cell) {
	ceiling, admitted := b.ceiling(cell), b.labels[int64(cell)]
	if b.limit.kind() != algorithms.FixedWindow || admitted <= ceiling {
		return
	}
	if allowed, causes := b.allowedIn(cell); admitted > ceiling+allowed {
		w.breaks("ceiling", "limit %s key %d: cell %d admitted %d of %d (%d allowed above it: %v)",
			b.limit.policy.Name, b.key, cell, admitted, ceiling, allowed, causes)
	}
}

// repeated reports whether a decision repeats an earlier one for the same request_id. It is a
// violation if an admitted request is charged again.
func (n *node) repeated(rq *request, d admit.Decision) bool {
	if rq.q.ID == "" {
		return false
	}
	key := rq.once()
	before, known := n.r.once[key]
	switch {
	case d.Repeated:
		return true
	case n.lostSince(rq): // what it remembered of it
		return false
	case known && d.Allowed && d.At != 0 && n.w.now-before+n.w.back < algorithms.RememberedFor*1000/
		2:
		n.w.breaks("once", "%s: request %s was admitted before, and is charged again", n.name,
			rq.q.ID)
	}
	if d.Allowed && d.At != 0 {
		n.r.once[key] = n.w.now
	}
	return false
}

// once identifies a request with an ID: one that other limits apply to is another request.
func (rq *request) once() string {
	parts := []string{rq.q.ID}
	for _, b := range rq.buckets {
		parts = append(parts, b.id)
	}
	return strings.Join(parts, " ")
}

// refunded reports whether a refund took effect.
type refunded int

const (
	notRefunded refunded = iota
	perhapsRefunded
	surelyRefunded
)

// refund asks for a refund twice, rq.refund µs apart. Only one of the two may have an effect.
func (n *node) refund(rq *request, d admit.Decision) {
	after := n.refundOnce(rq, d, notRefunded)
	n.in(rq.refund, func() { n.refundOnce(rq, d, after) })
}

// refundOnce asks for a refund, and returns what is known of it then. before is what was known.
func (n *node) refundOnce(rq *request, d admit.Decision, before refunded) (after refunded) {
	defer n.drain()
	unheard, used, answers := n.r.store.unheard(), n.usedOf(rq, d), !n.r.unconfirmed
	back, err := n.live.Settled(d.Receipt, rq.used)
	switch {
	case err != nil && n.r.store.unheard() == unheard && n.w.plan.Shards <= 1 && answers:
		return before // the store did nothing; of several shards one may have
	case err != nil || !back.Repeated && before == perhapsRefunded:
		n.cameBack(rq, d, used, before)
		if err == nil {
			return surelyRefunded
		}
		return max(before, perhapsRefunded)
	case back.Repeated:
		return surelyRefunded
	}
	for _, charge := range back.Charges {
		for _, b := range rq.buckets {
			if charge.Back == 0 || b.limit.policy.Name != charge.Limit {
				continue
			}
			if before == surelyRefunded {
				n.w.breaks("refund", "%s gives %d units back a second time", n.name, charge.Back)
			}
			b.givenBack(n.r, d, charge.Back)
		}
	}
	return surelyRefunded
}

// cameBack takes in what a refund gave back that may have failed for some of the buckets: what their
// use shows; where that cannot be seen, all that was not used at the first such refund. used is their use
// before it. No more than that can come back in all.
func (n *node) cameBack(rq *request, d admit.Decision, used []quantity.Units, before refunded) {
	now := n.usedOf(rq, d)
	if rq.back == nil {
		rq.back = make([]quantity.Units, len(rq.buckets))
	}
	for i, b := range rq.buckets {
		units := quantity.Units(0)
		switch {
		case used[i] >= 0 && now[i] >= 0:
			units = min(max(used[i]-now[i], 0), rq.q.Cost-rq.used-rq.back[i])
		case before == notRefunded:
			units = rq.q.Cost - rq.used
		}
		if units > 0 {
			rq.back[i] += units
			b.givenBack(n.r, d, units)
		}
	}
}

// usedOf returns what a region's store counts as used of a request's fixed windows in the cell of
// its decision, -1 where that cannot be seen.
func (n *node) usedOf(rq *request, d admit.Decision) (used []quantity.Units) {
	for _, b := range rq.buckets {
		units := quantity.Units(-1)
		if b.limit.kind() == algorithms.FixedWindow {
			held, known := n.r.store.inspect(b)
			own, _ := asLimit(d, b)
			if known && held.Cell == quantity.Cell(b.limit.rule.CellOf(int64(own.At))) {
				units = held.Used
			}
		}
		used = append(used, units)
	}
	return used
}

// givenBack takes in that units were refunded of what a decision charged. Fixed windows have
// admitted so much less, if the judge was told of the charge. Of other kinds as much may be
// admitted once more.
func (b *bucket) givenBack(r *region, d admit.Decision, units quantity.Units) {
	own, earlier := asLimit(d, b)
	if earlier {
		return
	}
	if b.limit.kind() != algorithms.FixedWindow {
		b.allowBack(r, own.At, units)
		return
	}
	b.labels[b.limit.rule.CellOf(int64(own.At))] -= units
	b.refunded = true
}
