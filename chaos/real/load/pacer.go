package load

import "time"

// Quantum is the shortest time between two wake-ups of a generator that keeps its pace.
// Config.Burst is the maximum number of requests per Quantum.
const Quantum = 5 * time.Millisecond

// pacer decides how many requests to send when, from the schedule and the times at which it is
// called. It reads no clock. Times are since the start of the run and never decrease.
type pacer struct {
	schedule *schedule
	burst    int64 // maximum requests per quantum, 0 for the default
	behind   int64 // due and not sent
	quantum  int64 // number of the present quantum
	sent     int64 // requests sent in that quantum
}

// setRate changes the rate at now. Requests due until then remain due.
func (p *pacer) setRate(now time.Duration, r Rate) {
	p.behind += p.schedule.advance(now)
	p.schedule.setRate(now, r)
}

// take returns how many requests to send at now.
func (p *pacer) take(now time.Duration) int64 {
	p.behind += p.schedule.advance(now)
	if q := int64(now / Quantum); q != p.quantum {
		p.quantum, p.sent = q, 0
	}
	n := min(p.behind, max(0, p.bound()-p.sent))
	p.behind -= n
	p.sent += n
	return n
}

// bound returns the maximum number of requests in one quantum.
func (p *pacer) bound() int64 {
	if p.burst > 0 {
		return p.burst
	}
	return defaultBurst(p.schedule.rate, p.schedule.cost)
}

// defaultBurst returns four times what an even pace sends in a quantum, and at least four, so that
// a generator that fell behind catches up at four times its pace.
func defaultBurst(r Rate, cost int64) int64 {
	perQuantum := mulDiv(uint64(r), uint64(Quantum), nanosPerMilli) / uint64(cost)
	return 4 * (int64(perQuantum) + 1)
}

// wake returns when take should be called again, or never. At a pace faster than the quantum this
// is at whole quanta; at a slower pace it is when the next request is due.
func (p *pacer) wake(now time.Duration) time.Duration {
	if p.behind > 0 {
		return (now/Quantum + 1) * Quantum
	}
	due := p.schedule.due
	if due == never || p.schedule.spacing() >= Quantum {
		return due
	}
	return (due + Quantum - 1) / Quantum * Quantum
}
