package policy

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

// readCapacity reads how many units the limit has, in which window, and its burst.
func readCapacity(o strictyaml.Object, l *Limit) {
	l.Limit = strictyaml.Needed(o, "limit", "write how many units all regions together may admit in a window, such as 1000",
		strictyaml.Whole[quantity.Units](1, MaxLimit))
	readWindowOrPeriod(o, l)
	if f, ok := o.Field("burst"); ok {
		l.Burst = readBurst(f, l.Algorithm)
	} else if l.Algorithm.Bucket() {
		l.Burst = l.Limit
	}
	checkCapacity(o, l)
}

// readBurst reads the burst of an entry, which only buckets have.
func readBurst(f strictyaml.Value, a Algorithm) quantity.Units {
	if a != "" && !a.Bucket() {
		f.Fail(fmt.Sprintf("burst belongs to %s and %s, not to %s", TokenBucket, LeakyBucket, a),
			"remove it")
		return 0
	}
	return quantity.Units(f.Integer(1, MaxBurst))
}

// checkCapacity compares units with the most that the algorithm can count exactly, or remember. An
// algorithm or a window that could not be read is reported already.
func checkCapacity(o strictyaml.Object, l *Limit) {
	if l.Algorithm == "" || l.Window == 0 {
		return
	}
	if l.Algorithm == SlidingWindowLog && l.Limit > MaxLogLimit {
		o.At("limit").Fail(
			fmt.Sprintf("%d is too large for %s, which remembers every admission", l.Limit,
				l.Algorithm),
			fmt.Sprintf("write at most %d, or use %s", MaxLogLimit, SlidingWindowCounter))
	}
	if f, ok := o.Field("limit"); ok {
		checkExact(f, l.Limit, l)
	}
	f, ok := o.Field("burst")
	if !ok {
		return
	}
	if checkExact(f, l.Burst, l) && l.Limit > 0 && l.Algorithm.Bucket() &&
		fillsLate(l.Limit, l.Burst, l.Window) {
		f.Fail(fmt.Sprintf("%d takes over ten years to fill with %d in %s", l.Burst, l.Limit,
			FormatWindow(l.Window)), "write a smaller burst")
	}
}

// fillsLate reports whether an empty bucket takes longer than MaxFill to fill at a limit of at
// least 1.
func fillsLate(limit, burst quantity.Units, window time.Duration) bool {
	hi, lo := bits.Mul64(uint64(burst), uint64(window.Microseconds()))
	if hi >= uint64(limit) {
		return true
	}
	fill, _ := bits.Div64(hi, lo, uint64(limit))
	return fill > uint64(MaxFill.Microseconds())
}

// MaxFill is the longest that an empty bucket may take to fill. A burst that takes longer
// practically never comes back.
const MaxFill = 10 * 366 * 24 * time.Hour

// checkExact reports whether the algorithm can multiply the units by the window without rounding,
// and refuses them if not.
func checkExact(f strictyaml.Value, units quantity.Units, l *Limit) bool {
	window := l.Window.Microseconds()
	if algorithms.Tick(l.Algorithm, units, window) != 0 {
		return true
	}
	mend := fmt.Sprintf("write at most %d", maxExact(l.Algorithm, window))
	if shorterHolds(l.Algorithm, units, window) {
		mend += ", or a shorter window"
	}
	f.Fail(fmt.Sprintf("%d is too large for its window of %s under %s", units,
		FormatWindow(l.Window), l.Algorithm), mend)
	return false
}

// shorterHolds reports whether a window shorter than the given one, in microseconds, can hold that
// many units. Ticks are powers of ten, so no shorter window holds more than the nearest power of
// ten below.
func shorterHolds(a Algorithm, units quantity.Units, window int64) bool {
	for shorter := MinWindow.Microseconds(); shorter < window; shorter *= 10 {
		if algorithms.Tick(a, units, shorter) != 0 {
			return true
		}
	}
	return false
}

// maxExact returns the largest number of units that fits a window, given in microseconds. It
// searches for it, so that the bound is stated in one place only, algorithms.Tick.
func maxExact(a Algorithm, window int64) quantity.Units {
	fits, beyond := quantity.Units(1), quantity.Units(MaxLimit)
	for beyond-fits > 1 {
		middle := fits + (beyond-fits)/2
		if algorithms.Tick(a, middle, window) != 0 {
			fits = middle
		} else {
			beyond = middle
		}
	}
	return fits
}
