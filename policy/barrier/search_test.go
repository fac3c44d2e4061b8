//go:build !race

package barrier_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
)

// second is the length of a cell of the limits that are searched.
const second = 1_000_000

// place is one region in a search: the documents that are open there, what it heard, and the most
// that it could use in the present cell, and by which limit.
type place struct {
	agenda      barrier.Agenda
	heard       barrier.Heard
	held, limit quantity.Units
	fence       *barrier.Fence // that another region told of
}

// state is a state of the world: all regions at one time, in cells.
type state struct {
	now    int64
	places []place
}

// search looks at every order in which regions are given documents, tell each other what they know,
// forget what they heard, and time goes on.
type search struct {
	t         *testing.T
	regions   []string
	documents []*policy.Document
	given     map[int][]int // which documents a region may be given by its operator
	cells     int64
	forgets   bool // regions may lose their memory, but not their documents
	long      bool // too long for every run
	open      int  // how many documents are open whole
	apart     int  // a region that hears nobody, and is not heard: its place, counted from 1
	states    int
}

// run looks at all states, and returns the first in which the regions could use more together in
// one cell than any document allows that was open in it.
func (s *search) run() (way string) {
	first := state{places: make([]place, len(s.regions))}
	for i := range first.places {
		p := &first.places[i]
		p.agenda, p.heard = barrier.Of(s.documents[0]), barrier.Heard{}
		p.heard.Add(s.regions[i], s.documents[0].Epoch(), 0)
	}
	s.hold(&first)
	type found struct {
		state state
		way   string
	}
	queue, seen := []found{{first, ""}}, map[string]bool{s.key(first): true}
	for len(queue) > 0 {
		f := queue[0]
		queue = queue[1:]
		s.states++
		if s.excess(f.state) {
			return f.way
		}
		for what, next := range s.steps(f.state) {
			if key := s.key(next); !seen[key] {
				seen[key] = true
				queue = append(queue, found{next, f.way + "; " + what})
			}
		}
	}
	return ""
}

// steps returns the states that can come next.
func (s *search) steps(from state) map[string]state {
	all := map[string]state{}
	if from.now < s.cells {
		next := from.clone()
		next.now++
		for i := range next.places {
			next.places[i].held, next.places[i].limit = 0, 0
		}
		s.hold(&next)
		all["the next cell"] = next
	}
	for i, region := range s.regions {
		for _, n := range s.given[i] {
			next := from.clone()
			if s.learn(&next, i, s.documents[n]) {
				all[fmt.Sprintf("%s is given version %d", region, s.documents[n].Version)] = next
			}
		}
		for j, other := range s.regions {
			if i != j && i+1 != s.apart && j+1 != s.apart {
				next := from.clone()
				s.tell(&next, i, j)
				all[region+" tells "+other] = next
			}
		}
		if s.forgets {
			next := from.clone()
			p := &next.places[i]
			p.heard = barrier.Heard{}
			for _, d := range p.agenda.Documents() {
				p.heard.Add(region, d.Epoch(), quantity.StoreTime(next.now*second))
			}
			s.hold(&next)
			all[region+" forgets what it heard"] = next
		}
	}
	return all
}

// learn gives a region a document.
func (s *search) learn(to *state, i int, d *policy.Document) bool {
	p := &to.places[i]
	if p.agenda.Has(d.Epoch()) || p.agenda.Check(d.Epoch()) != nil {
		return false
	}
	next, err := p.agenda.Learn(d)
	if err != nil {
		return false
	}
	if life := next.Newest().Life(s.regions[i]); life > p.agenda.Newest().Life(s.regions[i]) && s.fenced(*to, i) {
		p.held = 0 // in a life that has ended
	}
	p.agenda = next
	if p.fence != nil && next.Knows(s.regions[i], *p.fence) {
		p.fence = nil
	}
	p.heard.Add(s.regions[i], d.Epoch(), quantity.StoreTime(to.now*second))
	s.hold(to)
	return true
}

// tell has a region tell another all that it says with a message: the other learns the documents
// that it does not know, the newest first, and then counts the acknowledgements.
func (s *search) tell(to *state, i, j int) {
	from := to.places[i]
	for _, d := range slices.Backward(from.agenda.Documents()) {
		s.learn(to, j, d)
	}
	p := &to.places[j]
	newest := from.agenda.Newest()
	if f := (barrier.Fence{From: s.regions[i], Life: newest.Life(s.regions[j])}); newest.Fences(s.regions[j]) &&
		!p.agenda.Knows(s.regions[j], f) {
		p.fence = &f
		s.hold(to)
	}
	for _, d := range from.agenda.Documents() {
		if d.Kept == nil && !p.agenda.Has(d.Epoch()) && !p.agenda.Older(d.Epoch()) {
			return // not all of them are known here
		}
	}
	for _, d := range from.agenda.Documents() {
		p.heard.Add(s.regions[i], d.Epoch(), from.heard[s.regions[i]][d.Epoch()])
	}
	s.hold(to)
}

func (s *search) view(from state, i int) *barrier.View {
	p := from.places[i]
	return &barrier.View{Agenda: p.agenda, Region: s.regions[i], Heard: p.heard, Fence: p.fence,
		Now: quantity.StoreTime(from.now * second)}
}

// hold closes the documents that bind no longer, and notes the most that each region can use.
func (s *search) hold(of *state) {
	for i := range of.places {
		p := &of.places[i]
		v := s.view(*of, i)
		p.agenda = v.Folded(s.open)
		p.held = max(p.held, part(s.view(*of, i)))
		p.limit = max(p.limit, s.limitIn(p.agenda))
	}
}

// part returns the least that the binding documents give a region of the limit; 0 if the newest
// document does not have it, so that nothing counts.
func part(v *barrier.View) quantity.Units {
	if limitOf(v.Agenda.Newest()) == 0 {
		return 0
	}
	least := quantity.Units(1 << 40)
	s := v.Standing(&v.Agenda.Newest().Limits[0])
	if s.Returning || v.Fence != nil || v.Unsure || v.Agenda.Newest().Fences(v.Region) {
		return 0
	}
	for _, e := range s.Binding {
		least = min(least, e.Parts(0)[v.Region].Units)
	}
	return least
}

// searched is the name of the limit that a search looks at, the first of the documents that have it.
const searched = "l"

// limitOf returns the limit by a document, 0 if it does not have it.
func limitOf(d *policy.Document) quantity.Units {
	if d.Kept != nil || d.Limits[0].Name != searched {
		return 0
	}
	return d.Limits[0].Limit
}

// limitIn returns the highest limit of the documents that are open, or folded.
func (s *search) limitIn(a barrier.Agenda) (most quantity.Units) {
	for _, d := range s.documents {
		if a.Has(d.Epoch()) {
			most = max(most, limitOf(d))
		}
	}
	return most
}

// excess reports whether all regions together could use more of the present cell than any document
// allows that was open in one of them meanwhile.
func (s *search) excess(at state) bool {
	var sum, most quantity.Units
	for i, p := range at.places {
		most = max(most, p.limit)
		if !s.fenced(at, i) {
			sum += p.held
		}
	}
	return sum > most
}

// fenced reports whether a region works in a life that some document ends. What it uses all the same is
// printed: an operator said that it was stopped.
func (s *search) fenced(at state, i int) bool {
	life := at.places[i].agenda.Newest().Life(s.regions[i])
	return slices.ContainsFunc(at.places, func(p place) bool {
		return slices.ContainsFunc(p.agenda.Documents(), func(d *policy.Document) bool {
			return d.Fences(s.regions[i]) && d.Life(s.regions[i]) >= life
		})
	})
}

func (s *search) key(of state) string {
	var b strings.Builder
	fmt.Fprint(&b, of.now)
	for _, p := range of.places {
		fmt.Fprint(&b, "|", p.held, ",", p.limit, p.fence)
		for _, d := range p.agenda.Documents() {
			if k := d.Kept; k != nil { // what was kept before it does not matter
				fmt.Fprint(&b, "+", k.Oldest, k.Through, k.Names, k.Pinned, k.Limits)
			} else {
				fmt.Fprint(&b, "+", d.Epoch())
			}
		}
		for _, region := range s.regions {
			for _, d := range s.documents {
				at, known := p.heard[region][d.Epoch()]
				if p.agenda.Has(d.Epoch()) {
					fmt.Fprint(&b, ",", known, at)
				}
			}
		}
	}
	return b.String()
}

func (of state) clone() state {
	of.places = slices.Clone(of.places)
	for i, p := range of.places {
		of.places[i].heard = barrier.Heard{}
		for region, all := range p.heard {
			for e, at := range all {
				of.places[i].heard.Add(region, e, at)
			}
		}
	}
	return of
}

// TestEveryOrderKeepsTheCeiling looks at every order of events: of two and three regions, with
// documents that move shares, raise and lower, versions that some regions never see, and two
// documents of one version.
func TestEveryOrderKeepsTheCeiling(t *testing.T) {
	two := func(version, limit, a, b int) *policy.Document {
		return documents.Parse(t, version, []string{"a: {weight: 1}", "b: {weight: 1}"},
			fmt.Sprintf("name: l, limit: %d, window: 1s, weights: {a: %d, b: %d}", limit, a, b))
	}
	three := func(version, limit, a, b, c int) *policy.Document {
		return documents.Parse(t, version, []string{"a: {weight: 1}", "b: {weight: 1}", "c: {weight: 1}"},
			fmt.Sprintf("name: l, limit: %d, window: 1s, weights: {a: %d, b: %d, c: %d}", limit, a, b, c))
	}
	without := func(version int) *policy.Document {
		return documents.Parse(t, version, []string{"a: {weight: 1}", "b: {weight: 1}"}, "name: other, domain: elsewhere, limit: 5, window: 1s")
	}
	others := func(version int) *policy.Document {
		return documents.Parse(t, version, abc, "name: other, domain: elsewhere, limit: 5, window: 1s")
	}
	with := func(line string, d *policy.Document) *policy.Document { return documents.With(t, line, d) }
	both := map[int][]int{0: {1, 2}, 1: {1, 2}}
	for name, s := range map[string]*search{
		"a share moves, and regions forget": {regions: []string{"a", "b"}, cells: 4, given: map[int][]int{0: {1}, 1: {1}}, forgets: true,
			documents: []*policy.Document{two(1, 100, 1, 1), two(2, 100, 1, 9)}},
		"a share moves there and back": {regions: []string{"a", "b"}, cells: 3, given: both,
			documents: []*policy.Document{two(1, 100, 1, 1), two(2, 100, 1, 9), two(3, 100, 1, 1)}},
		"lowered, then raised": {regions: []string{"a", "b"}, cells: 4, given: both,
			documents: []*policy.Document{two(1, 100, 1, 1), two(2, 50, 1, 1), two(3, 200, 3, 1)}},
		"taken out and put back": {regions: []string{"a", "b"}, cells: 3, given: both,
			documents: []*policy.Document{two(1, 100, 99, 1), without(2), two(3, 100, 1, 99)}},
		"taken out and put back twice": {regions: []string{"a", "b"}, cells: suite.Short[int64](1, 2), given: map[int][]int{0: {1}, 1: {2, 3, 4}},
			documents: []*policy.Document{two(1, 100, 99, 1), without(2), two(3, 100, 1, 1), without(4), two(5, 100, 1, 99)}},
		"a share moves three times, two documents open": {regions: []string{"a", "b"}, cells: suite.Short[int64](1, 2), open: 2, given: map[int][]int{0: {1, 2}, 1: {2, 3}},
			documents: []*policy.Document{two(1, 100, 1, 1), two(2, 100, 1, 9), two(3, 100, 9, 1), two(4, 100, 1, 1)}},
		"a share moves three times, one open": {long: true, regions: []string{"a", "b"}, cells: 1, open: 1, given: map[int][]int{0: {1, 3}, 1: {1, 2}},
			documents: []*policy.Document{two(1, 100, 1, 1), two(2, 100, 1, 9), two(3, 100, 9, 1), two(4, 100, 1, 1)}},
		"taken out and put back, one open": {regions: []string{"a", "b"}, cells: suite.Short[int64](1, 2), open: 1, given: both,
			documents: []*policy.Document{two(1, 100, 99, 1), without(2), two(3, 100, 1, 99)}},
		"fenced, and returned, one open": {regions: []string{"a", "b", "c"}, cells: 2, apart: 2, open: 1, given: map[int][]int{0: {2}, 1: {1}},
			documents: []*policy.Document{three(1, 100, 5, 3, 2), with("fenced: [a]", three(2, 100, 5, 3, 2)), with("returned: {a: 1}", three(3, 100, 5, 3, 2))}},
		"three regions, one open": {long: true, regions: []string{"a", "b", "c"}, cells: 0, open: 1, given: map[int][]int{0: {1}, 1: {1}, 2: {2}},
			documents: []*policy.Document{three(1, 100, 2, 2, 1), three(2, 200, 3, 1, 1), three(3, 200, 1, 1, 3)}},
		"fenced, and returned": {regions: []string{"a", "b"}, cells: 4, given: map[int][]int{0: {2}, 1: {1, 2}},
			documents: []*policy.Document{two(1, 100, 1, 1), with("fenced: [a]", two(2, 100, 1, 1)), with("returned: {a: 1}", two(3, 100, 1, 1))}},
		"fenced, raised and returned": {regions: []string{"a", "b"}, cells: suite.Short[int64](2, 3), given: map[int][]int{0: {3}, 1: {1, 2}},
			documents: []*policy.Document{two(1, 100, 1, 1), with("fenced: [a]", two(2, 100, 1, 1)), with("fenced: [a]", two(3, 300, 1, 1)),
				with("returned: {a: 1}", two(4, 100, 1, 1))}},
		"fenced twice, by two documents": {regions: []string{"a", "b", "c"}, cells: 2, apart: 2, given: map[int][]int{0: {1}, 1: {2}, 2: {1}},
			documents: []*policy.Document{three(1, 100, 2, 2, 1), with("fenced: [c]", three(2, 200, 8, 2, 1)), with("fenced: [c]", three(3, 200, 2, 8, 1))}},
		"fenced, and the word dropped": {regions: []string{"a", "b"}, cells: 3, given: map[int][]int{0: {2}, 1: {1, 2}},
			documents: []*policy.Document{two(1, 100, 1, 1), with("fenced: [a]", two(2, 100, 1, 1)), two(3, 100, 1, 1)}},
		"fenced, and returned where the fence is not known": {regions: []string{"a", "b", "c"}, cells: 2, apart: 2, given: map[int][]int{0: {2}, 1: {1}},
			documents: []*policy.Document{three(1, 100, 5, 3, 2), with("fenced: [a]", three(2, 100, 5, 3, 2)), with("returned: {a: 1}", three(3, 100, 5, 3, 2))}},
		"fenced, raised, and returned where the raise is not known": {regions: []string{"a", "b", "c"}, cells: 2, apart: 2, given: map[int][]int{0: {1, 3}, 1: {2}},
			documents: []*policy.Document{three(1, 100, 5, 3, 2), with("fenced: [a]", three(2, 100, 5, 3, 2)), with("fenced: [a]", three(3, 300, 5, 3, 2)),
				with("returned: {a: 1}", three(4, 200, 5, 3, 2))}},
		"a third region grows by it, where the fence is not known": {regions: []string{"a", "b", "c"}, cells: 3, apart: 2, given: map[int][]int{0: {2}, 1: {1}},
			documents: []*policy.Document{three(1, 100, 6, 2, 2), with("fenced: [a]", three(2, 100, 6, 2, 2)), with("returned: {a: 1}", three(3, 100, 2, 2, 6))}},
		"added after a fence that is not known": {regions: []string{"a", "b", "c"}, cells: 2, apart: 2, given: map[int][]int{0: {2}, 1: {1}},
			documents: []*policy.Document{others(1), with("fenced: [a]", three(2, 100, 5, 3, 2)), with("returned: {a: 1}", three(3, 100, 5, 3, 2))}},
		"added twice, with different parts": {regions: []string{"a", "b"}, cells: 2, given: map[int][]int{0: {1}, 1: {2}},
			documents: []*policy.Document{without(1), two(2, 100, 9, 1), two(3, 100, 1, 9)}},
		"added twice, one open": {regions: []string{"a", "b"}, cells: 1, open: 1, given: map[int][]int{0: {1}, 1: {2}},
			documents: []*policy.Document{without(1), two(2, 100, 9, 1), two(3, 100, 1, 9)}},
		"added small, raised, and added where that is not known": {regions: []string{"a", "b", "c"}, cells: 1, apart: 3, given: map[int][]int{0: {1, 2}, 2: {3}},
			documents: []*policy.Document{others(1), three(2, 9, 1, 1, 1), three(3, 90, 28, 1, 1), three(4, 90, 1, 1, 1)}},
		"added small, raised, and added where that is not known, one open": {regions: []string{"a", "b", "c"}, cells: 0, open: 1, apart: 3, given: map[int][]int{0: {1, 2}, 2: {3}},
			documents: []*policy.Document{others(1), three(2, 9, 1, 1, 1), three(3, 90, 28, 1, 1), three(4, 90, 1, 1, 1)}},
		"added after a removal, and where that is not known": {regions: []string{"a", "b", "c"}, cells: 1, apart: 3, given: map[int][]int{0: {1}, 1: {2}, 2: {3}},
			documents: []*policy.Document{others(1), with("removed: [c]", without(2)), with("removed: [c]", two(3, 90, 1, 1)), three(4, 90, 1, 1, 1)}},
		"two of one version": {regions: []string{"a", "b"}, cells: 3, given: map[int][]int{0: {1}, 1: {2}},
			documents: []*policy.Document{two(1, 100, 1, 1), two(2, 200, 3, 1), two(2, 200, 1, 3)}},
		"a raise that one region never sees": {regions: []string{"a", "b"}, cells: 3,
			given:     map[int][]int{0: {1}, 1: {2}},
			documents: []*policy.Document{two(1, 100, 1, 1), two(2, 200, 3, 1), two(3, 200, 1, 3)}},
		"three regions": {regions: []string{"a", "b", "c"}, cells: 2, given: map[int][]int{0: {1}},
			documents: []*policy.Document{three(1, 100, 5, 3, 2), three(2, 100, 3, 5, 2)}},
		"three regions, a raise skipped": {regions: []string{"a", "b", "c"}, cells: 0,
			given:     map[int][]int{0: {1}, 2: {2}},
			documents: []*policy.Document{three(1, 100, 2, 2, 1), three(2, 200, 3, 1, 1), three(3, 200, 1, 1, 3)}},
	} {
		t.Run(name, func(t *testing.T) {
			if s.long {
				suite.Long(t)
			}
			s.t, s.open = t, cmp.Or(s.open, barrier.MaxOpen)
			if way := s.run(); way != "" {
				t.Errorf("after %d states the regions could use more than any document allows%s", s.states, way)
			}
			t.Logf("%d states", s.states)
			if s.states < 100 {
				t.Error("hardly any: the search shows nothing")
			}
		})
	}
}
