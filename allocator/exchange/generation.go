package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// believes reports whether some node may have begun this generation. last is the highest generation
// that was believed before. A generation up to last is always believed.
//
// A node begins a generation with the milliseconds of its own clock, or with up to GenerationStep
// more than the latest generation it knew. So no honest generation is ahead of the store's clock by
// more than MaxClockStep and that; where several were begun while the clock was behind, the last is
// believed as many seconds later at most. A higher one is refused and counted. To believe it would
// be a fault: whoever hears of a generation refuses the rows of all lower ones, so it would refuse
// all honest rows until the clock gets there.
//
// Before the store has told its time, this node's own clock serves instead. It may be MaxClockStep
// behind, so the bound is that much further ahead.
func (m *Machine) believes(now quantity.NodeTime, generation, last uint64) bool {
	latest := m.storeTime(now) + algorithms.MaxClockStep
	if !m.clockKnown {
		latest = quantity.StoreTime(now.Add(m.nodeClock) + 2*algorithms.MaxClockStep)
	}
	if generation <= last || generation <= uint64(max(latest, 0)/1000+algorithms.GenerationStep) {
		return true
	}
	m.stats.GenerationsRefused++
	return false
}

// believes says the same of a generation of the peer's store. It remembers the highest generation
// it believed.
func (p *peer) believes(m *Machine, now quantity.NodeTime, generation uint64) bool {
	if !m.believes(now, generation, p.lastGeneration) {
		return false
	}
	p.lastGeneration = max(p.lastGeneration, generation)
	return true
}

// noteClock notes the node's own clock; 0 means that the driver did not tell it.
func (m *Machine) noteClock(now quantity.NodeTime, clock quantity.StoreTime) {
	if clock > 0 {
		m.nodeClock = int64(min(clock, maxTime)) - int64(now)
	}
}
