package allocator

// Second is a second in microseconds.
const Second = 1_000_000

// demandSamples is how many samples, one per tick, the average and the deviation run over.
const demandSamples = 5

// Demand estimates what callers ask of one bucket in one region. It goes up at once and comes down slowly:
//
//	rate = max(average + standard deviation of the last samples, 0.9 old + 0.1 new)
//
// Denied units count as demand, but at most twice what was counted (or admitted) the sample before: a storm of
// retries is not demand. The zero value is ready to use.
type Demand struct {
	samples [demandSamples]int64 // milliunits per second
	count   int                  // samples taken, at most demandSamples
	next    int                  // where the next sample goes
	rate    int64
	last    int64
	denied  int64 // units denied and counted in the last sample
}

// Sample takes what was asked in the last elapsed microseconds.
func (d *Demand) Sample(admitted, denied, elapsed int64) {
	d.denied = min(denied, 2*max(d.denied, admitted, 1))
	d.last = PerSecond(admitted+d.denied, elapsed)
	d.samples[d.next] = d.last
	d.next = (d.next + 1) % demandSamples
	d.count = min(d.count+1, demandSamples)
	d.rate = max(d.level(), d.rate/10*9+d.last/10)
}

// Rate returns the estimate, in milliunits per second.
func (d *Demand) Rate() int64 { return d.rate }

// Latest returns the last sample, in milliunits per second.
func (d *Demand) Latest() int64 { return d.last }

// Average returns the mean of the last samples, or the last one if that is more. It comes down within a second, and
// is what a region keeps for itself and tells others: Rate would hold rights back for seconds after they fell idle.
func (d *Demand) Average() int64 { return max(d.mean(), d.last) }

func (d *Demand) mean() int64 {
	var sum int64
	for _, s := range d.samples[:d.count] {
		sum += s
	}
	return sum / int64(max(d.count, 1))
}

// level returns the average of the samples plus their standard deviation.
func (d *Demand) level() int64 {
	average := d.mean()
	var squares uint64
	for _, s := range d.samples[:d.count] {
		deviation := uint64(max(s-average, average-s))
		if deviation > 1<<30 { // its square would overflow the sum: such a jump is its own deviation
			return max(average, d.last)
		}
		squares += deviation * deviation
	}
	return average + int64(isqrt(squares/uint64(d.count)))
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

// Over returns the units that a rate amounts to in a time, rounded up.
func Over(rate, microseconds int64) int64 {
	if rate <= 0 || microseconds <= 0 {
		return 0
	}
	units, rest := mulDiv(rate, microseconds, 1000*Second)
	if rest > 0 {
		units++
	}
	return units
}

// isqrt returns the integer square root, by Newton's method from above.
func isqrt(n uint64) uint64 {
	if n < 2 {
		return n
	}
	x := n
	for y := (x + 1) / 2; y < x; y = (x + n/x) / 2 {
		x = y
	}
	return x
}
