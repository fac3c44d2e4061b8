//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestRightsAreNotStrandedByForgetting: in a long window a region lends, and then forgets its views
// (by a restart, or by another policy document). It still gets its own rights back from a peer that
// no longer needs them.
func TestRightsAreNotStrandedByForgetting(t *testing.T) {
	for name, forget := range map[string]func(*testRegion){
		"a restart": func(r *testRegion) { r.start() },
		"a policy document": func(r *testRegion) {
			r.step(TenureChanged{Generation: 1, Epoch: epochForTests, Peers: r.peers()})
		},
	} {
		c := newCluster(t, 1, 3600*allocator.Second, 4000, 4000, 2000)
		us, eu := c.regions["us"], c.regions["eu"]
		c.demand(Options{}, 0, 400, 0)
		c.run(c.now + 15*allocator.Second) // eu spends all its own and borrows
		lent := us.machine.Stats().Lent
		if lent < 200 {
			t.Fatalf("%s: us lent %d: the test needs more", name, lent)
		}
		eu.rate = 0
		forget(us)
		us.rate = 400
		c.run(c.now + 20*allocator.Second)
		left := c.bucket.Limit - c.admitted()
		if us.denied > 0 && left > c.bucket.Limit/20 {
			t.Errorf("%s: us denied %d with %d of %d unspent; implausible: %d", name, us.denied,
				left, c.bucket.Limit, us.machine.Stats().Implausible)
		}
	}
}

// TestMovedRightsAreRemembered: a region that borrowed and was then idle gets more with its first
// ask, because it still knows what it has and names sums above that. When the cell is over, the
// bucket is forgotten.
func TestMovedRightsAreRemembered(t *testing.T) {
	const window = 60 * allocator.Second
	c := newCluster(t, 1, window, 400, 400, 200)
	us := c.regions["us"]
	c.demand(Options{}, 0, 0, 0)
	c.run((c.now/window + 1) * window)
	us.rate = 40
	c.run(c.now + 12*allocator.Second)
	us.rate = 0
	c.run(c.now + 2*idleAfter)
	before := us.machine.stats
	if before.Borrowed == 0 || us.machine.views["b"] == nil {
		t.Fatalf("us borrowed %d and is idle: its view is %v", before.Borrowed,
			us.machine.views["b"])
	}
	us.decide(us.machine.views["b"].state.Free + 50)
	c.run(c.now + allocator.Second)
	after := us.machine.stats
	if after.Borrowed == before.Borrowed || after.AsksRefused > before.AsksRefused {
		t.Errorf("us borrowed %d more, %d asks got nothing",
			after.Borrowed-before.Borrowed, after.AsksRefused-before.AsksRefused)
	}
	c.run(c.now + window)
	if us.machine.views["b"] != nil {
		t.Error("us still remembers the bucket when the cell is over")
	}
}

// TestBorrowingLimit: a region never holds more borrowed rights than the borrowing limit says,
// whatever its requests wait for.
func TestBorrowingLimit(t *testing.T) {
	c := newCluster(t, 1, allocator.Second, 400, 400, 200)
	c.bucket.Borrowing = 250_000 // 100 of 400
	c.demand(Options{}, 900, 60, 20)
	most := quantity.Units(0)
	us := c.regions["us"]
	for end := c.now + 5*allocator.Second; c.now < end; {
		c.run(c.queue[0].at)
		i := us.store.Inspect(quantity.StoreTime(us.time()), algorithms.Inspect{Fence: us.guard(),
			Target: algorithms.Target{Key: "b", Terms: us.terms()}})
		borrowed := map[int64]quantity.Units{}
		for _, row := range i.Rows {
			borrowed[int64(row.Cell)] += row.Borrowed - row.Returned
			most = max(most, borrowed[int64(row.Cell)])
		}
	}
	if most == 0 || most > 100 {
		t.Errorf("us held %d borrowed units of a cell, its limit is 100", most)
	}
}
