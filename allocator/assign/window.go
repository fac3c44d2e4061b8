package assign

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Rights of a fixed window are units, and each is spent once. So the node holds what an Envoy may
// admit of the window until its assignment ends: the burst, and the rate for as long. A report
// shows what it did admit. That stays spent until the window is over, and what it could have
// admitted meanwhile and did not comes free. An assignment that is in force in two windows is held
// of both.

// overlap returns how many microseconds two spans of time have in common.
func overlap(from, to, begin, end quantity.NodeTime) int64 {
	return max(min(to, end).Sub(max(from, begin)), 0)
}

// most returns the units that a rate admits in a time, at most.
func most(rate, length int64) int64 {
	return int64(allocator.Over(quantity.MilliRate(1000*rate), length))
}

// takes returns what an Envoy may take of a cell: the highest rate; Counted: units that no report
// shows yet.
func (s *share) takes(p *pool, c *cell) (sum int64) {
	from, to := p.span(c.cell)
	if !p.Counted {
		return s.rate(p, from, to)
	}
	for i := range s.grants {
		if g := &s.grants[i]; slices.Contains(g.pools, p) {
			sum += s.open(g, from, to)
		}
	}
	return sum
}

// open returns the units that an Envoy may admit by an assignment between two times and that no
// report shows yet.
func (s *share) open(g *grant, from, to quantity.NodeTime) int64 {
	begin := max(g.from, s.read)
	length := overlap(from, to, begin, s.over(g))
	if length == 0 {
		return 0
	}
	lasts, bursts := max(g.ends.Add(Late).Sub(begin), 0), int64(1)
	if g.until > g.ends.Add(Late) { // it may be paused, and take the last message late
		lasts, bursts = lasts+g.ttl*second, 2
	}
	return bursts*int64(g.burst) + most(g.rate, min(length, lasts))
}

// cover records what a report shows of windows. It may have been sent Late before that is proven.
func (s *share) cover(now quantity.NodeTime, allowed quantity.Units) {
	var done []*pool
	for i := range s.grants {
		for _, p := range s.grants[i].pools {
			if p.Counted && !slices.Contains(done, p) {
				done = append(done, p)
				s.spend(now, p, int64(allowed))
			}
		}
	}
	s.read = max(s.read, s.sent.Add(-Late))
}

// spend notes units as spent in each cell in which they may have been, as far as assignments allow.
func (s *share) spend(now quantity.NodeTime, p *pool, units int64) {
	for i := range p.cells {
		c, could := &p.cells[i], int64(0)
		from, to := p.span(c.cell)
		for j := range s.grants {
			if g := &s.grants[j]; slices.Contains(g.pools, p) {
				could += s.open(g, from, min(to, now))
			}
		}
		c.spent += min(units, could)
	}
}

// settle reports whether an assignment that has ended can be forgotten. It can if it is of no
// window, if a report shows what was admitted, or if no report will come. In the last case all of
// it counts as spent.
func (s *share) settle(now quantity.NodeTime, g *grant) bool {
	counted := slices.ContainsFunc(g.pools, func(p *pool) bool { return p.Counted })
	if over := s.over(g); !counted || over <= s.read {
		return true
	} else if !s.gone && now.Sub(over) <= silentAfter {
		return false
	}
	for _, p := range g.pools {
		for i := range p.cells {
			if c := &p.cells[i]; p.Counted {
				from, to := p.span(c.cell)
				c.spent += s.open(g, from, to)
			}
		}
	}
	return true
}

// free returns the units of a cell that the node holds and nobody has.
func (p *pool) free(c *cell) int64 { return int64(c.own()) - c.used }

// canTake reports whether a cell has units for a new assignment.
func (p *pool) canTake(now quantity.NodeTime, c *cell, rate int64, burst quantity.Units,
	ttl int64) bool {
	from, to := p.span(c.cell)
	length := overlap(from, to, now, now.Add(Late+ttl*second))
	return length == 0 || int64(burst)+most(rate, length) <= p.free(c)
}

// canRenew reports whether a cell has units for an assignment to be sent once more.
func (s *share) canRenew(now quantity.NodeTime, p *pool, c *cell, g *grant, ttl int64) bool {
	from, to := p.span(c.cell)
	renewed := *g
	renewed.renew(now, ttl)
	return s.open(&renewed, from, to)-s.open(g, from, to) <= p.free(c)
}

// roomFor returns the highest rate of a new assignment for which a cell has units.
func (p *pool) roomFor(now quantity.NodeTime, c *cell, ttl int64) int64 {
	from, to := p.span(c.cell)
	length := overlap(from, to, now, now.Add(Late+ttl*second))
	if length == 0 {
		return maxReport
	}
	return rateIn(p.free(c)-1, length)
}

// sustains returns the rate that the unspent units of a cell allow for a TTL, or until the cell is
// over.
func (p *pool) sustains(now quantity.NodeTime, c *cell) int64 {
	_, to := p.span(c.cell)
	length := max(min(to.Sub(now), Late+p.TTL*second), second)
	return rateIn(int64(c.own())-c.spent, length)
}

// rateIn returns the rate that spends units in a time.
func rateIn(units, length int64) int64 {
	return int64(allocator.PerSecond(quantity.Units(max(units, 0)), length)) / 1000
}

// wantUnits works out how many units of each cell the node wants to hold: as many as all Envoys
// take if each is sent now what it wants.
func (m *Machine) wantUnits(now quantity.NodeTime, p *pool) {
	for i := range p.cells {
		c := &p.cells[i]
		c.wanted = c.used
		for _, w := range m.wants {
			c.wanted += m.more(now, p, c, w.share, w.all)
		}
	}
}

// more returns how many units of a cell an Envoy takes beyond what it has, if it is now sent what
// it wants.
func (m *Machine) more(now quantity.NodeTime, p *pool, c *cell, s *share, rate int64) int64 {
	from, to := p.span(c.cell)
	if last := s.last(now); last != nil && !s.differs(last, rate) {
		renewed := *last
		renewed.renew(now, p.TTL)
		return s.open(&renewed, from, to) - s.open(last, from, to)
	}
	length := overlap(from, to, now, now.Add(Late+p.TTL*second))
	if length == 0 {
		return 0
	}
	return int64(max(p.afford(rate, m.nodes, true), 1)) + most(rate, length)
}

// next returns when a bucket is planned next if nothing happens. Envoys may be waiting for the next
// cell.
func (p *pool) next(now quantity.NodeTime) quantity.NodeTime {
	next := now.Add(planEvery)
	if p.known() {
		for i := range p.cells {
			if _, opens := p.opens(p.cells[i].cell); opens > now {
				next = min(next, opens)
			}
		}
	}
	return next
}
