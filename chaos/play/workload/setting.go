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
	// Limit is the number of units of a window. Burst is the capacity of a bucket, or 0 for the other
	// algorithms.
	Limit, Burst int64
	// Window is the window in µs, whole seconds.
	Window int64
	// Algorithm is the limit's algorithm as the policy names it.
	Algorithm string
	// Length is the length of the run in µs; 0: six windows, but at least 30 s.
	Length int64
	// RoundTrip is the round trip between regions in µs, at least 1. It determines the length of
	// anti-phase waves.
	RoundTrip int64
}

// Usual returns the setting for comparisons that do not name another: a thousand units a second by
// fixed_window over three regions, with a round trip of 80 ms, for 30 s.
func Usual() Setting {
	return Setting{Regions: 3, Limit: 1000, Window: Second, Algorithm: "fixed_window",
		RoundTrip: 80_000}
}

// rate returns parts thousandths of the limit, as a rate.
func (s Setting) rate(parts int64) int64 {
	return MulDiv(s.Limit*parts, Second, s.Window)
}

// split returns parts thousandths of the limit, divided evenly among the regions.
func (s Setting) split(parts int64) []int64 { return Split(s.rate(parts), s.alike()) }

// alike returns equal weights of the regions.
func (s Setting) alike() []int64 { return slices.Repeat([]int64{1}, s.Regions) }

// String says how the setting differs from Usual, for the name of a workload.
func (s Setting) String() string {
	usual := Usual()
	var words []string
	if s.Limit != usual.Limit || s.Window != usual.Window {
		words = append(words, fmt.Sprintf("%d per %d s", s.Limit, s.Window/Second))
	}
	if s.Regions != usual.Regions {
		words = append(words, fmt.Sprintf("%d regions", s.Regions))
	}
	if s.Algorithm != usual.Algorithm {
		words = append(words, s.Algorithm)
	}
	return strings.Join(words, ", ")
}
