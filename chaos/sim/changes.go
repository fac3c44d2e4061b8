package sim

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/quotad/quotad/allocator"
)

// changes adds documents that differ in substance to a plan: limits go up and down, bursts and
// reserves change, weights move from region to region, regions leave a limit and come back. Each is
// given to some of the regions; the others learn of it from these. It has a random stream of its
// own, so that seeds keep their meaning without it.
func changes(p *Plan) {
	random := p.random(forChanges, 0)
	given := 0
	for i := range p.Acts {
		if p.Acts[i].Do == Policy {
			given++
			p.Acts[i].Amount = someRegions(random, len(p.Regions))
		}
	}
	for range 1 + random.IntN(5) {
		given++
		a := Act{Do: Policy, Region: random.IntN(len(p.Regions)), Peer: -1,
			Amount: someRegions(random, len(p.Regions)),
			For:    []int64{0, allocator.Second / 10, 4 * allocator.Second}[random.IntN(3)]}
		a.At = random.Int64N(max(p.Heal-a.For-allocator.Second, 1))
		p.Acts = append(p.Acts, a)
	}
	terms := p.random(forTerms, 0)
	for range given {
		p.Versions = append(p.Versions, otherTerms(terms, changed(random, p)))
	}
}

var (
	burstOf     = regexp.MustCompile(`, burst: ([0-9]+)`)
	lendingOf   = regexp.MustCompile(`, lending_limit: [0-9.]+`)
	borrowingOf = regexp.MustCompile(`, borrowing_limit: [0-9.]+`)
	endOfLimit  = regexp.MustCompile(`, on_store_failure: `)
)

// otherTerms changes the bursts of some limits of a document, and what may be lent and borrowed of
// them, each by itself.
func otherTerms(random *rand.Rand, document string) string {
	lines := strings.Split(document, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "algorithm: ") {
			continue
		}
		if random.IntN(2) == 0 {
			line = burstOf.ReplaceAllStringFunc(line, func(burst string) string {
				var n int64
				_, _ = fmt.Sscanf(burst, ", burst: %d", &n)
				return fmt.Sprintf(", burst: %d", max(n*(1+random.Int64N(5))/2, 2))
			})
		}
		if random.IntN(2) == 0 {
			line = lendingOf.ReplaceAllString(line, "")
			lending := []string{"0", "0.5", "1"}[random.IntN(3)]
			line = endOfLimit.ReplaceAllString(line, ", lending_limit: "+lending+"$0")
		}
		if random.IntN(3) == 0 {
			borrowing := []string{"0", "0.3", "1", "2"}[random.IntN(4)]
			line = borrowingOf.ReplaceAllString(line, "")
			line = endOfLimit.ReplaceAllString(line, ", borrowing_limit: "+borrowing+"$0")
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// someRegions returns a set of regions, at least one of them, as bits.
func someRegions(random *rand.Rand, regions int) int64 {
	all := int64(1)<<regions - 1
	if random.IntN(3) == 0 {
		return all
	}
	return 1 + random.Int64N(all)
}

// changed returns another version of a plan's document.
func changed(random *rand.Rand, p *Plan) string {
	lines := strings.Split(p.Document, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "algorithm: ") || random.IntN(4) == 0 {
			continue
		}
		line = limitUnits.ReplaceAllStringFunc(line, func(units string) string {
			var n int64
			_, _ = fmt.Sscanf(units, ", limit: %d,", &n)
			return fmt.Sprintf(", limit: %d,", max(n*(1+random.Int64N(5))/2, 1))
		})
		if random.IntN(2) == 0 && !strings.Contains(line, "weights:") {
			line = strings.Replace(line, "}", ", weights: {"+weightsFor(random, p)+"}}", 1)
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// weightsFor returns weights of a limit's own, some of them zero.
func weightsFor(random *rand.Rand, p *Plan) string {
	weights := make([]string, len(p.Regions))
	heaviest := random.IntN(len(p.Regions))
	for i, r := range p.Regions {
		weight := []int64{0, 1, 1, 5}[random.IntN(4)]
		if i == heaviest {
			weight = 9
		}
		weights[i] = fmt.Sprintf("%s: %d", r.Name, weight)
	}
	return strings.Join(weights, ", ")
}
