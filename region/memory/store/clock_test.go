package store

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestStartDriven: the scripts' time is what the test says, and a step back reopens no cell.
func TestStartDriven(t *testing.T) {
	now := time.UnixMicro(1_900_000_000_000_000)
	server := fixtures.Started(t)(servers.StartDriven(func() time.Time { return now }))
	s := node(t, server, first)
	of := algorithms.Terms{Kind: algorithms.FixedWindow, Window: 60_000_000, Cell: 60_000_000,
		Tick: 1, Entitlement: 3}
	steps := []struct {
		by    time.Duration
		admit quantity.Units
		now   int64 // after the first moment, in microseconds
	}{
		{0, 3, 0},
		{time.Second, 0, 1_000_000},
		{time.Minute, 3, 61_000_000},
		{-time.Minute, 0, 61_000_001}, // the high-water mark stands, but for the microsecond of each answer
		{2 * time.Minute, 3, 121_000_000},
	}
	begin := now.UnixMicro()
	for i, step := range steps {
		now = now.Add(step.by)
		d := decide(t, s, algorithms.Decide{Fence: under(epoch), Commit: true,
			Costs: []quantity.Units{1, 1, 1, 1},
			Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: BucketKey(Whole, "k"),
				Terms: of}}}})
		if d.Status != algorithms.StatusOK || d.Now != quantity.StoreTime(begin+step.now) ||
			admitted(d) != step.admit {
			t.Errorf("step %d: %+v at %d, want %d admitted at %d", i, d, d.Now.Add(-begin),
				step.admit, step.now)
		}
	}
}

// TestARefusedNodeHearsTheTime: a node whose clock is hours off hears by its beat what time the
// store has shown to others. The store notes that, so that it is the same store for the node when
// its clock is right again. If the store then loses everything, its time begins no earlier.
func TestARefusedNodeHearsTheTime(t *testing.T) {
	now, off := time.UnixMicro(1_900_000_000_000_000), -48*time.Hour
	server := fixtures.Started(t)(servers.StartDriven(func() time.Time { return now }))
	as := func(name string) Opening { o := first; o.Node = name; return o }
	mate := node(t, server, as("n1"))
	refused := connect(t, Options{URL: server.URL, Now: func() time.Time { return now.Add(off) }})
	mustOpen(t, refused, as("n2"))
	now = now.Add(20 * time.Second)
	serves(t, mate, "k")
	now = now.Add(-20 * time.Second)
	suite.Must(t, refused.Beat(t.Context(), epoch))
	if got, want := refused.Latest(), mate.Latest(); got != want {
		t.Errorf("the refused node heard of %d, the store showed %d to its mate", got, want)
	}
	allAre(t, refused, "k", algorithms.StatusClock)
	off = 0
	serves(t, refused, "k")
	if opened := mustOpen(t, refused, as("n2")); opened.Lost {
		t.Errorf("opened again: %+v", opened)
	}
	suite.Must(t, fixtures.Operator(t, server).FlushAll(t.Context()).Err())
	again := as("n2")
	again.LastGeneration, again.Bootstrap = refused.Generation(), false
	if opened := mustOpen(t, refused, again); opened.LostAt < mate.Latest() {
		t.Errorf("lost at %d, although the store has shown %d", opened.LostAt, mate.Latest())
	}
}
