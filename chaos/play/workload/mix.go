package workload

import (
	"fmt"
	"math/rand/v2"
)

// Mix draws a random difficult demand for a setting: one to four ingredients, each for a random
// part of the run, added to a random ground level. Ingredients are bursts at the end of windows,
// anti-phase waves, surges, steps from nothing, and skew. Their intensities keep the total demand
// around the limit, where mistakes show. Half of the mixes have heavy-tailed costs. Mix finds
// faults that random runs with steady demand miss. It fails for a setting out of range.
func Mix(s Setting, seed uint64) (*Workload, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	s = s.whole()
	random := source(seed, 1<<32) // a stream that Draw does not use
	w := s.quiet(fmt.Sprintf("mix-%d", seed))
	pieces := ground(s, random)
	for range 1 + random.IntN(4) {
		from := random.Int64N(s.Length)
		to := from + 1 + random.Int64N(s.Length-from)
		pieces = append(pieces, ingredients[random.IntN(len(ingredients))](s, random, from, to)...)
	}
	w.Arrivals = Draw(seed, s.costs(random.IntN(2) == 0), pieces...)
	return w, nil
}

// ingredients are what Mix mixes. Each returns pieces within from and to.
var ingredients = []func(s Setting, random *rand.Rand, from, to int64) []Piece{
	edges, waves, crowd, awakening,
}

// ground returns a demand of up to 0.6 L at all times, over the regions by weight or at random.
func ground(s Setting, random *rand.Rand) []Piece {
	parts := random.Int64N(600)
	if random.IntN(2) == 0 {
		return steady(0, s.Length, s.split(parts))
	}
	return steady(0, s.Length, Split(s.rate(parts), anyWeights(s, random)))
}

// anyWeights returns random weights: a few large ones and many small ones.
func anyWeights(s Setting, random *rand.Rand) []int64 {
	weights := make([]int64, s.Regions)
	for i := range weights {
		weights[i] = 1 << random.IntN(8)
	}
	return weights
}

// edges returns bursts of 0.3 to 1.3 L in the last twentieth of windows, each in a random region.
func edges(s Setting, random *rand.Rand, from, to int64) []Piece {
	var pieces []Piece
	for k := from / s.Window; (k+1)*s.Window <= to; k++ {
		pieces = append(pieces, edge(s, k, random.IntN(s.Regions), 300+random.Int64N(1000)))
	}
	return pieces
}

// waves returns anti-phase waves of 0.5 to 1.5 L, in turns of a quarter to four round trips.
func waves(s Setting, random *rand.Rand, from, to int64) []Piece {
	return square(s, from, to, s.RoundTrip/4<<random.IntN(5), 500+random.Int64N(1000))
}

// crowd returns a surge of 1 to 4 L, over the regions at random.
func crowd(s Setting, random *rand.Rand, from, to int64) []Piece {
	return steady(from, to, Split(s.rate(1000+random.Int64N(3000)), anyWeights(s, random)))
}

// awakening returns a demand of 0.3 to 1.2 L in one region.
func awakening(s Setting, random *rand.Rand, from, to int64) []Piece {
	return []Piece{{Region: random.IntN(s.Regions), From: from, To: to,
		Rate: s.rate(300 + random.Int64N(900))}}
}
