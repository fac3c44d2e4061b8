package workload

import (
	"fmt"
	"slices"
	"strings"
)

// Setting is the limit that a demand is made for. All rates of a demand are in proportion to the
// limit.
type Setting struct {
	// Regions is the number of regions, 2 to 10.
	Regions int
	// Weights are the regions' weights. None is negative, and at least one is positive; nil: all
	// are equal.
	Weights []int64
	// Limit is the number of units of a window, 1 to a billion. Burst is the capacity of a bucket,
	// 1 to a billion, or 0 for the other algorithms. Each times the window must be below 2^51, as
	// for quotad.
	Limit, Burst int64
	// Window is the window in µs, 1 ms to an hour.
	Window int64
	// Algorithm is the limit's algorithm as the policy names it.
	Algorithm string
	// Length is the length of the run in µs, 1 ms to a day; 0: six windows, but at least 30 s.
	Length int64
	// RoundTrip is the round trip between regions in µs, at least 1. It determines the length of
	// anti-phase waves.
	RoundTrip int64
}

// algorithms maps the policy's names of algorithms to whether they have a burst.
var algorithms = map[string]bool{
	"fixed_window": false, "sliding_window_counter": false, "sliding_window_log": false,
	"token_bucket": true, "leaky_bucket": true,
}

// Usual returns the setting for comparisons that do not name another: a thousand units a second by
// fixed_window over three regions, with a round trip of 80 ms, for 30 s.
func Usual() Setting {
	return Setting{Regions: 3, Limit: 1000, Window: Second, Algorithm: "fixed_window",
		RoundTrip: 80_000}
}

// whole returns the setting with its defaults filled in.
func (s Setting) whole() Setting {
	if s.Weights == nil {
		s.Weights = slices.Repeat([]int64{1}, max(s.Regions, 0))
	}
	if s.Length == 0 {
		s.Length = max(6*s.Window, 30*Second)
	}
	return s
}

// validate returns an error that says what is wrong with the setting, or nil.
func (s Setting) validate() error {
	s = s.whole()
	burst, known := algorithms[s.Algorithm]
	var weights int64
	for _, w := range s.Weights {
		weights += max(w, 0)
	}
	const billion, minute = 1_000_000_000, 60 * Second
	switch {
	case s.Regions < 2 || s.Regions > 10:
		return fmt.Errorf("workload: %d regions cannot share a limit here: give 2 to 10", s.Regions)
	case len(s.Weights) != s.Regions || slices.Min(s.Weights) < 0 || weights < 1 ||
		slices.Max(s.Weights) > billion:
		return fmt.Errorf("workload: weights %v do not split a limit over %d regions: give one for each, 0 to a billion, not all 0", s.Weights, s.Regions)
	case s.Limit < 1 || s.Limit > billion:
		return fmt.Errorf("workload: a limit of %d units is out of range: give 1 to a billion",
			s.Limit)
	case s.Window < Second/1000 || s.Window > 60*minute:
		return fmt.Errorf("workload: a window of %d µs is out of range: give 1 ms to an hour",
			s.Window)
	case !known:
		return fmt.Errorf("workload: algorithm %q is unknown: give one that the policy names",
			s.Algorithm)
	case burst && (s.Burst < 1 || s.Burst > billion) || !burst && s.Burst != 0:
		return fmt.Errorf("workload: a burst of %d units does not fit %s: give 1 to a billion to a bucket, and 0 to others", s.Burst, s.Algorithm)
	case max(s.Limit, s.Burst) >= (1<<51)/s.Window:
		return fmt.Errorf("workload: %d units in a window of %d µs are too many to compute with: their product must be below 2^51", max(s.Limit, s.Burst), s.Window)
	case s.Length < Second/1000 || s.Length > 24*60*minute:
		return fmt.Errorf("workload: a run of %d µs is out of range: give 1 ms to a day", s.Length)
	case s.RoundTrip < 1:
		return fmt.Errorf("workload: a round trip of %d µs is out of range: give 1 or more",
			s.RoundTrip)
	}
	return nil
}

// rate returns parts thousandths of the limit, as a rate.
func (s Setting) rate(parts int64) int64 {
	return mulDiv(s.Limit*parts, Second, s.Window)
}

// split returns parts thousandths of the limit, divided among the regions by weight.
func (s Setting) split(parts int64) []int64 { return Split(s.rate(parts), s.Weights) }

// String says how the setting differs from Usual, for the name of a workload.
func (s Setting) String() string {
	usual := Usual()
	var words []string
	if s.Limit != usual.Limit || s.Window != usual.Window {
		words = append(words, fmt.Sprintf("%d per %s", s.Limit, span(s.Window)))
	}
	if s.Regions != usual.Regions {
		words = append(words, fmt.Sprintf("%d regions", s.Regions))
	}
	if s.Algorithm != usual.Algorithm {
		words = append(words, s.Algorithm)
	}
	return strings.Join(words, ", ")
}

// span formats a time in its largest whole unit.
func span(t int64) string {
	switch {
	case t%(60*Second) == 0 && t > 60*Second:
		return fmt.Sprintf("%d min", t/(60*Second))
	case t%Second == 0:
		return fmt.Sprintf("%d s", t/Second)
	case t%1000 == 0:
		return fmt.Sprintf("%d ms", t/1000)
	default:
		return fmt.Sprintf("%d µs", t)
	}
}
