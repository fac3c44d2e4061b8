package oracle

// meter applies the rule of one kind of limit to admissions in the order of their store time. It
// serves two purposes: the ceiling plays all admissions and looks how high the level rose; the
// pooled limiter admits what does not raise the level above the bound.
type meter interface {
	// advance moves on to the store time at (µs, within dawn and dusk), which must not be before
	// the present time.
	advance(at int64)
	// admit charges units at the present time.
	admit(units int64)
	// level returns the quantity that the rule bounds, at the present time, in units, rounded up.
	// If it is above a whole number of units, it is also above it after rounding.
	level() int64
	// since returns the earliest store time of the admissions that contribute to the level.
	since() int64
	// clone returns a copy that shares nothing.
	clone() meter
}

// dawn and dusk bound the store times with which meters compute. The difference of any two, plus a
// window, fits into 64 bits.
const (
	dawn = -1 << 61
	dusk = 1 << 61
)

// held returns a claimed store time, limited to dawn and dusk. Times beyond are more than 70,000
// years away and misplaced in any case.
func held(at int64) int64 { return min(max(at, dawn), dusk) }

// meteredPool is the pooled limiter of the kinds that have a meter.
type meteredPool struct {
	meter meter
	bound int64
	at    int64 // time of the latest offer
}

func newMeteredPool(m meter, bound int64) pool {
	return &meteredPool{meter: m, bound: bound, at: dawn}
}

// offer treats a late request like one at the latest time: a limiter cannot undo what it has
// admitted.
func (p *meteredPool) offer(_, at, cost int64) bool {
	p.at = max(p.at, held(at))
	p.meter.advance(p.at)
	if cost > p.bound-p.meter.level() {
		return false
	}
	p.meter.admit(cost)
	return true
}

func (p *meteredPool) clone() pool {
	return &meteredPool{meter: p.meter.clone(), bound: p.bound, at: p.at}
}
