package allocator

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

// Demand estimates what callers ask of one bucket in one region: the mean of the last two samples, or of as many more
// as it takes to have seen 16 units (within a second, or the cell if that is longer, at most five seconds); or the last
// sample if that is more and has 8. So where there is much to count it goes up at once and comes down in half a second,
// and where there is little it takes neither the silence between two rare requests for the end of them nor two in a row
// for a rush. A region asks for rights and keeps rights by this one estimate; with a more cautious one for asking it
// would ask back what it had just lent.
//
// Denied units count as demand, but at most twice what was counted (or admitted) the sample before: a storm of
// retries is not demand. The zero value is ready to use.
type Demand struct {
	units   [demandSamples]int64 // asked
	elapsed [demandSamples]int64 // microseconds
	count   int                  // samples taken, at most demandSamples
	next    int                  // where the next sample goes
	denied  int64                // units denied and counted in the last sample
}

// Sample takes what was asked in the last elapsed microseconds.
func (d *Demand) Sample(admitted, denied, elapsed int64) {
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

// RateWith returns the estimate as if what was asked since the last sample were one, however little.
func (d *Demand) RateWith(cell, admitted, denied, elapsed int64) int64 {
	return max(d.Rate(cell), d.Since(admitted, denied, elapsed))
}

// Since returns the rate of what was asked since the last sample alone.
func (d *Demand) Since(admitted, denied, elapsed int64) int64 {
	return PerSecond(admitted+CountedDenials(denied, d.denied, admitted), elapsed)
}

// CountedDenials returns how many of the denied units count as demand, after so many were counted the time before.
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

// mostUnits bounds what is expected, so that sums over use, regions and cells stay in range.
const mostUnits = 1 << 52

// Over returns the units that a rate amounts to in a time, rounded up, at most 2^52.
func Over(rate, microseconds int64) int64 {
	if rate <= 0 || microseconds <= 0 {
		return 0
	}
	units, rest := mulDiv(rate, microseconds, 1000*Second)
	if rest > 0 && units < mostUnits {
		units++
	}
	return min(units, mostUnits)
}
