package assign

import "github.com/quotad/quotad/quantity"

// proof follows the reports of one bucket id, and says when each was sent at the earliest. Reports say
// how many whole seconds have passed at the Envoy since the one before. Their sum from the first on is
// how long after the first a report was sent, or less, for each rounds down. So a report that comes
// later than its sum says, compared with the report that came the least late, may be so late.
//
// What sums cannot show is a lateness that all reports have had from the first on. Nor do they show one
// that grows by less than Late in each minute: so much slower may the Envoy's clock go, with what it
// rounds. The printed bound late-envoy is for both. A report that is later is late, until one comes
// that is not. An Envoy that does not say what has elapsed proves nothing.
type proof struct {
	sum int64 // of what has elapsed
	// zero is when the first report came, by the report that came the least late; least is the same by
	// those since a time.
	zero, least, since quantity.NodeTime
}

const (
	// forgetAfter is after how long of reports that all came later zero is by these.
	forgetAfter = 60 * second
	// maxElapsed bounds the seconds that one report may say have elapsed.
	maxElapsed = 3600
)

// sent takes in that a report has come, and returns when it was sent: Late earlier at the earliest.
func (p *proof) sent(now quantity.NodeTime, elapsed int64) quantity.NodeTime {
	if p.since == 0 {
		p.zero, p.least, p.since = now, now, now
		return now
	}
	p.sum += elapsed
	zero := now.Add(-p.sum)
	p.least = min(p.least, zero)
	if now.Sub(p.since) >= forgetAfter {
		if p.least.Sub(p.zero) <= Late {
			p.zero = p.least
		}
		p.least, p.since = zero, now
	}
	p.zero = min(p.zero, zero)
	return p.zero.Add(p.sum)
}
