package allocator

import (
	"math/bits"

	"github.com/quotad/quotad/quantity"
)

// Second is a second in microseconds.
const Second = 1_000_000

const (
	// demandSamples is how many samples, one per tick, are remembered: five seconds' worth.
	demandSamples = 25
	// demandLeast is the fewest samples in an average.
	demandLeast = 2
	// demandReach is how many samples an average of few units may reach back over: a second's
	// worth, or the cell's worth if the cell is longer.
	demandReach = 5
	// demandUnits is how many units make an average meaningful. With fewer, the average reaches
	// further back.
	demandUnits = 16
	// demandRise is how many units a single sample needs to raise the estimate on its own.
	demandRise = demandUnits / 2
)

// Demand estimates how many units a second callers ask of one bucket in one region. The estimate is
// the mean of the last two samples. Where these have fewer than 16 units, it takes in older samples
// until it has seen 16, as far back as a second, or the cell if that is longer, but at most 25
// samples (five seconds). If the last sample alone has 8 units or more and a higher rate, the
// estimate is that rate.
//
// So a busy bucket's estimate rises at once and falls within half a second. A quiet bucket's
// estimate neither drops to nothing between two rare requests nor jumps when two come together. A
// region asks for rights and keeps rights by the same estimate: with a larger one for asking, it
// would ask back what it has just lent.
//
// Denied units count as demand, but at most twice as many as counted (or were admitted) in the
// sample before: a storm of retries is not demand. Where costs vary, 16 and 8 are so many times the
// spread of the costs (Spread): one large cost is not a rush. The zero value is ready to use.
type Demand struct {
	units   [demandSamples]quantity.Units // demand, with the denied units that count
	elapsed [demandSamples]int64          // microseconds that each sample stands for
	count   int                           // samples taken, at most demandSamples
	next    int                           // where the next sample goes
	denied  quantity.Units                // units denied and counted in the last sample
	sizes   sizes
}

// Sample adds a sample: what was asked in the last elapsed microseconds. elapsed counts as half a
// tick at least.
func (d *Demand) Sample(r Requests, elapsed int64) {
	elapsed = max(elapsed, minSample)
	d.denied = r.counted(d.denied)
	d.units[d.next], d.elapsed[d.next] = r.rated()+d.denied, elapsed
	d.next = (d.next + 1) % demandSamples
	d.count = min(d.count+1, demandSamples)
	d.sizes.add(r)
}

// Rate returns the estimate in milliunits per second, for cells of the given length in
// microseconds.
func (d *Demand) Rate(cell int64) quantity.MilliRate {
	var units quantity.Units
	var elapsed int64
	var last quantity.MilliRate
	spread := quantity.Units(d.Spread())
	for n := range d.count {
		i := (d.next - 1 - n + demandSamples) % demandSamples
		enough := units >= demandUnits*spread || (n >= demandReach && elapsed >= cell)
		if n >= demandLeast && enough {
			break
		}
		units += d.units[i]
		elapsed += d.elapsed[i]
		if n == 0 && units >= demandRise*spread {
			last = PerSecond(units, elapsed)
		}
	}
	return max(PerSecond(units, elapsed), last)
}

// minSample is the least time that a sample stands for, in microseconds. In a shorter time a single
// unit would look like a rush.
const minSample = Interval / 2

// SmoothedCapped returns the mean of what capped classes were admitted, in milliunits per second, after
// so many units in elapsed microseconds: exponential smoothing as in Smoothed, but never at once, since
// they are admitted mostly as a cell opens.
func SmoothedCapped(mean quantity.MilliRate, units quantity.Units, elapsed int64) quantity.MilliRate {
	return towards(mean, PerSecond(units, max(elapsed, minSample)))
}

// Latest returns the estimate in milliunits per second, including what was asked since the last
// sample. rate is the result of Rate. What came since counts only once half a tick has passed, and
// only if it raises the estimate; where costs vary, only if it is as much as raises it by itself.
func (d *Demand) Latest(rate quantity.MilliRate, r Requests, elapsed int64) quantity.MilliRate {
	if units := r.rated() + r.counted(d.denied); elapsed >= minSample &&
		(d.Spread() == 1 || units >= demandRise*quantity.Units(d.Spread())) {
		return max(rate, PerSecond(units, elapsed))
	}
	return rate
}

// CountedDenials returns how many of the denied units count as demand: at most twice the larger of
// those that counted in the sample before and those admitted in this one, and of these at least 1.
func CountedDenials(denied, before, admitted quantity.Units) quantity.Units {
	return min(denied, 2*max(before, admitted, 1))
}

// PerSecond converts units in elapsed microseconds to milliunits per second.
func PerSecond(units quantity.Units, elapsed int64) quantity.MilliRate {
	if elapsed <= 0 {
		return 0
	}
	rate, _ := mulDiv(units, 1000*Second, elapsed)
	return quantity.MilliRate(min(rate, maxRate))
}

// maxRate bounds rates, so that sums over regions stay in range.
const maxRate = 1 << 56

// maxUnits bounds amounts that are expected, so that sums over use, regions and cells stay in
// range.
const maxUnits = 1 << 52

// Over returns the units that come in a time at a rate in milliunits per second, rounded up, at
// most 2^52.
func Over(rate quantity.MilliRate, microseconds int64) quantity.Units {
	if rate <= 0 || microseconds <= 0 {
		return 0
	}
	units, rest := mulDiv(rate, microseconds, 1000*Second)
	if rest > 0 && units < maxUnits {
		units++
	}
	return quantity.Units(min(units, maxUnits))
}

// fewUnits is a demand, in milliunits per second, below which a mean over a second or two tells
// nothing.
const fewUnits = 16_000

// Likely returns the demand by which a region asks, in milliunits per second: the mean over the
// last second or so, unless the demand has plainly changed or is below fewUnits. latest, the higher
// estimate that decides when to ask, would be too much every other time.
func Likely(mean, latest quantity.MilliRate, spread int64) quantity.MilliRate {
	if latest >= quantity.MilliRate(fewUnits*spread) && !Changed(mean, latest, spread) {
		return mean
	}
	return latest
}

// Smoothed returns the mean demand after one more tick: it follows the rate by a quarter of the
// difference, and at once where the demand has plainly changed. It is exponential smoothing with a
// time constant of about a second.
func Smoothed(mean, rate quantity.MilliRate, spread int64) quantity.MilliRate {
	if Changed(mean, rate, spread) {
		return rate
	}
	return towards(mean, rate)
}

// towards returns a mean that follows a rate by a quarter of the difference, and reaches it.
func towards(mean, rate quantity.MilliRate) quantity.MilliRate {
	if step := (rate - mean) / 4; step != 0 {
		return mean + step
	}
	return rate
}

// Changed reports whether a demand has plainly changed: by more than a quarter of what it was, and
// by more than chance explains. Units that are counted for two ticks vary as a Poisson process
// does, with a variance equal to their mean times the spread of their costs, and three standard
// deviations are taken for chance. Rates are milliunits per second, at least 0.
func Changed(old, now quantity.MilliRate, spread int64) bool {
	perRate := uint64(spread) * (9 * 1000 * Second / (2 * Interval))
	apart := max(old-now, now-old)
	hi, lo := bits.Mul64(uint64(apart), uint64(apart))
	chanceHi, chanceLo := bits.Mul64(perRate, uint64(max(old, now)))
	byChance := hi < chanceHi || hi == chanceHi && lo <= chanceLo
	return apart > old/4 && !byChance
}
