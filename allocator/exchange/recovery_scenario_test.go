//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// recoveryScenarios lists what may happen to region us when its store loses a bucket of which us
// lent some. known reports whether everything is known of the bucket a few seconds later, before those
// that were away are back.
var recoveryScenarios = map[string]struct {
	lose  func(s *scene)
	mend  func(s *scene)
	known bool
}{
	"its store lost everything": {known: true,
		lose: func(s *scene) { s.lose("us", (*algorithms.Twin).Flush) }},
	"the bucket was deleted": {known: true,
		lose: func(s *scene) { s.lose("us", func(t *algorithms.Twin) { t.Delete("b") }) }},
	"its store is an old copy": {known: true,
		lose: func(s *scene) { s.lose("us", func(t *algorithms.Twin) { *t = *s.old }) }},
	"a node is down": {known: true,
		lose: func(s *scene) {
			s.down(s.mates["us"][0], true)
			s.lose("us", (*algorithms.Twin).Flush)
		},
		mend: func(s *scene) { s.down(s.mates["us"][0], false) }},
	"a journal is lost": {known: true,
		lose: func(s *scene) {
			s.loseJournal(s.regions["us"])
			s.lose("us", (*algorithms.Twin).Flush)
		}},
	"a peer is away": {known: true,
		lose: func(s *scene) { s.isolate("eu", true); s.lose("us", (*algorithms.Twin).Flush) },
		mend: func(s *scene) { s.isolate("eu", false) }},
	"a node is down and a peer away": {
		lose: func(s *scene) {
			s.isolate("eu", true)
			s.down(s.regions["us"], true)
			s.lose("us", (*algorithms.Twin).Flush)
		},
		mend: func(s *scene) { s.isolate("eu", false); s.down(s.regions["us"], false) }},
	"a journal is lost and a peer away": {
		lose: func(s *scene) {
			s.isolate("eu", true)
			s.loseJournal(s.regions["us"])
			s.lose("us", (*algorithms.Twin).Flush)
		},
		mend: func(s *scene) { s.isolate("eu", false) }},
	"the borrower's store lost everything as well": {known: true,
		lose: func(s *scene) {
			s.lose("eu", (*algorithms.Twin).Flush)
			s.lose("us", (*algorithms.Twin).Flush)
		}},
	"all stores lost everything, twice": {known: true,
		lose: func(s *scene) {
			for _, name := range s.names {
				s.lose(name, (*algorithms.Twin).Flush)
			}
			s.after(300_000, func() { s.lose("us", (*algorithms.Twin).Flush) })
		}},
}

// TestARecoveredRegionKeepsTheCeilingAndGetsItsRightsBack: all regions want more than there is,
// messages are lost, late and repeated, and rows are under way when a region loses its store. The
// oracle judges all windows. What is not known counts as lent, until all are back within the same
// window. At the end every region has its entitlement.
func TestARecoveredRegionKeepsTheCeilingAndGetsItsRightsBack(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		for name, scenario := range recoveryScenarios {
			t.Run(string(kind)+", "+name, func(t *testing.T) {
				if kind == algorithms.SlidingWindowCounter {
					suite.Long(t)
				}
				t.Parallel()
				for seed := range times() {
					s := newScene(newClusterOf(t, seed, kind, sceneWindow, 100, 100, 50))
					s.net.duplicate, s.net.late, s.net.loss = 20, 5, 10
					s.run((s.now/sceneWindow + 1) * sceneWindow)
					s.want(0, 300, 50) // eu borrows of us
					s.run(s.now + 30*allocator.Second)
					s.keep("us")
					s.run(s.now + 15*allocator.Second)
					lent := s.lent("us")
					if lent == 0 {
						t.Fatalf("seed %d: us lent nothing", seed)
					}
					s.want(300, 300, 50)
					s.run(s.now + 200_000) // rows are under way
					scenario.lose(s)
					s.run(s.now + 10*allocator.Second)
					if unknown := s.unknown("us"); unknown > 0 == scenario.known {
						t.Errorf("seed %d: %d units count as lent to peers not known", seed,
							unknown)
					}
					s.mended(t, scenario.mend)
					s.run(s.now + 2*sceneWindow)
					s.converged(t)
				}
			})
		}
	}
}

// want sets what the regions are asked for, in units a window.
func (s *scene) want(rates ...int64) {
	for i, name := range s.names {
		for _, n := range s.nodes(name) {
			n.rate, n.per = quantity.MilliRate(rates[i]/int64(len(s.nodes(name)))),
				sceneWindow/allocator.Second
		}
	}
}

// lent returns what a region has lent of the current cell.
func (s *scene) lent(name string) (units quantity.Units) {
	r := s.regions[name]
	for _, row := range r.store.Inspect(quantity.StoreTime(r.time()),
		algorithms.Inspect{Fence: r.guard(), Target: algorithms.Target{Key: "b",
			Terms: r.terms()}}).Rows {
		if row.Cell == r.cell() {
			units += row.Lent - row.Regained
		}
	}
	return units
}

// keep makes a copy of a region's store.
func (s *scene) keep(name string) { s.old = cloned(s.regions[name].store) }

// loseJournal has a node begin another.
func (s *scene) loseJournal(r *testRegion) {
	s.down(r, true)
	clear(r.journal)
	s.broken[r] = true
	s.down(r, false)
}

// mended brings back what was away. Within seconds nothing may be unknown any more, and no recovery
// under way.
func (s *scene) mended(t *testing.T, mend func(*scene)) {
	s.net.late, s.net.loss = 0, 0
	if mend != nil {
		mend(s)
	}
	s.run(s.now + 10*allocator.Second)
	for _, name := range s.names {
		if unknown := s.unknown(name); unknown > 0 {
			t.Errorf("%s: %d units still count as lent to peers not known", name, unknown)
		}
	}
}

// converged checks the verdict of the oracle, and that without demand everybody has the fixed split
// again.
func (s *scene) converged(t *testing.T) {
	if v := s.judge.Verdict(); !v.Holds() {
		t.Errorf("%s: %v", v, v.Violations)
	}
	s.want(0, 0, 0)
	s.run(s.now + 3*sceneWindow)
	for _, name := range s.names {
		r := s.regions[name]
		i := r.store.Inspect(quantity.StoreTime(r.time()), algorithms.Inspect{Fence: r.guard(),
			Target: algorithms.Target{Key: "b", Terms: r.terms()}})
		if i.Status != algorithms.StatusOK || i.Share != r.bucket.Entitlements[name] {
			t.Errorf("%s has %d of %d: %s", name, i.Share, r.bucket.Entitlements[name], i.Status)
		}
		for _, n := range s.nodes(name) {
			if open := n.machine.Stats().Recovering; open > 0 {
				t.Errorf("%s/%s still recovers %d buckets", name, n.node, open)
			}
		}
	}
}

// TestTheOperatorsWordEndsTheWait: a node and a peer are gone for good, so that nobody knows what was
// used and lent. The operator says that it was nothing. Another word, about a loss before this one,
// changes nothing.
func TestTheOperatorsWordEndsTheWait(t *testing.T) {
	s := newScene(newClusterOf(t, 1, algorithms.FixedWindow, sceneWindow, 100, 100, 50))
	s.run((s.now/sceneWindow + 1) * sceneWindow)
	s.want(60, 60, 20)
	s.run(s.now + 10*allocator.Second)
	before := quantity.StoreTime(s.regions["us"].time()) - 1
	s.isolate("eu", true)
	gone, left := s.regions["us"], s.mates["us"][0]
	left.machine.nodes = len(s.nodes("us")) // one of them is gone
	s.down(gone, true)
	s.lose("us", (*algorithms.Twin).Flush)
	s.run(s.now + 10*allocator.Second)
	shut := func() quantity.StoreTime {
		return left.store.Inspect(quantity.StoreTime(left.time()), algorithms.Inspect{Fence: left.guard(),
			Target: algorithms.Target{Key: "b", Terms: left.terms()}}).Shut
	}
	waits := func() []Recovering { return left.machine.Recovering() }
	for _, until := range []quantity.StoreTime{0, before} {
		left.step(Waived{Until: until})
		s.run(s.now + allocator.Second)
		all := waits()
		if shut() == 0 || s.unknown("us") == 0 || len(all) != 1 || all[0].Buckets != 1 || all[0].Since < before || all[0].Units != 100 {
			t.Fatalf("after a word until %d: shut until %d, %d units lent to nobody known, waiting %+v", until, shut(), s.unknown("us"), all)
		}
	}
	left.step(Waived{Until: quantity.StoreTime(left.time())})
	s.run(s.now + allocator.Second)
	if shut() != 0 || s.unknown("us") != 0 || len(waits()) != 0 {
		t.Errorf("after the operator's word: shut until %d, %d units lent to nobody known, waiting %+v", shut(), s.unknown("us"), waits())
	}
	if n := left.machine.Stats().PartlyKnown; n != 0 {
		t.Errorf("%d buckets are not whole", n)
	}
}

// TestABucketIsRestoredAndDeleted: a bucket is restored, though a node has not told what it used. Then
// somebody deletes it, and no node had room to note that it was there, so that the store says as before
// when it lost it. It is restored once more, and waits.
func TestABucketIsRestoredAndDeleted(t *testing.T) {
	s := newScene(newClusterOf(t, 1, algorithms.FixedWindow, sceneWindow, 100, 100, 50))
	s.run((s.now/sceneWindow + 1) * sceneWindow)
	s.want(60, 60, 20)
	s.run(s.now + 10*allocator.Second)
	gone, left := s.regions["us"], s.mates["us"][0]
	left.machine.nodes = len(s.nodes("us"))
	s.down(gone, true)
	s.lose("us", (*algorithms.Twin).Flush)
	for _, when := range []string{"restored", "restored again"} {
		s.run(s.now + 5*allocator.Second)
		found := left.store.Inspect(quantity.StoreTime(left.time()), algorithms.Inspect{Fence: left.guard(),
			Target: algorithms.Target{Key: "b", Terms: left.terms()}})
		if known := left.machine.Stats().PartlyKnown; found.Doubt == 0 || found.Shut == 0 || known != 1 {
			t.Fatalf("not %s: %+v, %d restored in part", when, found, known)
		}
		left.store.Delete("b")
	}
}
