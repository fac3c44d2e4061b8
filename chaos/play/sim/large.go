package sim

import (
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// largeAttempts is how often the caller of a large cost comes again at most.
const largeAttempts = 3

// large makes of some requests ones of a large cost, up to the whole limit and a little more, whose
// callers come again about a second later if they are denied. It has a random stream of its own, so
// that seeds keep their meaning without it.
func (o *offering) large(n *node, rq *request, limit *limit) {
	if !o.w.plan.Large || rq.q.Cost < 1 || rq.q.Cost > limit.policy.Limit {
		return
	}
	if o.largeCosts == nil {
		o.largeCosts = o.w.plan.random(forLarge, 1+o.act.ID)
	}
	if o.largeCosts.IntN(12) > 0 {
		return
	}
	rq.q.Cost = 1 + quantity.Units(o.largeCosts.Int64N(int64(limit.policy.Limit)*21/20+1))
	o.w.counts.Large++
	o.comeAgain(n, rq, largeAttempts)
}

// comeAgain has a denied caller come again.
func (o *offering) comeAgain(n *node, rq *request, left int) {
	wait := allocator.Second*3/4 + o.largeCosts.Int64N(allocator.Second/2)
	rq.done = func(d admit.Decision) {
		if d.Allowed {
			o.w.counts.LargeAdmitted++
		}
		if d.Allowed || left == 0 || n.live == nil {
			return
		}
		again := &request{q: rq.q}
		o.comeAgain(n, again, left-1)
		o.w.in(wait, func() {
			if n.live != nil {
				o.w.ask(n, again)
			}
		})
	}
}
