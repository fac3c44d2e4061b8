package prefetch

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/memory/rules"
)

// A node holds chunks of a bounded number of buckets.
func TestHoldersAreBounded(t *testing.T) {
	c := &Chunks{holders: map[*rules.Applied]*rules.Rules{}}
	var first *rules.Applied
	for i := range maxHolders + 10 {
		a := &rules.Applied{}
		if i == 0 {
			first = a
		}
		if got := c.hold(nil, a); got != (i < maxHolders) {
			t.Fatalf("bucket %d: %v", i, got)
		}
	}
	if !c.hold(nil, first) {
		t.Error("a bucket that is held already")
	}
	if c.over(nil, 0, false); !c.hold(nil, &rules.Applied{}) {
		t.Error("buckets of which nothing is held keep their places")
	}
}

// A node that ends waits for the chunk that it has asked for, and gives that back, too. It asks for
// no more.
func TestChunksUnderWayGoBack(t *testing.T) {
	holding(t, func(t *testing.T, n *node) {
		admitted := quantity.Units(0)
		for range 50 {
			n.admits(t, "a", 4)
			admitted += 4
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n.none() {
			t.Fatal("the node holds nothing, which shows nothing")
		}
		n.ReturnOver(t.Context(), true)
		if stored := n.stored(t, "a"); stored != admitted {
			t.Fatalf("%d stored, %d were admitted", stored, admitted)
		}
		n.takes.Store(int64(20 * time.Millisecond))
		n.topUp(n.rules, n.applied("a"))
		synctest.Wait() // the chunk is on its way
		begun := time.Now()
		n.ReturnAll(t.Context())
		if took := time.Since(begun); took > n.deadline+100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		n.takes.Store(0)
		if stored := n.stored(t, "a"); stored != admitted {
			t.Errorf("%d stored, %d were admitted", stored, admitted)
		}
		n.admits(t, "a", 1)
		time.Sleep(time.Second)
		if stored := n.stored(t, "a"); stored != admitted+1 {
			t.Errorf("%d stored, %d were admitted", stored, admitted+1)
		}
	})
}

// However many chunks go back at a time, one round trip carries a bounded number of them.
func TestManyChunksGoBackInPieces(t *testing.T) {
	holding(t, func(t *testing.T, n *node) {
		const many = 3*maxReturned + 1
		var all []leftover
		for i := range many {
			n.admits(t, strconv.Itoa(i), 10)
			a := n.applied(strconv.Itoa(i))
			all = append(all, leftover{a, &held.Chunk{Answer: held.Answer{Now: now(),
				Generation: n.terms.Generation(),
				State:      algorithms.State{Cell: algorithms.CellAt(now(), a.Bucket.Cell)}}}, 10})
		}
		synctest.Wait() // for the chunks that are asked for
		trips := n.trips.Load()
		n.giveBack(t.Context(), all)
		if got := n.trips.Load() - trips; got != 4 || n.refunds.Load() != many {
			t.Errorf("%d refunds in %d round trips", n.refunds.Load(), got)
		}
		if got := testutil.ToFloat64(n.returnedUnits); got != 10*many {
			t.Errorf("%v units came back of %d", got, 10*many)
		}
	})
}
