package sim

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// changes adds documents to a plan, each written after the one before by an operator who edits it
// (edits.go). Each is given to some of the regions; the others learn of it from these. Nodes start
// with files of any version. It has a random stream of its own, so that seeds keep their meaning
// without it.
func changes(p *Plan) {
	random := p.random(forChanges, 0)
	e := newEditor(p.random(forTerms, 0), p)
	if random.IntN(2) == 0 {
		story(random, p, e)
	} else {
		anything(random, p, e)
	}
	for i := range p.Acts {
		if a := &p.Acts[i]; a.Do == OldFile { // in half of the cases the operator does not notice
			a.Back, a.Amount = random.IntN(2) == 0, random.Int64()
		}
	}
	for range p.given() {
		p.Versions = append(p.Versions, e.next())
	}
	loads(random, p)
}

// anything gives documents to any regions at any time: a few, or in some plans more than stay open
// one by one.
func anything(random *rand.Rand, p *Plan, e *editor) {
	for i := range p.Acts {
		if a := &p.Acts[i]; a.Do == Policy {
			a.Amount = someRegions(random, len(p.Regions))
		}
	}
	for range 1 + random.IntN(5) {
		p.Acts = append(p.Acts, givenTo(random, p, random.Int64N(max(p.Heal-5*allocator.Second, 1))))
	}
	if random.IntN(10) == 0 {
		from := random.Int64N(max(p.Heal/2, 1))
		for i := range int64(34 + random.IntN(10)) {
			p.Acts = append(p.Acts, givenTo(random, p, from+i*allocator.Second/5))
		}
		e.trivial = true
	}
}

// story has one region cut off while the others are given a few documents that belong together, and
// all regions ask for more than there is of the first limit.
func story(random *rand.Rand, p *Plan, e *editor) {
	p.Acts = slices.DeleteFunc(p.Acts, func(a Act) bool { return a.Do == Policy })
	away := random.IntN(len(p.Regions))
	from := random.Int64N(max(p.Heal/3, 1))
	length := min(4*allocator.Second+random.Int64N(16*allocator.Second), p.Heal-from-allocator.Second)
	if random.IntN(4) > 0 {
		p.Acts = append(p.Acts, Act{Do: Cut, At: from, For: length, Region: away, Peer: -1, Back: true})
	}
	all := int64(1)<<len(p.Regions) - 1
	parts := int64(2 + random.IntN(3))
	for i := range parts {
		a := givenTo(random, p, from+(2*i+1)*length/(2*parts))
		if i == parts-1 && random.IntN(2) == 0 { // about when it is heard again
			a.At = from + length - 2*allocator.Second + random.Int64N(3*allocator.Second)
		}
		if a.Amount, a.For = all&^(1<<away), min(a.For, length/(4*parts)); random.IntN(6) == 0 {
			a.Amount = all
		}
		p.Acts = append(p.Acts, a)
	}
	d, err := p.document(1)
	if err != nil {
		panic("a document that was drawn: " + err.Error())
	}
	l := &d.Limits[0]
	perSecond := max(int64(l.Limit)*allocator.Second/l.Window.Microseconds(), 1)
	for r := range p.Regions {
		amount := min(max(perSecond*1500, 1000), 10_000)
		a := Act{Do: Steady, For: p.Heal, Region: r, Limit: 0, Amount: amount,
			Cost: max(quantity.Units(perSecond*3000/amount), 1)}
		if r == away && random.IntN(2) == 0 { // it has something left when it is heard again
			a.At, a.For = from+length-1, p.Heal-from-length
		}
		p.Acts = append(p.Acts, a)
	}
	e.tells(p.Regions[away].Name)
}

// givenTo returns the act by which a new document comes to some regions.
func givenTo(random *rand.Rand, p *Plan, at int64) Act {
	return Act{Do: Policy, At: at, Region: random.IntN(len(p.Regions)), Peer: -1,
		Amount: someRegions(random, len(p.Regions)),
		For:    []int64{0, allocator.Second / 10, 4 * allocator.Second}[random.IntN(3)]}
}

// loads adds loads of the limits that are not in the first document.
func loads(random *rand.Rand, p *Plan) {
	documents, err := p.documents()
	if err != nil {
		panic("a document that was drawn: " + err.Error())
	}
	all := p.entries(documents)
	for i := len(documents[0].Limits); i < len(all); i++ {
		l := all[i][0]
		for range 1 + random.IntN(3) {
			a := Act{Do: Steady, At: random.Int64N(max(p.Heal, 1)), Region: random.IntN(len(p.Regions)), Limit: i,
				Amount: 500 + random.Int64N(4000), Cost: max(l.Limit.Limit/30, 1)}
			a.For = min(5*allocator.Second+random.Int64N(20*allocator.Second), p.Heal-a.At)
			p.Acts = append(p.Acts, a)
		}
	}
}

var (
	burstOf     = regexp.MustCompile(`, burst: ([0-9]+)`)
	lendingOf   = regexp.MustCompile(`, lending_limit: [0-9.]+`)
	borrowingOf = regexp.MustCompile(`, borrowing_limit: [0-9.]+`)
	endOfLimit  = regexp.MustCompile(`, on_store_failure: `)
	weightsOf   = regexp.MustCompile(`, weights: \{[^}]*\}`)
)

// someRegions returns a set of regions, at least one of them, as bits.
func someRegions(random *rand.Rand, regions int) int64 {
	all := int64(1)<<regions - 1
	if random.IntN(3) == 0 {
		return all
	}
	return 1 + random.Int64N(all)
}

// otherNumbers returns a limit's line with another limit, and perhaps other weights.
func otherNumbers(random *rand.Rand, line string, regions []string) string {
	line = limitUnits.ReplaceAllStringFunc(line, func(units string) string {
		var n int64
		_, _ = fmt.Sscanf(units, ", limit: %d,", &n)
		return fmt.Sprintf(", limit: %d,", min(max(n*(1+random.Int64N(5))/2, 1), 10_000))
	})
	switch random.IntN(4) {
	case 0, 1:
		line = weightsOf.ReplaceAllString(line, "")
		line = strings.Replace(line, "}", ", weights: {"+weightsFor(random, regions)+"}}", 1)
	case 2:
		line = weightsOf.ReplaceAllString(line, "")
	}
	return line
}

// otherTerms returns a limit's line with another burst, and other limits of what may be lent and
// borrowed, each by itself.
func otherTerms(random *rand.Rand, line string) string {
	if random.IntN(2) == 0 {
		line = burstOf.ReplaceAllStringFunc(line, func(burst string) string {
			var n int64
			_, _ = fmt.Sscanf(burst, ", burst: %d", &n)
			return fmt.Sprintf(", burst: %d", min(max(n*(1+random.Int64N(5))/2, 2), 10_000))
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
	return line
}

// weightsFor returns weights of a limit's own, some of them zero.
func weightsFor(random *rand.Rand, regions []string) string {
	weights := make([]string, len(regions))
	heaviest := random.IntN(len(regions))
	for i, name := range regions {
		weight := []int64{0, 1, 1, 5}[random.IntN(4)]
		if i == heaviest {
			weight = 9
		}
		weights[i] = fmt.Sprintf("%s: %d", name, weight)
	}
	return strings.Join(weights, ", ")
}
