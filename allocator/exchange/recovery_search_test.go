//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// The search visits every state that the regions of a space can reach. Regions ask, debit, record,
// announce, hear and credit, any message may be lost or late, a store loses everything, and the
// nodes recover the bucket by what each of them remembers. Random runs miss what the search finds.

// recoverySpace is what one search goes through.
type recoverySpace struct {
	long   bool // make long goes through it
	fewest int  // states, below which a search has missed much of it
	ahead  quantity.Cell
	waiting
	budget
}

// maxRecoveryStates bounds a search; every whole space is smaller.
const maxRecoveryStates = 400_000

var recoverySpaces = map[string]recoverySpace{
	"a loss": {fewest: 80_000, waiting: waiting{credits: true, restores: true}, budget: budget{
		asks: [2]int8{0, 2}, admit: [2]int8{1, 0}, flush: [2]int8{1, 0}, recover: [2]int8{1, 0}}},
	"a loss, of the next cell": {fewest: 10_000, ahead: 1, budget: budget{
		asks: [2]int8{0, 2}, flush: [2]int8{1, 0}, recover: [2]int8{1, 0}}},
	"a loss, two recoveries at once": {long: true, fewest: 80_000, waiting: waiting{credits: true,
		restores: true}, budget: budget{
		asks: [2]int8{0, 1}, admit: [2]int8{1, 0}, flush: [2]int8{1, 0}, recover: [2]int8{2, 0}}},
	"a loss of what both nodes used": {fewest: 20_000, waiting: waiting{restores: true}, budget: budget{
		admit: [2]int8{2, 0}, flush: [2]int8{1, 0}, recover: [2]int8{2, 0}}},
	"a loss of what both nodes used, a journal lost": {fewest: 10_000, waiting: waiting{restores: true},
		budget: budget{admit: [2]int8{2, 0}, flush: [2]int8{1, 0}, recover: [2]int8{1, 0},
			crash: [3]int8{0, 1, 0}, journal: [3]int8{1, 0, 0}}},
	"two losses after use": {fewest: 40_000, budget: budget{admit: [2]int8{2, 0}, flush: [2]int8{2, 0},
		recover: [2]int8{2, 0}}},
	"two losses": {fewest: 60_000, budget: budget{
		asks: [2]int8{0, 1}, flush: [2]int8{2, 0}, recover: [2]int8{2, 0}}},
	"a loss, rights given back": {long: true, fewest: 80_000, budget: budget{
		asks: [2]int8{1, 1}, admit: [2]int8{1, 1}, flush: [2]int8{1, 0}, recover: [2]int8{1, 0}}},
	"the borrower's loss": {fewest: 100_000, budget: budget{
		asks: [2]int8{1, 2}, admit: [2]int8{1, 2}, flush: [2]int8{0, 1}, recover: [2]int8{0, 1}}},
	"the borrower's loss, and of its journal": {fewest: 20_000, budget: budget{
		asks: [2]int8{1, 1}, flush: [2]int8{0, 1}, recover: [2]int8{0, 1}, journal: [3]int8{0, 0, 1}}},
	"both lose": {fewest: 25_000, waiting: waiting{credits: true}, budget: budget{
		asks: [2]int8{0, 1}, admit: [2]int8{0, 2}, flush: [2]int8{1, 1}, recover: [2]int8{1, 1}}},
	"a loss, a node dies": {long: true, fewest: 60_000, budget: budget{
		asks: [2]int8{0, 2}, admit: [2]int8{1, 0}, flush: [2]int8{1, 0}, recover: [2]int8{1, 0},
		crash: [3]int8{1, 0, 0}}},
	"a loss, the borrower's node dies": {long: true, fewest: 60_000, budget: budget{
		asks: [2]int8{0, 2}, admit: [2]int8{1, 0}, flush: [2]int8{1, 0}, recover: [2]int8{1, 0},
		crash: [3]int8{0, 0, 1}}},
	"a loss, a journal lost": {long: true, fewest: 80_000, budget: budget{
		asks: [2]int8{0, 2}, admit: [2]int8{1, 0}, flush: [2]int8{1, 0}, recover: [2]int8{1, 0},
		journal: [3]int8{1, 0, 0}}},
	"a bucket deleted": {fewest: 80_000, waiting: waiting{credits: true, restores: true},
		budget: budget{
			asks: [2]int8{0, 2}, admit: [2]int8{1, 0}, delete: 1, recover: [2]int8{1, 0}}},
}

// explore goes through a space, breadth first, until a state is broken or too many were seen; way
// is that to the broken one, empty if there is none.
func (s *recoverySearch) explore() (way string) {
	for from := 0; from < len(s.visits) && len(s.visits) < maxRecoveryStates; from++ {
		bad := -1
		s.next(s.visits[from].world, func(d did, to world) {
			if bad < 0 && s.add(visited{to, int32(from), d}) &&
				s.broken(&s.visits[len(s.visits)-1].world) {
				bad = len(s.visits) - 1
			}
		})
		if bad >= 0 {
			return s.way(bad)
		}
	}
	return ""
}

// TestEveryRecoveryKeepsTheCeiling goes through all spaces.
func TestEveryRecoveryKeepsTheCeiling(t *testing.T) {
	for name, space := range recoverySpaces {
		t.Run(name, func(t *testing.T) {
			if space.long {
				suite.Long(t)
			}
			t.Parallel()
			s := newRecoverySearch(space, unruled{})
			way := s.explore()
			states := len(s.visits)
			switch {
			case way != "":
				t.Fatalf("after %d states the regions have more than the limit; the way there: %s",
					states, way)
			case states < space.fewest || states >= maxRecoveryStates:
				t.Fatalf("%d states: the search has not seen the whole of a space worth searching",
					states)
			case s.most[regionI] < searchI ||
				s.most[regionJ] < quantity.Units(min(searchJ+int64(space.asks[regionJ]),
					searchI+searchJ)):
				t.Fatalf("the regions never had more than %d units: nothing could be borrowed, or not all given back its rights", s.most)
			}
			t.Logf("%d states, of %d machines and %d stores", states, len(s.machines.all),
				len(s.stores.all))
		})
	}
}

// TestTheRecoverySearchFindsMissingRules shows that the search finds each missing rule, and so what
// each rule is for.
func TestTheRecoverySearchFindsMissingRules(t *testing.T) {
	for name, missing := range map[string]struct {
		space string
		rule  unruled
	}{
		"who answered takes no older row":             {"a loss", unruled{noFence: true}},
		"a mate that answered announces no older row": {"a loss", unruled{noFloor: true}},
		"a reply is for the borrower's generation": {"both lose",
			unruled{anyBorrower: true}},
		"a credit is for the borrower's generation": {"both lose",
			unruled{lateCredit: true}},
		"a peer's word counts where its store lost nothing": {"both lose",
			unruled{peerWhole: true}},
		"a journal's word counts where it holds every row": {"a loss, a journal lost",
			unruled{nodeWhole: true}},
		"what a node did not tell of may be all": {"a loss of what both nodes used",
			unruled{untoldNone: true}},
		"use is known once all nodes told": {"a loss of what both nodes used",
			unruled{oneMemory: true}},
		"a memory counts where it reaches back": {"a loss of what both nodes used, a journal lost",
			unruled{useWhole: true}},
		"who is not known was lent all":        {"a loss", unruled{unknownNone: true}},
		"a deleted bucket begins a generation": {"a bucket deleted", unruled{sameGeneration: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRecoverySearch(recoverySpaces[missing.space], missing.rule)
			way := s.explore()
			if way == "" {
				t.Fatalf("not noticed in %d states", len(s.visits))
			}
			t.Logf("noticed after %d states; the way there: %s", len(s.visits), way)
		})
	}
}
