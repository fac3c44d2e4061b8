package assign

import (
	"slices"

	"github.com/quotad/quotad/quantity"
)

const (
	// renewBefore is how long before an assignment may end at its Envoy it is sent once more, at
	// the latest.
	renewBefore = Late + 3*second
	// shortest is the least TTL, in seconds, that is sent if a smaller rate can have a longer one.
	shortest = 3
	// changeEvery is the least time between two changes of an assignment. Each change starts a full
	// token bucket, which costs its burst.
	changeEvery = ReportEvery - second/2
	// changeSoon is that time if other nodes or regions wait for what the assignment gives up, or if
	// it changes by more than 1/soonBy, a quarter.
	changeSoon = second
	soonBy     = 4
	// changeBy is the least change of an assignment: 1/changeBy of its rate, a tenth.
	changeBy = 10
	// unevenBy is how many times as many tokens as an assignment has, or how many times fewer, are
	// worth a change by themselves.
	unevenBy = 4
)

// send appends the assignments of a bucket that are to be sent, one of each share. Those that
// shrink go first.
func (m *Machine) send(now quantity.NodeTime, p *pool) {
	for _, grow := range []bool{false, true} {
		for _, s := range p.shares {
			if s.gone || s.silent(now) || s.changed == now || !slices.Contains(s.pools, p) || !s.ready() {
				continue
			}
			last := s.last(now)
			if grows := last == nil || s.target() > last.rate; grows == grow {
				m.assign(now, s, last)
			}
		}
	}
}

// ready reports whether the node knows enough of all buckets that the share draws on.
func (s *share) ready() bool {
	return !slices.ContainsFunc(s.pools, func(p *pool) bool { return !p.known() })
}

// target returns the rate that the share should have: the least that its pools give it.
func (s *share) target() int64 { return slices.Min(s.targets) }

// assign sends what a share should have, if it should be sent now. last is what it has.
func (m *Machine) assign(now quantity.NodeTime, s *share, last *grant) {
	if m.drains {
		m.drain(now, s, last)
		return
	}
	target := s.target()
	uneven := last != nil && m.uneven(now, s, last)
	if uneven {
		target = min(target, last.rate)
	} else if last != nil && !s.mayChange(now, last, target) {
		s.wait(now, last, target)
		if last.ends > now.Add(renewBefore) {
			return
		}
		if m.renew(now, s, last) || last.ends > now.Add(Late+2*second) {
			return
		}
	}
	rate, ttl := m.fit(now, s, target)
	if rate < 1 || last != nil && !uneven && !s.better(now, last, rate, ttl) {
		return
	}
	must := last == nil || last.ends <= now.Add(renewBefore) || rate <= last.rate
	if !m.change(now, s, rate, ttl, must) && must && last != nil {
		m.renew(now, s, last)
	}
}

// wait has the share planned when its assignment may be changed to a target, if that is to be.
func (s *share) wait(now quantity.NodeTime, last *grant, target int64) {
	if at := s.changes(last, target); s.differs(last, target) && at > now {
		for _, p := range s.pools {
			p.due = min(p.due, at)
		}
	}
}

// better reports whether a new assignment is worth its burst: it lasts longer than the one before,
// or is due to change.
func (s *share) better(now quantity.NodeTime, last *grant, rate, ttl int64) bool {
	lasts := now.Add(ttl*second) >= last.ends.Add(second)
	return rate != last.rate && (lasts || s.mayChange(now, last, rate))
}

// uneven reports whether an assignment that is due to change has so few or so many tokens that it
// is worth a change by itself. One had to be sent when hardly a token was left, and its Envoy loses
// requests that come together: there are enough by now. Another has what was usual before, and
// leaves none for others.
func (m *Machine) uneven(now quantity.NodeTime, s *share, last *grant) bool {
	if now.Sub(s.changed) < changeEvery {
		return false
	}
	for _, p := range s.pools {
		usual := p.usualBurst(last.rate, m.nodes)
		few := usual >= unevenBy*last.burst && p.afford(last.rate, m.nodes, false) >= usual
		many := last.burst >= unevenBy*usual && p.roomForTokens(m.nodes) < usual
		if p.Counted || !few && !many {
			return false
		}
	}
	return true
}

// bound reports whether others wait for what the share gives up.
func (s *share) bound() bool {
	return slices.ContainsFunc(s.pools, func(p *pool) bool { return p.allotment.bound })
}

// short reports whether an Envoy plainly lacks something of what the share draws on.
func (s *share) short() bool {
	return slices.ContainsFunc(s.pools, func(p *pool) bool { return p.short })
}

// mayChange reports whether an assignment is to be changed to a target.
func (s *share) mayChange(now quantity.NodeTime, last *grant, target int64) bool {
	return s.differs(last, target) && now >= s.changes(last, target) &&
		(target < last.rate || !s.asks())
}

// changes returns when an assignment may be changed to a target.
func (s *share) changes(last *grant, target int64) quantity.NodeTime {
	if target < last.rate && s.bound() ||
		max(target-last.rate, last.rate-target) > last.rate/soonBy {
		return s.changed.Add(changeSoon)
	}
	return s.changed.Add(changeEvery)
}

// asks reports whether a Hold for more of a bucket of this share is under way, not counting one
// that is sent again because the store had too little. The share grows once its answer has come,
// and not by a little before.
func (s *share) asks() bool {
	return slices.ContainsFunc(s.pools, func(p *pool) bool {
		return slices.ContainsFunc(p.cells,
			func(c cell) bool { return c.asked && c.read && c.rest == 0 })
	})
}

// differs reports whether a rate is so different from an assignment's that it is worth a change.
// Half the difference suffices while an Envoy plainly lacks something, and any if it waits for what
// this one gives up: a small Envoy would else wait for ever beside a large one.
func (s *share) differs(last *grant, rate int64) bool {
	if rate < last.rate && slices.ContainsFunc(s.pools, func(p *pool) bool { return p.starved }) {
		return true
	}
	by := last.rate / changeBy
	if s.short() {
		by /= 2
	}
	return max(rate-last.rate, last.rate-rate) >= max(by, 1)
}

// renew sends an assignment once more, if its rate is held for longer than it lasts already.
func (m *Machine) renew(now quantity.NodeTime, s *share, last *grant) bool {
	if last.lapse() {
		return false
	}
	ttl := s.lasts(now, last.rate, func(p *pool, c *cell, ttl int64) bool {
		return s.canRenew(now, p, c, last, ttl)
	})
	if ttl < 1 || now.Add(ttl*second) < last.ends.Add(second) {
		return false
	}
	s.book(func() { last.renew(now, ttl) })
	m.stats.Renewed++
	m.out.Sends = append(m.out.Sends, Send{s.stream, s.key, last.rate, last.burst, ttl})
	return true
}

// lapse reports whether an assignment is left to end by itself, because a pool has more tokens out
// than its part.
func (g *grant) lapse() bool {
	if !g.lapses && slices.ContainsFunc(g.pools, func(p *pool) bool { return p.excess > 0 }) {
		g.lapses = true
		for _, p := range g.pools {
			p.excess -= g.burst
		}
	}
	return g.lapses
}

// change sends a new assignment if its burst can be paid, and reports whether it did. must says
// that the Envoy has no assignment that lasts.
func (m *Machine) change(now quantity.NodeTime, s *share, rate, ttl int64, must bool) bool {
	burst := quantity.Units(maxReport)
	for _, p := range s.pools {
		burst = min(burst, p.afford(rate, m.nodes, must))
	}
	if burst < 1 {
		m.stats.Unpaid++
		for _, p := range s.pools {
			p.unpaid = true
		}
		return false
	}
	for _, p := range s.pools {
		p.pay(burst)
	}
	s.book(func() { s.grant(now, rate, burst, ttl) })
	m.stats.Assigned++
	m.out.Sends = append(m.out.Sends, Send{s.stream, s.key, rate, burst, ttl})
	return true
}

// drain sends an assignment once more with a short TTL: the Envoy has it until it opens a stream to
// another node, which it does with its next report. One that ends sooner stays as it is.
func (m *Machine) drain(now quantity.NodeTime, s *share, last *grant) {
	if last != nil && last.ends > now.Add(drainTTL*second) {
		last.ttl, last.ends = drainTTL, now.Add(drainTTL*second)
		m.out.Sends = append(m.out.Sends, Send{s.stream, s.key, last.rate, last.burst, drainTTL})
	}
}

// drainTTL is the TTL, in seconds, of what Envoys are told when the node ends: a report's time, and
// a second.
const drainTTL = ReportEvery/second + 1

// book runs change, which changes the assignments in force, and keeps the sums of the cells right.
func (s *share) book(change func()) {
	for _, sign := range []int64{-1, 1} {
		for _, p := range s.pools {
			for i := range p.cells {
				p.cells[i].used += sign * s.takes(p, &p.cells[i])
			}
		}
		if sign < 0 {
			change()
		}
	}
}

// fit returns the rate up to a target that the share can have from now on, and its TTL. A smaller
// rate that lasts is better than a larger one that is over at once.
func (m *Machine) fit(now quantity.NodeTime, s *share, target int64) (rate, ttl int64) {
	rate = target
	later := target
	for _, p := range s.pools {
		for i := range p.cells {
			c := &p.cells[i]
			room := p.room(now, s, c)
			if from, _ := p.opens(c.cell); from <= now.Add(Late) {
				rate = min(rate, room)
			}
			later = min(later, room)
		}
	}
	if ttl = m.lasts(now, s, rate); ttl < shortest && later >= 1 && later < rate {
		rate, ttl = later, m.lasts(now, s, later)
	}
	if ttl < 1 {
		return 0, 0
	}
	return rate, ttl
}

// lasts returns the longest TTL, in seconds, of a new assignment of a rate. 0: there is no room.
func (m *Machine) lasts(now quantity.NodeTime, s *share, rate int64) int64 {
	return s.lasts(now, rate, func(p *pool, c *cell, ttl int64) bool {
		return p.canTake(now, c, rate, p.afford(rate, m.nodes, true), ttl)
	})
}

// lasts returns the longest TTL, in seconds, for which the node holds what a share takes at a rate;
// 0: there is none. For windows, fits reports whether a cell has units for a TTL.
func (s *share) lasts(now quantity.NodeTime, rate int64,
	fits func(p *pool, c *cell, ttl int64) bool) int64 {
	if rate < 1 {
		return 0
	}
	ttl := s.pools[0].TTL
	for _, p := range s.pools {
		ttl = min(ttl, p.TTL)
		if p.Counted {
			for ttl > 0 && slices.ContainsFunc(p.cells,
				func(c cell) bool { return !fits(p, &c, ttl) }) {
				ttl--
			}
			continue
		}
		end := now
		for i := range p.cells {
			if p.room(now, s, &p.cells[i]) < rate {
				break
			}
			end, _ = p.opens(p.cells[i].cell + 1)
		}
		ttl = min(ttl, (end.Sub(now)-Late)/second)
	}
	return max(ttl, 0)
}

// room returns the highest rate that a share can have in a cell. For a window that is the rate for
// the shortest TTL.
func (p *pool) room(now quantity.NodeTime, s *share, c *cell) int64 {
	if p.Counted {
		return p.roomFor(now, c, shortest)
	}
	return p.rateOf(c.own()) - c.used + s.takes(p, c)
}
