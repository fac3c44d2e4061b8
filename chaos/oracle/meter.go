package oracle

// meter applies the rule of one kind of limit to admissions in the order of
// their store time. Two things are made of it: the ceiling plays all that was
// admitted and looks how high the level rose, the pooled limiter admits what
// does not raise the level above the bound.
type meter interface {
	// advance moves on to the store time at (µs, within dawn and dusk), which
	// is not before the one it is at.
	advance(at int64)
	// admit charges units at the present time.
	admit(units int64)
	// level is what the rule bounds, at the present time: units, rounded up.
	// A level above a whole number of units is so above it after rounding, too.
	level() int64
	// since is the earliest store time of the admissions that make up the
	// level.
	since() int64
	// clone returns a copy that shares nothing.
	clone() meter
}

// dawn and dusk bound the store times that meters compute with: the difference
// of any two, and a window more, fits into 64 bits.
const (
	dawn = -1 << 61
	dusk = 1 << 61
)

// held is a claimed store time, held within dawn and dusk. One beyond lies more
// than 70,000 years away and is misplaced in any case.
func held(at int64) int64 { return min(max(at, dawn), dusk) }

// meteredPool is the pooled limiter of the kinds that have a meter.
type meteredPool struct {
	meter meter
	bound int64
	at    int64 // of the latest offer
}

func newMeteredPool(m meter, bound int64) pool {
	return &meteredPool{meter: m, bound: bound, at: dawn}
}

// offer treats a late request as one of the latest time: a limiter cannot go
// back behind what it has admitted.
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
