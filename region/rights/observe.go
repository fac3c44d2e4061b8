package rights

import (
	"context"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/rules"
)

// Observe adds up what was decided of requests on the same buckets, for the next report. costs are the requests' own, in the
// order of d.Answers. It runs on the request path and does nothing else.
func (e *Engine) Observe(applied []rules.Applied, costs []int64, d algorithms.Decided) {
	e.mu.Lock()
	for i, a := range applied {
		o := e.observed[a.Bucket.ID]
		if o == nil {
			o = &exchange.Observed{}
			e.observed[a.Bucket.ID] = o
		}
		o.Bucket, o.State, o.Now = a.Bucket, d.Buckets[i], d.Now
		for n, cost := range costs {
			switch answer := d.Answers[n]; {
			case cost > a.Most(): // never admitted anywhere, so it is no demand
			case answer.Admitted && answer.Verdicts[i].Retry == 0:
				o.Admitted = min(o.Admitted+cost, algorithms.MaxUnits)
			case answer.Verdicts[i].Retry != 0:
				o.Denied = min(o.Denied+cost, algorithms.MaxUnits)
			}
		}
	}
	e.mu.Unlock()
	for i, a := range applied {
		e.seen.note(a.Bucket, d.Buckets[i], d.Now)
	}
	select {
	case e.drain <- struct{}{}:
	default:
	}
}

// report tells the machine what was decided since the last report.
func (e *Engine) report(ctx context.Context) {
	if all := e.Observations(); len(all) > 0 {
		e.step(ctx, all)
	}
}

// Observations returns what was decided since it was last asked, in no order.
func (e *Engine) Observations() exchange.Report {
	e.mu.Lock()
	observed := e.observed
	e.observed = make(map[string]*exchange.Observed, len(observed))
	e.mu.Unlock()
	all := make(exchange.Report, 0, len(observed))
	for _, o := range observed {
		all = append(all, *o)
	}
	return all
}
