package assign

import (
	"cmp"
	"slices"

	"github.com/quotad/quotad/quantity"
)

const (
	// floor is the rate of an Envoy that wants nothing, so that its first request is admitted.
	floor = 1
	// An Envoy gets more than its demand if there is enough: by 1/headroom of it, an eighth. It
	// always needs 1/chance more, a thirty-second, because requests come unevenly.
	headroom, chance = 8, 32
	// maxRate bounds rates: an Envoy cannot be told more.
	maxRate = 1<<32 - 1
	// newcomers is the part that all Envoys of unknown demand get together of what the others do not
	// need of the region's rate: a half.
	newcomers = 2
	// An Envoy of unknown demand needs 1/begins of an equal part, an eighth, although others need all.
	begins = 8
)

// wanted is what one share needs and wants of a pool, and what it gets.
type wanted struct {
	share           *share
	need, want, get int64
	all             int64 // what it wanted at first
}

// aim works out how much each Envoy should have of a bucket. It divides what the node holds of the
// current cell by max-min fairness: an Envoy that gets less than another gets all that it needs.
// The rest is divided in the same way between those that want more. What is missing, the node asks
// the store for.
func (m *Machine) aim(now quantity.NodeTime, p *pool) {
	m.wants = m.wants[:0]
	spare, fresh := p.unneeded()
	first := spare / newcomers / max(fresh, 1)
	least := p.rateOf(p.Entitlement) / int64(max(len(p.shares), 1)) / begins
	p.wanted, p.admitted, p.denied = 0, 0, 0
	needed := int64(0)
	for _, s := range p.shares {
		if s.gone || s.silent(now) || !slices.Contains(s.pools, p) {
			continue
		}
		need, want := s.want(least, first)
		if fresh > 0 && s.hidden < 0 {
			want = need // what it hardly needs any more, the newcomers probably do
		}
		p.wanted += want
		if s.measured && s.demand > 0 {
			needed += 1000 * need
		}
		p.admitted += s.admitted
		p.denied += s.denied + max(s.hidden, 0)
		m.wants = append(m.wants, wanted{share: s, need: need, want: want})
	}
	// Other regions leave as much as the Envoys need, which is a little more than their demand.
	p.admitted += max(needed-p.admitted-p.denied, 0)
	p.wanted = max(p.allotted(p.wanted), min(p.wanted, floor*int64(len(m.wants))))
	p.given = min(p.rate(now), p.wanted)
	left := fill(m.wants, p.given)
	p.short, p.starved = false, false
	for i := range m.wants {
		w := &m.wants[i]
		last := w.share.last(now)
		p.short = p.short || lacks(w.get, w.need) || last != nil && lacks(last.rate, w.need)
		p.starved = p.starved || w.share.starves(last, p, w.get)
		w.all = w.want
		w.need, w.want = w.want-w.get, w.get
	}
	fill(m.wants, left)
	for _, w := range m.wants {
		w.get += w.want
		w.share.targets[slices.Index(w.share.pools, p)] = w.get
	}
	if p.Counted {
		m.wantUnits(now, p)
	}
}

// unneeded returns how much of the region's rate no Envoy needs, as far as their demand is known,
// and of how many it is not.
func (p *pool) unneeded() (rate, fresh int64) {
	rate = p.rateOf(p.Entitlement)
	for _, s := range p.shares {
		if need, _ := s.want(0, 0); s.measured {
			rate -= need
		} else if !s.gone {
			fresh++
		}
	}
	return max(rate, 0), fresh
}

// lacks reports whether a rate is plainly less than what is needed.
func lacks(rate, need int64) bool { return need-rate > rate/soonBy }

// want returns the rates that a share needs, by what its demand probably is by now, and wants.
// least and first are those of an Envoy whose demand is not known.
func (s *share) want(least, first int64) (need, want int64) {
	if !s.measured {
		need = max(least, floor)
		return need, max(first, need)
	}
	probable := s.demand + s.hidden
	most := max(s.demand, probable)
	need = min(max((probable+probable/chance+999)/1000, floor), maxRate)
	return need, min(max((most+most/headroom+999)/1000, need), maxRate)
}

// starves reports whether an Envoy has plainly less than what it gets of its need, which for this
// pool is get. last is what it has.
func (s *share) starves(last *grant, p *pool, get int64) bool {
	for i, other := range s.pools {
		if other != p {
			get = min(get, s.targets[i])
		}
	}
	if last == nil {
		return get > 0
	}
	return lacks(last.rate, get)
}

// rate returns the tokens a second that the node holds of the current cell.
func (p *pool) rate(now quantity.NodeTime) int64 {
	least := int64(-1)
	for i := range p.cells {
		if from, _ := p.opens(p.cells[i].cell); p.known() && from <= now {
			r := p.rateOf(p.cells[i].own())
			if p.Counted {
				r = p.sustains(now, &p.cells[i])
			}
			if least < 0 || r < least {
				least = r
			}
		}
	}
	return max(least, 0)
}

// fill divides a rate by max-min fairness, and returns what is left. The share that needs least is
// served first; of two that need the same, the one that came first.
func fill(all []wanted, rate int64) (left int64) {
	needed := int64(0)
	for i := range all {
		all[i].get = all[i].need
		needed += all[i].need
	}
	if needed <= rate { // as usual
		return rate - needed
	}
	slices.SortStableFunc(all, func(a, b wanted) int { return cmp.Compare(a.need, b.need) })
	for i := range all {
		w, others := &all[i], int64(len(all)-i)
		w.get = min(w.need, (rate+others-1)/others, rate)
		rate -= w.get
	}
	return rate
}
