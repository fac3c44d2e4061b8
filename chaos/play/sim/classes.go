package sim

import (
	"strings"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// classify changes a plan so that limits have classes, as far as they may, and requests say one of
// them, none, or one that no limit has. It has a random stream of its own, so that seeds keep their
// meaning without it.
func classify(p *Plan) {
	random := p.random(forClasses, 0)
	lines := strings.Split(p.Document, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "algorithm: ") {
			continue
		}
		parts := []string{"batch: 0.6, interactive: 1", "batch: 0.9", "batch: 0.25, bulk: 0.6, interactive: 1",
			"batch: 0.999999, bulk: 0.5"}[random.IntN(4)]
		lines[i] = endOfLimit.ReplaceAllString(line, ", classes: {by: priority, "+parts+"}$0")
		p.Document = strings.Join(lines, "\n")
		if _, err := p.document(1); err != nil { // of a limit that may have none, or is too small
			lines[i] = line
			p.Document = strings.Join(lines, "\n")
		}
	}
	p.Classes = true
}

// class gives a request a class.
func (o *offering) class(rq *request) {
	if !o.w.plan.Classes {
		return
	}
	if o.classes == nil {
		o.classes = o.w.plan.random(forClasses, 1+o.act.ID)
	}
	if class := []string{"", "batch", "batch", "batch", "bulk", "interactive", "interactive", "other"}[o.classes.IntN(8)]; class != "" {
		rq.q.Descriptors["priority"] = class
	}
}

// judgesClass has the judge of a bucket hold a decision to its class, if all that the region
// admitted is known to count in its store.
func (n *node) judgesClass(rq *request, b *bucket, a *oracle.Answer, d admit.Decision) {
	a.Elsewhere = d.At == 0
	l := b.limit.policy
	if l.Classes == nil || d.At == 0 || d.FromMemory || b.refunded || len(b.allowances) > 0 || n.w.plan.Refunds ||
		n.takesTime() || n.lostSince(rq) || n.w.adopted > 1 || n.r.stale { // a copy that was put back lacks some use
		return
	}
	c, known := l.ClassOf(rq.q.Descriptors)
	share, told := shareOf(d, l)
	if !known || !told {
		return
	}
	a.Part, a.Share = int64(c.Part), int64(share)
	if d.Allowed && c.Part < policy.PPMOne && !l.Algorithm.Bucket() {
		n.w.counts.Classed++
	}
}

// shareOf returns what a region held of one limit, as it said in a decision.
func shareOf(d admit.Decision, l *policy.Limit) (share quantity.Units, told bool) {
	for _, s := range d.Limits {
		if s.Limit == l.Name {
			return s.Share, s.Counted
		}
	}
	return d.Share, d.Limit == l.Name
}
