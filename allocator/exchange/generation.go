package exchange

import "github.com/quotad/quotad/algorithms"

// A generation is milliseconds of the clock of the node that began it, or one more than the latest
// that it knew. So none is further ahead of the store's clock than a node's clock may be:
// MaxClockStep. What others name beyond that is refused and counted, for to believe it would be to
// refuse all that is honest until the clock has come there: who is told of a generation refuses the
// rows of lower ones. What was believed once is no news, and is heard again.
//
// Where the store has not told the time yet, this node's own clock must do, which may itself be a
// step behind.

// believes says whether a generation may have been begun, as far as clocks tell; known is the
// highest one known before.
func (m *Machine) believes(now int64, generation, last uint64) bool {
	latest := now + m.offset + algorithms.MaxClockStep
	if !m.clockKnown {
		latest = now + m.nodeClock + 2*algorithms.MaxClockStep
	}
	if generation <= last || generation <= uint64(max(latest, 0)/1000) {
		return true
	}
	m.stats.GenerationsRefused++
	return false
}

// believes says the same of a peer's generation, and remembers what it believes.
func (p *peer) believes(m *Machine, now int64, generation uint64) bool {
	if !m.believes(now, generation, p.lastGeneration) {
		return false
	}
	p.lastGeneration = max(p.lastGeneration, generation)
	return true
}

// noteClock notes this node's own clock.
func (m *Machine) noteClock(now, clock int64) {
	if clock > 0 {
		m.nodeClock = min(clock, maxTime) - now
	}
}
