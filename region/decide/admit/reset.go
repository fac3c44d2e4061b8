package admit

import (
	"context"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Reset clears the use of one bucket in this region and returns the units that counted as used.
// Nothing else changes. What is admitted from then on comes on top of what was admitted before, so
// the limit does not hold in this window. Reset is for operators.
func (l *Limiter) Reset(ctx context.Context, limit, domain string,
	descriptors map[string]string) (cleared quantity.Units, err error) {
	if err := (Request{Domain: domain, Descriptors: descriptors, Cost: 1}).Validate(); err != nil {
		return 0, err
	}
	r := l.tenure.Rules()
	limited, b, err := r.Locate(limit, domain, descriptors)
	if err != nil {
		return 0, err
	}
	done, err := l.store.Reset(ctx, algorithms.Reset{Fence: algorithms.Fence{Epoch: r.Epoch},
		Target: r.Target(b, l.rights.ExistsUntil(b.ID))})
	if err != nil {
		l.rights.Lose(ctx, b, err)
		return 0, err
	}
	r.ForgetDenials(b.ID, done.Now)
	l.metrics.resets.WithLabelValues(limited.Name).Inc()
	l.log.Warn("a bucket was reset: its limit does not hold in this window", "limit", limited.Name,
		"units", done.Used)
	return done.Used, nil
}
