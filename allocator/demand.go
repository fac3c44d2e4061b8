package allocator

import "math/bits"

// Second is a second in microseconds.
const Second = 1_000_000

const (
	// demandSamples is how many samples, one per tick, are remembered: five seconds' worth.
	demandSamples = 25
	// demandLeast is the fewest samples an average runs over.
	demandLeast = 2
	// demandReach is the fewest samples it may reach back over, a second's worth; for longer cells it is the cell's.
	demandReach = 5
	// demandUnits is how many units make an average worth something: with fewer it reaches further back.
	demandUnits = 16
	// demandRise is how many units a single sample must have to raise the estimate by itself.
	demandRise = demandUnits / 2
)

// Demand estimates how many units a second callers ask of one bucket in one region. The estimate
// is the mean of the last two samples. Where these have fewer than 16 units, it takes in older
// samples until it has seen 16, as far back as a second, or the cell if that is longer, but at
// most 25 samples (five seconds). If the last sample alone has 8 units or more and a higher rate,
// the estimate is that rate.
//
// So a busy bucket's estimate rises at once and falls within half a second. A quiet bucket's
// neither drops to nothing between two rare requests nor jumps when two come together. A region
// asks for rights and keeps rights by the same estimate: with a more cautious one for asking, it
// would ask back what it has just lent.
//
// Denied units count as demand, but at most twice as many as were counted (or admitted) the sample
// before: a storm of retries is not demand. The zero value is ready to use.
type Demand struct {
	units   [demandSamples]int64 // asked
	elapsed [demandSamples]int64 // microseconds
	count   int                  // samples taken, at most demandSamples
	next    int                  // where the next sample goes
	denied  int64                // units denied and counted in the last sample
}

// Sample takes what was asked in the last elapsed microseconds, which count as half a tick at
// least.
func (d *Demand) Sample(admitted, denied, elapsed int64) {
	elapsed = max(elapsed, minSample)
	d.denied = CountedDenials(denied, d.denied, admitted)
	d.units[d.next], d.elapsed[d.next] = admitted+d.denied, elapsed
	d.next = (d.next + 1) % demandSamples
	d.count = min(d.count+1, demandSamples)
}

// Rate returns the estimate for cells of a length, in milliunits per second.
func (d *Demand) Rate(cell int64) int64 {
	var units, elapsed, last int64
	for n := range d.count {
		i := (d.next - 1 - n + demandSamples) % demandSamples
		enough := units >= demandUnits || (n >= demandReach && elapsed >= cell)
		if n >= demandLeast && enough {
			break
		}
		units += d.units[i]
		elapsed += d.elapsed[i]
		if n == 0 && units >= demandRise {
			last = PerSecond(units, elapsed)
		}
	}
	return max(PerSecond(units, elapsed), last)
}

// minSample is the least time that a sample stands for, in microseconds: of a shorter one even a
// single unit would be taken for a rush.
const minSample = Interval / 2

// Latest returns the estimate with what was asked since the last sample, in milliunits per second.
// rate is what Rate tells. What came since counts only once half a tick has passed, and only if it
// raises the estimate.
func (d *Demand) Latest(rate, admitted, denied, elapsed int64) int64 {
	if elapsed < minSample {
		return rate
	}
	return max(rate, d.since(admitted, denied, elapsed))
}

// since returns the rate of what was asked since the last sample alone.
func (d *Demand) since(admitted, denied, elapsed int64) int64 {
	return PerSecond(admitted+CountedDenials(denied, d.denied, admitted), elapsed)
}

// CountedDenials returns how many of the denied units count as demand: at most twice the larger of
// those that counted in the sample before and those admitted in this one, and of these at least 1.
func CountedDenials(denied, before, admitted int64) int64 {
	return min(denied, 2*max(before, admitted, 1))
}

// PerSecond turns units in a time of elapsed microseconds into milliunits per second.
func PerSecond(units, elapsed int64) int64 {
	if elapsed <= 0 {
		return 0
	}
	rate, _ := mulDiv(units, 1000*Second, elapsed)
	return min(rate, maxRate)
}

// maxRate bounds estimates so that sums over regions stay in range.
const maxRate = 1 << 56

// maxUnits bounds what is expected, so that sums over use, regions and cells stay in range.
const maxUnits = 1 << 52

// Over returns the units that a rate amounts to in a time, rounded up, at most 2^52.
func Over(rate, microseconds int64) int64 {
	if rate <= 0 || microseconds <= 0 {
		return 0
	}
	units, rest := mulDiv(rate, microseconds, 1000*Second)
	if rest > 0 && units < maxUnits {
		units++
	}
	return min(units, maxUnits)
}

// fewUnits is a demand, in milliunits per second, of which a mean over a second or two tells
// nothing.
const fewUnits = 16_000

// Likely returns the demand as a region asks for it, in milliunits per second: the mean over the
// last second or so, unless the demand has plainly changed. The highest of the last samples, which
// tells when to ask, would be too much every other time.
func Likely(mean, latest int64) int64 {
	if latest >= fewUnits && !Changed(mean, latest) {
		return mean
	}
	return latest
}

// Smoothed returns the mean demand after one more tick: it follows the rate by a quarter of the
// difference, and at once where the demand has plainly changed. It is exponential smoothing with a
// time constant of about a second.
func Smoothed(mean, rate int64) int64 {
	step := (rate - mean) / 4
	if step == 0 || Changed(mean, rate) {
		return rate
	}
	return mean + step
}

// Changed says whether a demand has plainly changed: by more than a quarter of what it was, and by
// more than chance explains. Units that are counted for two ticks vary as a Poisson process does,
// with a variance equal to their mean, and three standard deviations are taken for chance. Rates
// are milliunits per second, at least 0.
func Changed(old, now int64) bool {
	const perRate = 9 * 1000 * Second / (2 * Interval)
	apart := max(old-now, now-old)
	hi, lo := bits.Mul64(uint64(apart), uint64(apart))
	chanceHi, chanceLo := bits.Mul64(perRate, uint64(max(old, now)))
	byChance := hi < chanceHi || hi == chanceHi && lo <= chanceLo
	return apart > old/4 && !byChance
}
