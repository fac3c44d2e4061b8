package workload

import "fmt"

// shape is a demand with a name.
type shape struct {
	name, about string
	// heavy says that costs have a heavy tail.
	heavy bool
	// pieces returns the demand for a setting, to be drawn by Draw.
	pieces func(Setting) []Piece
	// step returns the rise of demand to measure; it is nil if there is none.
	step func(Setting) *Step
}

// shapes are the demands with names. L is the limit, and F a region's fixed split.
var shapes = []shape{
	{name: "even-80", about: "every region asks for 0.8 of its F", pieces: even(800)},
	{name: "even-90", about: "every region asks for 0.9 of its F", pieces: even(900)},
	{name: "even-95", about: "every region asks for 0.95 of its F", pieces: even(950)},
	{name: "even-100", about: "every region asks for its F", pieces: even(1000)},
	{name: "one-region", about: "all demand is in region 0: 0.95 L", pieces: oneRegion},
	{name: "zipf", about: "0.95 L over the regions as 1, 1/2, 1/3, ...", pieces: zipf(950)},
	{name: "contention", about: "1.5 L over the regions as 1, 1/2, 1/3, ...: more than there is",
		pieces: zipf(1500)},
	{name: "follow-the-sun", about: "0.9 L whose peak goes round the regions once",
		pieces: followTheSun},
	{name: "step", about: "after a third of the run region 0 asks for 15 times as much, 0.9 L, the others for half as much, together 0.05 L", pieces: stepped, step: stepOf},
	{name: "under-threshold",
		about: "every region asks for 1.9 F, so each for so little of L that a scheme which reports large users alone may hear of none", pieces: even(1900)},
	{name: "anti-phase-0.5", about: "half the regions ask for 0.95 L in turns of half a round trip",
		pieces: antiPhase(500)},
	{name: "anti-phase-1", about: "half the regions ask for 0.95 L in turns of one round trip",
		pieces: antiPhase(1000)},
	{name: "anti-phase-2", about: "half the regions ask for 0.95 L in turns of two round trips",
		pieces: antiPhase(2000)},
	{name: "anti-phase-4", about: "half the regions ask for 0.95 L in turns of four round trips",
		pieces: antiPhase(4000)},
	{name: "cell-end", about: "0.3 L evenly, and 0.65 L from one region in the last twentieth of each window, another each time", pieces: cellEnd},
	{name: "surge", about: "0.5 L evenly, but in the second third of the run 3 L, as 1, 1/2, 1/3, ...", pieces: surge},
	{name: "heavy-tail",
		about: "0.9 L over the regions as 1, 1/2, 1/3, ..., with costs of 1, 2, 4, ... units of equal parts", heavy: true, pieces: zipf(900)},
}

// Names lists the demands that Make knows, in a fixed order.
func Names() []string {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		names[i] = s.name
	}
	return names
}

// About describes the named demand in half a sentence, or returns "".
func About(name string) string {
	for _, s := range shapes {
		if s.name == name {
			return s.about
		}
	}
	return ""
}

// Make draws the named demand for a setting. Arrivals are Poisson. The same arguments give the same
// workload on every machine. Make fails for a name that Names does not list, and for a setting out
// of range.
//
// If the limit is large, requests cost more than a unit each, so that a window has at most a few
// thousand of them.
func Make(name string, s Setting, seed uint64) (*Workload, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	s = s.whole()
	for _, shape := range shapes {
		if shape.name == name {
			return shape.make(s, seed), nil
		}
	}
	return nil, fmt.Errorf("workload: no demand is named %q: Names lists those that are", name)
}

// make draws the demand for a valid setting with its defaults filled in.
func (d shape) make(s Setting, seed uint64) *Workload {
	w := s.quiet(d.name)
	if d.step != nil {
		w.Step = d.step(s)
	}
	w.Arrivals = Draw(seed, s.costs(d.heavy), d.pieces(s)...)
	return w
}

// quiet returns the workload of the setting without requests. Its name is the demand's, with what
// is unusual in the setting.
func (s Setting) quiet(name string) *Workload {
	if unusual := s.String(); unusual != "" {
		name += " (" + unusual + ")"
	}
	return &Workload{
		Name: name, Regions: s.Regions, Limit: s.Limit, Burst: s.Burst, Window: s.Window,
		Algorithm:    s.Algorithm,
		Entitlements: Split(s.Limit, s.Weights), Length: s.Length,
	}
}

// costs returns what requests cost: a unit, or, for limits above some two thousand units, so much
// that a window has some two thousand requests. The largest cost of a heavy tail is at most a
// fiftieth of the limit, and of a bucket's burst.
func (s Setting) costs(heavy bool) Costs {
	c := Costs{Unit: (s.Limit + 1999) / 2000}
	if !heavy {
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

// antiPhase returns a demand of even and odd regions in turns of parts thousandths of a round trip.
func antiPhase(parts int64) func(Setting) []Piece {
	return func(s Setting) []Piece {
		return square(s, 0, s.Length, mulDiv(s.RoundTrip, parts, 1000), 950)
	}
}

// square returns anti-phase demand of parts thousandths of the limit from from to to: for one turn
// in the regions of even number, for the next in the odd ones. A run has at most twenty thousand
// turns; if need be, turns are longer.
func square(s Setting, from, to, turn, parts int64) []Piece {
	turn = max(turn, s.Length/20_000, 1)
	var pieces []Piece
	for k, at := 0, from; at < to; k, at = k+1, at+turn {
		weights := make([]int64, s.Regions)
		for i := k % 2; i < s.Regions; i += 2 {
			weights[i] = 1
		}
		pieces = append(pieces, steady(at, min(at+turn, to), Split(s.rate(parts), weights))...)
	}
	return pieces
}

// cellEnd returns a demand with a burst in the last twentieth of each window.
func cellEnd(s Setting) []Piece {
	pieces := steady(0, s.Length, s.split(300))
	for k := int64(0); k*s.Window < s.Length; k++ {
		pieces = append(pieces, edge(s, k, int(k)%s.Regions, 650))
	}
	return pieces
}

// edge returns a demand of parts thousandths of a window's limit in one region, in the last
// twentieth of window k.
func edge(s Setting, k int64, region int, parts int64) Piece {
	to := min((k+1)*s.Window, s.Length)
	return Piece{Region: region, From: (k+1)*s.Window - s.Window/20, To: to,
		Rate: 20 * s.rate(parts)}
}

func surge(s Setting) []Piece {
	from, to := s.Length/3, 2*(s.Length/3)
	pieces := steady(0, from, s.split(500))
	pieces = append(pieces, steady(from, to, Split(s.rate(3000), ranks(s.Regions)))...)
	return append(pieces, steady(to, s.Length, s.split(500))...)
}
