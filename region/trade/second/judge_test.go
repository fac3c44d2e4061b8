package second

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

var (
	older   = store.Origin{ID: "older", Since: 5, Generation: 9}
	mine    = store.Origin{ID: "mine", Since: 7, Generation: 7}
	younger = store.Origin{ID: "younger", Since: 8, Generation: 8}
	begun   = time.Unix(1_800_000_000, 0)
)

// says returns an answer of node n2.
func says(o store.Origin, u peer.StoreUse, outlasted ...string) []peer.StoreAnswer {
	return []peer.StoreAnswer{{Node: "us/n2", Origin: o, Use: u, Outlasted: outlasted}}
}

// step is what a judge hears at a time, and whether it has stopped then.
type step struct {
	at      time.Duration
	answers []peer.StoreAnswer
	hearsay []peer.StoreAnswer
	stopped bool
}

func TestJudge(t *testing.T) {
	d, s, u := peer.StoreDecides, peer.StoreStopped, peer.StoreUnsure
	for name, steps := range map[string][]step{
		"nobody answers":           {{0, nil, nil, false}},
		"the same store":           {{0, says(mine, d), nil, false}},
		"a younger one":            {{0, says(younger, d), nil, false}},
		"an older one":             {{0, says(older, d), nil, true}},
		"an older one, unverified": {{0, says(older, u), nil, false}},
		"an older one that stopped": {{0, says(older, s), nil, false},
			// It does not win later.
			{time.Second, says(older, d), nil, false}},
		"one that this one stopped for before": {{0, says(younger, d, "mine"), nil, true}},
		"the older one is lost, its successor is younger": {{0, says(older, d), nil, true},
			{time.Second, says(older, u), nil, true},
			{2 * time.Second, says(younger, d), nil, true}},
		"the other one takes this store": {{0, says(older, d), nil, true},
			{time.Second, says(mine, d), nil, false}},
		"the other one stops": {{0, says(older, d), nil, true},
			{time.Second, says(older, s), nil, false}},
		"the other one is not heard": {{0, says(older, d), nil, true},
			{silence - 1, nil, nil, true}, {silence, nil, nil, false},
			{silence + time.Second, says(older, d), nil, true}},
		"another node of the older one is heard": {{0, says(older, d), nil, true},
			{silence, []peer.StoreAnswer{{Node: "us/n3", Origin: older, Use: d}}, nil, true},
			{2*silence - 1, nil, nil, true}, {2 * silence, nil, nil, false}},
		"gossip alone": {{0, nil, says(older, d), true},
			{hearsayStops - 1, nil, says(older, d), true},
			{hearsayStops, nil, says(older, d), false},
			{hearsayAgain - 1, nil, says(older, d), false},
			{hearsayAgain, nil, says(older, d), true}},
		"gossip with one invented store after the other": {
			{0, nil, says(older, d), true},
			{hearsayStops, nil, says(store.Origin{ID: "x", Since: 1}, d), false},
			{2 * hearsayStops, nil, says(store.Origin{ID: "y", Since: 1}, d), false}},
		"gossip, then an answer": {{0, nil, says(older, d), true},
			{time.Second, says(mine, d), nil, false}},
		"gossip of a younger one": {{0, nil, says(younger, d), false}},
		"an answer, then gossip alone": {{0, says(older, d), nil, true},
			{silence, nil, says(older, d), true},
			{silence + hearsayStops, nil, says(older, d), false}},
	} {
		t.Run(name, func(t *testing.T) {
			var j judge
			for _, s := range steps {
				j.verdict(mine, s.answers, s.hearsay, begun.Add(s.at))
				if j.stopped() != s.stopped {
					t.Fatalf("after %v: stopped %v, want %v", s.at, j.stopped(), s.stopped)
				}
			}
		})
	}
}

// TestGossipOfAStoreThatWasLost: a node that ended is shown by gossip with the store that was lost
// since. Its successor is not stopped by that.
func TestGossipOfAStoreThatWasLost(t *testing.T) {
	var j judge
	j.verdict(older, nil, nil, begun)
	rivals := j.verdict(mine, nil, says(older, peer.StoreDecides), begun.Add(time.Second))
	if j.stopped() || len(rivals) > 0 {
		t.Errorf("stopped %v, rivals %v", j.stopped(), rivals)
	}
	// So it is after a restart, by what the journal knows.
	again := judge{before: older.Generation}
	if again.verdict(mine, nil, says(older, peer.StoreDecides), begun); again.stopped() {
		t.Error("stopped by gossip of a store that it had before it started")
	}
	// The old primary still serves that node: it says so itself.
	if j.verdict(mine, says(older, peer.StoreDecides), nil, begun); !j.stopped() {
		t.Error("goes on beside a store that is older and answers")
	}
}

// region is nodes with stores, of which each judges by what all others answer.
type region struct {
	stores []store.Origin // of each node
	judges []judge
	now    time.Time
}

// ask has one node ask all others.
func (r *region) ask(node int) {
	var answers []peer.StoreAnswer
	for n, o := range r.stores {
		if n == node {
			continue
		}
		a := peer.StoreAnswer{Node: string(rune('a' + n)), Origin: o, Use: peer.StoreDecides,
			Outlasted: r.judges[n].outlasted}
		if r.judges[n].stopped() {
			a.Use = peer.StoreStopped
		}
		answers = append(answers, a)
	}
	r.judges[node].verdict(r.stores[node], answers, nil, r.now)
}

// TestOneStoreIsLeft: whoever asks in whatever order, in the end the nodes of exactly one store
// decide, all of them, and it is the oldest. At no time have all nodes stopped.
func TestOneStoreIsLeft(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		r := region{now: begun}
		for range rapid.IntRange(2, 5).Draw(t, "nodes") {
			n := rapid.IntRange(0, 3).Draw(t, "store")
			r.stores = append(r.stores, store.Origin{ID: string(rune('p' + n)),
				Since: uint64(n / 2)})
		}
		r.judges = make([]judge, len(r.stores))
		node := rapid.IntRange(0, len(r.stores)-1)
		for _, n := range rapid.SliceOf(node).Draw(t, "asks") {
			r.now = r.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "s")) * time.Second)
			r.ask(n)
			if !slices.ContainsFunc(r.judges, func(j judge) bool { return !j.stopped() }) {
				t.Fatal("all nodes have stopped")
			}
		}
		for range 2 {
			for n := range r.stores {
				r.ask(n)
			}
		}
		oldest := slices.MinFunc(r.stores, func(a, b store.Origin) int {
			if a.OlderThan(b) {
				return -1
			}
			return 1
		})
		for n, o := range r.stores {
			if r.judges[n].stopped() != (o != oldest) {
				t.Errorf("node %d with %v: stopped %v; the oldest is %v", n, o,
					r.judges[n].stopped(), oldest)
			}
		}
	})
}
