package sim

import "math/rand/v2"

// wire carries messages from one region to another, in that direction only.
type wire struct {
	random *rand.Rand
	oneWay int64 // µs
	// The number of acts that cut it now: several may overlap.
	cut, hintsCut int
	lossy         []int64 // per mille of messages lost, of each act
	slow          int64   // additional delay, µs
}

// lateBy is the largest delay of a late message, µs.
const lateBy = 4_000_000

// send carries a message to another node of this or another region.
func (n *node) send(to *node, hint bool, deliver func()) {
	if n.r == to.r && (n.alone > 0 || to.alone > 0) {
		n.w.fired(rowPartialCut)
		return
	}
	n.w.carry(n.r.index, to.r.index, hint, deliver)
}

// carry calls deliver when a message arrives, which happens once, never or twice.
func (w *world) carry(from, to int, hint bool, deliver func()) {
	if from == to {
		w.in(500+w.mates.Int64N(500), deliver)
		return
	}
	l := &w.wires[from][to]
	copies, late := 1, int64(0)
	if len(l.lossy) > 0 {
		loss := int64(0)
		for _, more := range l.lossy {
			loss += more
		}
		if l.random.Int64N(1000) < min(loss, 900) {
			w.fired(rowLoss)
			return
		}
		if l.random.Int64N(1000) < min(loss, 200) {
			copies = 2
			w.fired(rowLoss)
		}
		if l.random.Int64N(1000) < min(loss, 100) {
			late = l.random.Int64N(lateBy)
			w.fired(rowLoss)
		}
	}
	for range copies {
		switch {
		case l.cut > 0:
			w.fired(w.cutRow(from, to))
			continue
		case hint && l.hintsCut > 0:
			w.fired(rowHintsCut)
			continue
		}
		if l.slow > 0 {
			w.fired(rowLatency)
		}
		delay := l.oneWay + l.slow + l.random.Int64N(l.oneWay/10+1) + late
		if hint {
			delay += l.random.Int64N(200_000) // other nodes pass gossip on
		}
		w.in(delay, deliver)
		late = l.random.Int64N(1_000_000)
	}
}

// cutRow returns the row of the fault matrix that a cut wire belongs to: a one-way cut, a region
// cut off from all others, or a partial cut.
func (w *world) cutRow(from, to int) int {
	if w.wires[to][from].cut == 0 {
		return rowOneWayCut
	}
	for other := range w.regions {
		if other != from && w.wires[from][other].cut == 0 {
			return rowPartialCut
		}
	}
	return rowFullSplit
}

// wires returns the wires between all regions in their initial state.
func (p *Plan) wires() [][]wire {
	n := len(p.Regions)
	all := make([][]wire, n)
	for i := range all {
		all[i] = make([]wire, n)
		for j := range all[i] {
			all[i][j] = wire{random: p.random(forWires, i*n+j), oneWay: p.OneWay[i][j]}
		}
	}
	return all
}
