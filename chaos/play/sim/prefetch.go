package sim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// prefetch changes a plan so that nodes hold units of most limits that allow it, and adds loads
// that are dense enough to make nodes do so. It has a random stream of its own, so that seeds keep
// their meaning without it.
func prefetch(p *Plan) {
	random := p.random(forPrefetch, 0)
	lines := strings.Split(p.Document, "\n")
	limit := -1
	for i, line := range lines {
		if !strings.Contains(line, "algorithm: ") {
			continue
		}
		limit++
		if !strings.Contains(line, "fixed_window") && !strings.Contains(line,
			"sliding_window_counter") || random.IntN(4) == 0 {
			continue
		}
		// Chunks are for limits of which nodes use some units within a moment.
		units := []int64{500, 2000, 10_000}[random.IntN(3)]
		line = limitUnits.ReplaceAllString(line, fmt.Sprintf(", limit: %d,", units))
		lines[i] = strings.Replace(line, "}", ", consistency: prefetch}", 1)
		for range 2 + random.IntN(4) {
			a := Act{Do: Steady, Region: random.IntN(len(p.Regions)), Limit: limit,
				Key: random.IntN(2), For: allocator.Second/2 + random.Int64N(4*allocator.Second)}
			a.Amount = 20_000 + random.Int64N(180_000)
			a.Cost = quantity.Units(max(units*1000/a.Amount/(1+random.Int64N(4)), 1))
			a.At = random.Int64N(max(p.Heal-a.For, 1))
			p.Acts = append(p.Acts, a)
		}
	}
	p.Document = strings.Join(lines, "\n")
	freezes(p)
}

// freezes has machines with nodes stand still in a third of the plans, at times at which nodes hold units.
func freezes(p *Plan) {
	random := p.random(forFrozen, 0)
	if random.IntN(3) > 0 {
		return
	}
	for _, a := range p.Acts {
		if a.Do != Steady || a.Amount < 20_000 || random.IntN(2) == 0 {
			continue
		}
		f := Act{Do: Freeze, Region: a.Region, Peer: -1, Node: random.IntN(3), At: a.At + random.Int64N(a.For),
			Amount: random.Int64N(10 * allocator.Second)}
		f.For = min(1+random.Int64N(30*allocator.Second), p.Heal-f.At-1)
		a.At = f.At + f.For // what is held then is spent
		a.For = min(2*allocator.Second, p.Heal-a.At)
		p.Acts = append(p.Acts, f, a)
	}
}

var limitUnits = regexp.MustCompile(`, limit: [0-9]+,`)
