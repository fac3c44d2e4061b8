package assign

import (
	"slices"

	"github.com/quotad/quotad/quantity"
)

// purse holds tokens that were charged to the store for bursts of assignments to come.
type purse struct {
	tokens quantity.Units
	again  quantity.NodeTime
	rest   int64          // after the last refusal; 0: the last charge was none
	most   quantity.Units // that is asked for at once: less after each refusal; 0: no bound
}

// chargeAgain is after how long a refused charge is sent again, for less. With each further refusal
// the time doubles, up to chargeAtLast.
const chargeAgain, chargeAtLast = second / 5, 16 * chargeAgain

// burstOut returns the tokens that Envoys may hold of the bucket.
func (p *pool) burstOut() (sum quantity.Units) {
	for _, s := range p.shares {
		sum += s.burst(p)
	}
	return sum
}

// part returns this node's part of the region's part of max_burst. It is 0 while Envoys of an
// earlier process of this node may go on: they may have all of it.
func (p *pool) part(nodes quantity.Units) quantity.Units {
	if p.haunted() && !p.Counted {
		return 0
	}
	return p.Burst / nodes
}

// shed makes the bucket hold no more than its part, which a newer limits document may have lowered.
// Tokens for which there is no room are lost. As many assignments lapse as must, so that the others
// fit.
func (p *pool) shed(nodes quantity.Units) {
	out := p.burstOut()
	p.purse.tokens = min(p.purse.tokens, max(p.Burst/nodes-out, 0))
	if p.excess = out - p.Burst/nodes; p.excess > 0 {
		p.excess -= p.lapsing()
	}
}

// lapsing returns the tokens of assignments that are not renewed any more.
func (p *pool) lapsing() (sum quantity.Units) {
	for _, s := range p.shares {
		for _, g := range s.grants {
			if g.lapses && slices.Contains(g.pools, p) {
				sum += g.burst
			}
		}
	}
	return sum
}

// fill returns the charge that fills the purse: half of what there is room for, or less after the
// store had too few units.
func (p *pool) fill(now quantity.NodeTime, nodes quantity.Units) Charge {
	if p.Counted || now < p.purse.again {
		return Charge{}
	}
	room := p.roomForTokens(nodes)
	if !p.needsPurse(nodes) || room <= 0 {
		return Charge{}
	}
	units := (room + 1) / 2
	if p.purse.most > 0 {
		units = min(units, p.purse.most)
	}
	p.purse.again = now.Add(answerWithin)
	return Charge{p.ID, units}
}

// roomForTokens returns how many tokens may be charged for the purse.
func (p *pool) roomForTokens(nodes quantity.Units) quantity.Units {
	return p.part(nodes) - p.burstOut() - p.purse.tokens
}

// needsPurse reports whether a share wants an assignment and the purse runs low.
func (p *pool) needsPurse(nodes quantity.Units) bool {
	return p.wanted > 0 && p.purse.tokens < max(p.part(nodes)/4, 1)
}

// Charged takes in the store's answer to a Charge: whether it charged the units. A charge whose
// answer was lost counts as refused: its tokens are lost.
func (m *Machine) Charged(now quantity.NodeTime, c Charge, charged bool) {
	p := m.pools[c.Bucket]
	if p == nil {
		return
	}
	p.purse.again = now
	if p.unpaid {
		p.news(now)
	}
	if charged {
		// A charge that was given up may have come after all: what there is no room for is lost.
		room := max(p.part(m.nodes)-p.burstOut(), 0)
		p.purse.tokens = min(p.purse.tokens+c.Units, room)
		p.purse.most *= 2
		p.purse.rest = 0
		return
	}
	p.purse.rest = min(max(2*p.purse.rest, chargeAgain), chargeAtLast)
	p.purse.most, p.purse.again = max(c.Units/4, 1), now.Add(p.purse.rest)
}

// usualBurst returns the tokens that an assignment of a rate gets if the purse has them: its part of half of
// the node's.
func (p *pool) usualBurst(rate int64, nodes quantity.Units) quantity.Units {
	return max(p.part(nodes)/2*quantity.Units(rate)/quantity.Units(max(p.given, rate, 1)), 1)
}

// afford returns the tokens for a new assignment of a rate, 0 if there is not one. Half of the
// node's part is divided between the assignments by their rates, so that there is room for changes.
// The last eighth of it is only for those that must be sent (must): the others can wait.
func (p *pool) afford(rate int64, nodes quantity.Units, must bool) quantity.Units {
	usual := p.usualBurst(rate, nodes)
	switch {
	case p.Counted: // tokens are units of the window, which fit finds room for
		return max(min(usual, (p.part(nodes)-p.burstOut()+1)/2), 0)
	case !must && p.purse.tokens <= p.part(nodes)/8:
		return 0
	}
	return min(usual, (p.purse.tokens+1)/2)
}

// pay takes the tokens of a new assignment from the purse.
func (p *pool) pay(tokens quantity.Units) {
	if !p.Counted {
		p.purse.tokens -= tokens
	}
}
