package rights

import (
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
)

// reliefLife is how long, at least, a bucket's relief is kept after the machine stops telling it.
const reliefLife = 10 * time.Second

// reliefs holds what the machine last said of buckets with denied requests: of at most twice as
// many buckets as it has in view. The engine's lock guards it.
type reliefs struct {
	now, before map[string]exchange.Relief
	turned      quantity.NodeTime // when before was forgotten
}

// take takes in what the machine says.
func (r *reliefs) take(now quantity.NodeTime, all []exchange.Relief) {
	if now.Sub(r.turned) > reliefLife.Microseconds() {
		r.now, r.before, r.turned = nil, r.now, now
	}
	for _, one := range all {
		if r.now == nil {
			r.now = map[string]exchange.Relief{}
		}
		r.now[one.Bucket] = one
	}
}

// of returns the relief of a bucket, if it is known.
func (r *reliefs) of(bucket string) (exchange.Relief, bool) {
	one, known := r.now[bucket]
	if !known {
		one, known = r.before[bucket]
	}
	return one, known
}

// Relief returns what may come from other regions, and when, after a denied request lacked units of
// a cell. share is what this region has of the cell. It returns the zero Relief if less may come
// than the request lacks.
func (e *Engine) Relief(b *exchange.Bucket, cell quantity.Cell, share, lacks quantity.Units) exchange.Relief {
	if len(b.Entitlements) < 2 || e.config.Unproven {
		return exchange.Relief{}
	}
	e.mu.Lock()
	r, known := e.reliefs.of(b.ID)
	ages := e.ages
	e.mu.Unlock()
	if !known || r.Cell != cell {
		r = exchange.FirstRelief(b, e.config.Region, share, ages)
	}
	if r.Units < lacks {
		return exchange.Relief{}
	}
	return r
}
