package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	stepped "github.com/quotad/quotad/chaos/lab/node"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// owe changes a plan so that limits are charged always, and that requests of them are uses whose cost
// is known only afterwards: asked about before, and charged up to twice the limit when they end. Some
// are charged that nobody asked about. It has a random stream of its own, so that seeds keep their
// meaning without it.
func owe(p *Plan) {
	random := p.random(forOwing, 0)
	lines := strings.Split(p.Document, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "algorithm: ") || strings.Contains(line, "leaky_bucket") ||
			strings.Contains(line, "consistency:") || strings.Contains(line, "assign:") {
			continue
		}
		more := ", charge: always"
		if strings.Contains(line, "token_bucket") && random.IntN(2) == 0 {
			more += fmt.Sprintf(", max_debt: %d", 1+random.IntN(1000))
		}
		lines[i] = endOfLimit.ReplaceAllString(line, more+"$0")
	}
	p.Document = strings.Join(lines, "\n")
}

// owes reports whether a limit is charged always.
func (l *limit) owes() bool { return l.policy.Charge == policy.ChargeAlways }

// owes reports whether all limits of a domain are charged always. A use that meets others, too, is charged
// in two calls, of which one may wait.
func (w *world) owes(domain string) bool {
	return !slices.ContainsFunc(w.concern(domain, 0), func(b *bucket) bool { return !b.limit.owes() })
}

// use is a use on its way whose cost is known only afterwards.
type use struct {
	o   *offering
	n   *node
	key int
}

// begin makes of a request a use whose cost is known only afterwards, if its limits are charged always.
// Some are asked about, some charged without, and the others stay what they are.
func (o *offering) begin(n *node, rq *request, key int) (asks bool) {
	w, l := o.w, o.w.limits[o.act.Limit%len(o.w.limits)]
	if !w.owes(l.policy.Domain) || o.act.Do == Flood || rq.q.Cost < 1 || rq.q.Cost > algorithms.MaxUnits {
		return true
	}
	u := &use{o, n, key}
	switch chance := o.random.IntN(10); {
	case chance < 6:
		cost, after := u.cost(rq.q.Cost), o.random.Int64N(2*allocator.Second)
		rq.q.Cost, rq.q.Question, rq.q.ID, rq.q.Receipt, rq.refund = 1, true, "", false, 0
		rq.done = func(d admit.Decision) {
			if d.Allowed {
				w.in(after, func() { u.charge(cost) })
			}
		}
		return true
	case chance < 8:
		u.charge(u.cost(rq.q.Cost))
		return false
	}
	return true
}

// cost returns what a use costs: mostly as much as a request, at times up to twice the limit.
func (u *use) cost(usual quantity.Units) quantity.Units {
	if u.o.random.IntN(8) > 0 {
		return usual
	}
	l := u.o.w.limits[u.o.act.Limit%len(u.o.w.limits)]
	return 1 + quantity.Units(u.o.random.Int64N(2*int64(l.policy.Limit)))
}

// charge reports what a use cost, to a node of its region that lives. In some cases it is reported twice
// with an id.
func (u *use) charge(cost quantity.Units) {
	w, l := u.o.w, u.o.w.limits[u.o.act.Limit%len(u.o.w.limits)]
	u.o.sent++
	rq := &request{q: w.question(l.policy.Domain, u.key)}
	rq.q.Cost = cost
	twice := u.o.random.IntN(10) == 0
	if twice {
		rq.q.ID = fmt.Sprintf("%d.%d", u.o.act.ID, u.o.sent)
	}
	w.charge(u.n, rq)
	if again := *rq; twice {
		w.in(1+u.o.random.Int64N(allocator.Second), func() { w.charge(u.n.r.nodes[0], &again) })
	}
}

// charge has a node charge what a use cost that is over. If the node is dead, nothing happens.
func (w *world) charge(n *node, rq *request) {
	rq.node, rq.sent = n, w.now
	n.at(w.now, func() {
		n.live.Run(func() { n.charged(rq, n.live.Charge(rq.q)) })
	})
}

// charged passes what a node says to a charge to the judges: what did not fit is owed, and counts towards
// no ceiling.
func (n *node) charged(rq *request, said stepped.Said) {
	w := n.w
	w.counts.Requests++
	rq.buckets = nil
	for _, spec := range said.Buckets {
		rq.buckets = append(rq.buckets, w.bucket(spec.ID))
	}
	if said.Err != nil {
		if n.live != nil && w.adopted == 1 {
			w.breaks("answers", "%s: a charge of %d units ends with %v", n.name, rq.q.Cost, said.Err)
		}
		return
	}
	d := said.Decision
	w.counts.decided(d)
	w.digest.decided(n, w.now, rq, d)
	if w.trace != nil {
		n.tellDecision(rq, d)
	}
	for _, b := range rq.buckets {
		own, owed := chargeOf(d, b)
		switch {
		case own.Repeated: // the store remembers it, and did not look at the bucket
			continue
		case own.At != 0 && !n.lostSince(rq):
			n.uses(b)
		case n.r.reached(b) && !n.r.refuses(): // the reply may have been lost
			n.mayUse(b)
		}
		w.counts.Owed += int64(owed)
		if own.At == 0 || b.limit.policy.Shadow || owed >= rq.q.Cost {
			continue // kept until the store can be charged, or nothing of it fitted
		}
		fitted := *rq
		fitted.q.Cost -= owed
		own.Allowed = true
		n.judge(&fitted, b, own)
	}
	n.drain()
	if n.live != nil {
		n.observed()
	}
}

// chargeOf returns a decision on a charge as the limit of one bucket made it, and what it is owed. At is 0
// if the store was not charged.
func chargeOf(d admit.Decision, b *bucket) (own admit.Decision, owed quantity.Units) {
	for _, s := range d.Limits {
		if s.Limit == b.limit.policy.Name {
			d.At, d.Repeated = s.At, d.Repeated || s.Earlier
			return d, s.Owed
		}
	}
	return d, d.Owed
}
