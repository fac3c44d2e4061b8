package workload

import (
	"cmp"
	"fmt"
	"slices"
)

// shape is a demand with a name.
type shape struct {
	name string
	// pieces returns the demand for a setting, to be drawn by Draw.
	pieces func(Setting) []Piece
	// heavy says that costs have a heavy tail, large that they are up to half of the limit.
	heavy, large bool
	// step returns the rise of demand to measure; it is nil if there is none.
	step func(Setting) *Step
}

// shapes are the demands with names. L is the limit, and F a region's fixed split.
var shapes = []shape{
	// Every region asks for this part of its F.
	{name: "even-80", pieces: even(800)},
	{name: "even-90", pieces: even(900)},
	{name: "even-95", pieces: even(950)},
	{name: "even-100", pieces: even(1000)},
	// All demand is in region 0: 0.95 L.
	{name: "one-region", pieces: oneRegion},
	// 0.95 L over the regions as 1, 1/2, 1/3, ...
	{name: "zipf", pieces: zipf(950)},
	// 1.5 L, likewise: more than there is.
	{name: "contention", pieces: zipf(1500)},
	// 0.9 L, whose peak goes round the regions once.
	{name: "follow-the-sun", pieces: followTheSun},
	// After a third of the run region 0 asks for 15 times as much, 0.9 L, the others for half as
	// much, together 0.05 L.
	{name: "step", pieces: stepped, step: stepOf},
	// Every region asks for 1.9 F, so each for so little of L that a scheme which reports large
	// users alone may hear of none.
	{name: "under-threshold", pieces: even(1900)},
	// Half the regions ask for 0.95 L, in turns of so many round trips.
	{name: "anti-phase-0.5", pieces: antiPhase(500)},
	{name: "anti-phase-1", pieces: antiPhase(1000)},
	{name: "anti-phase-2", pieces: antiPhase(2000)},
	{name: "anti-phase-4", pieces: antiPhase(4000)},
	// 0.3 L evenly, and 0.65 L from one region in the last twentieth of each window, another each
	// time.
	{name: "cell-end", pieces: cellEnd},
	// 0.5 L evenly, but in the second third of the run 3 L, as 1, 1/2, 1/3, ...
	{name: "surge", pieces: surge},
	// 0.9 L over the regions as 1, 1/2, 1/3, ..., with costs of 1, 2, 4, ... units of equal parts.
	{name: "heavy-tail", pieces: zipf(900), heavy: true},
	// 0.8 and 0.95 L over the regions as 1, 1/2, 1/3, ..., with costs of 1 to L/2 (Pareto, exponent
	// 1.2).
	{name: "large-costs-80", pieces: zipf(800), large: true},
	{name: "large-costs-95", pieces: zipf(950), large: true},
}

// Names lists the demands that Make knows, in a fixed order.
func Names() []string {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		names[i] = s.name
	}
	return names
}

// Make draws the named demand for a setting. Arrivals are Poisson. The same arguments give the same
// workload on every machine. Make fails for a name that Names does not list.
//
// If the limit is large, requests cost more than a unit each, so that a window has at most a few
// thousand of them.
func Make(name string, s Setting, seed uint64) (*Workload, error) {
	i := slices.IndexFunc(shapes, func(d shape) bool { return d.name == name })
	if i < 0 {
		return nil, fmt.Errorf("workload: no demand is named %q: Names lists those that are", name)
	}
	d := shapes[i]
	if s.Length == 0 {
		s.Length = max(6*s.Window, 30*Second)
	}
	if unusual := s.String(); unusual != "" {
		name += " (" + unusual + ")"
	}
	w := &Workload{Name: name, Regions: s.Regions, Limit: s.Limit, Burst: s.Burst, Window: s.Window,
		Algorithm: s.Algorithm, Entitlements: Split(s.Limit, s.alike()), Length: s.Length}
	if d.step != nil {
		w.Step = d.step(s)
	}
	w.Arrivals = Draw(seed, s.costs(d), d.pieces(s)...)
	return w, nil
}

// costs returns what requests cost: a unit, or, for limits above some two thousand units, so much
// that a window has some two thousand requests. The largest cost of a heavy tail is at most a
// fiftieth of the limit, and of a bucket's burst; large costs are up to half of it.
func (s Setting) costs(d shape) Costs {
	c := Costs{Unit: (s.Limit + 1999) / 2000}
	if d.large {
		return Costs{Unit: 1, Most: cmp.Or(s.Burst, s.Limit) / 2}
	}
	if !d.heavy {
		return c
	}
	bound := s.Limit / 50
	if s.Burst > 0 {
		bound = min(bound, s.Burst/50)
	}
	for c.Octaves < 10 && 2*c.most() <= bound {
		c.Octaves++
	}
	return c
}

// even returns a demand of parts thousandths of its F in every region.
func even(parts int64) func(Setting) []Piece {
	return func(s Setting) []Piece { return steady(0, s.Length, s.split(parts)) }
}

// zipf returns a demand of parts thousandths of the limit, over the regions in proportion to
// 1/rank.
func zipf(parts int64) func(Setting) []Piece {
	return func(s Setting) []Piece {
		return steady(0, s.Length, Split(s.rate(parts), ranks(s.Regions)))
	}
}

// ranks returns weights in proportion to 1, 1/2, 1/3, ...: 2520 is divisible by 1 to 10.
func ranks(regions int) []int64 {
	weights := make([]int64, regions)
	for i := range weights {
		weights[i] = 2520 / int64(i+1)
	}
	return weights
}

func oneRegion(s Setting) []Piece {
	return []Piece{{Region: 0, To: s.Length, Rate: s.rate(950)}}
}

// hours is the number of steps of a day in followTheSun.
const hours = 48

// followTheSun gives each region a triangle of demand around its noon, above a floor of a twentieth
// of the peak. The sum over the regions is constant.
func followTheSun(s Setting) []Piece {
	var pieces []Piece
	regions := int64(s.Regions)
	for hour := range int64(hours) {
		weights := make([]int64, regions)
		for i := range regions {
			// A day has hours * regions parts. The distance to noon is at most half a day.
			day := hours * regions
			away := (hour*regions - i*hours + day) % day
			away = min(away, day-away)
			weights[i] = day/2 - away + day/40 + 1
		}
		from, to := s.Length*hour/hours, s.Length*(hour+1)/hours
		pieces = append(pieces, steady(from, to, Split(s.rate(900), weights))...)
	}
	return pieces
}

// stepOf returns the rise in region 0.
func stepOf(s Setting) *Step { return &Step{At: s.Length / 3, Region: 0} }

// stepped raises region 0 from 0.06 L to 0.9 L. The other regions together ask for 0.1 L before,
// and for half of that after.
func stepped(s Setting) []Piece {
	at := stepOf(s).At
	before, after := othersAlike(s, 100), othersAlike(s, 50)
	before[0], after[0] = s.rate(60), s.rate(900)
	return append(steady(0, at, before), steady(at, s.Length, after)...)
}

// othersAlike splits parts thousandths of the limit evenly among all regions but the first.
func othersAlike(s Setting, parts int64) []int64 {
	weights := make([]int64, s.Regions)
	for i := range weights[1:] {
		weights[i+1] = 1
	}
	return Split(s.rate(parts), weights)
}

// antiPhase returns a demand in turns of parts thousandths of a round trip: for one turn in the
// regions of even number, for the next in the odd ones. A run has at most twenty thousand turns; if
// need be, turns are longer.
func antiPhase(parts int64) func(Setting) []Piece {
	return func(s Setting) (pieces []Piece) {
		turn := max(MulDiv(s.RoundTrip, parts, 1000), s.Length/20_000, 1)
		for k, at := 0, int64(0); at < s.Length; k, at = k+1, at+turn {
			weights := make([]int64, s.Regions)
			for i := k % 2; i < s.Regions; i += 2 {
				weights[i] = 1
			}
			pieces = append(pieces, steady(at, min(at+turn, s.Length), Split(s.rate(950), weights))...)
		}
		return pieces
	}
}

// cellEnd returns a demand with a burst in the last twentieth of each window.
func cellEnd(s Setting) []Piece {
	pieces := steady(0, s.Length, s.split(300))
	for k := int64(0); k*s.Window < s.Length; k++ {
		end := (k + 1) * s.Window
		pieces = append(pieces, Piece{Region: int(k) % s.Regions, From: end - s.Window/20,
			To: min(end, s.Length), Rate: 20 * s.rate(650)})
	}
	return pieces
}

func surge(s Setting) []Piece {
	from, to := s.Length/3, 2*(s.Length/3)
	pieces := steady(0, from, s.split(500))
	pieces = append(pieces, steady(from, to, Split(s.rate(3000), ranks(s.Regions)))...)
	return append(pieces, steady(to, s.Length, s.split(500))...)
}
