package rights

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
)

func heardOf(node string, bucket int, sequence quantity.Units) exchange.Heard {
	return exchange.Heard{Hint: exchange.Hint{Region: "eu", Node: node, Bucket: fmt.Sprint(bucket),
		Used: sequence}}
}

// TestAFloodOfHintsDisplacesNoAsk: hints on more buckets than may wait, each repeated again and
// again, fill a bounded queue. Peers' asks, requests' wants and the results of effects that come
// meanwhile are all taken, and heard before the hints.
func TestAFloodOfHintsDisplacesNoAsk(t *testing.T) {
	q := newEvents()
	for said := range quantity.Units(3) {
		for b := range maxHintsWaiting + 5000 {
			if took := q.post(heardOf("n1", b, said)); took != (b < maxHintsWaiting) {
				t.Fatalf("hint %d of bucket %d: taken %t", said, b, took)
			}
		}
	}
	for _, e := range []exchange.Event{exchange.Wanted{}, exchange.Asked{ID: 7},
		exchange.Lent{ID: 8}} {
		if !q.post(e) {
			t.Fatalf("%T was displaced by hints", e)
		}
	}
	const turn = 1 // not one of the last lane
	for _, want := range []exchange.Event{exchange.Lent{}, exchange.Asked{}, exchange.Wanted{}} {
		if got, _ := q.next(turn); fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
			t.Errorf("%T is heard where %T is due", got, want)
		}
	}
	for b := range maxHintsWaiting {
		if h, ok := q.next(turn); !ok || h != heardOf("n1", b, 2) {
			t.Fatalf("hint %d: %+v, %t", b, h, ok)
		}
	}
	if e, ok := q.next(turn); ok || q.length(hintLane) != 0 {
		t.Errorf("after the last: %+v", e)
	}
	if q.dropped[hintLane].Load() != 3*5000 || q.lost() != 3*5000 {
		t.Errorf("%d dropped are counted", q.lost())
	}
}

// TestNoLaneWaitsForEver: even if one lane never runs empty, the events in the other lanes are
// heard.
func TestNoLaneWaitsForEver(t *testing.T) {
	q := newEvents()
	q.post(heardOf("n1", 1, 0))
	q.post(exchange.Wanted{})
	heard := map[string]bool{}
	for turn := range 2 * leastFirst {
		q.post(exchange.Lent{})
		e, _ := q.next(turn)
		heard[fmt.Sprintf("%T", e)] = true
	}
	if len(heard) != 3 {
		t.Errorf("only %v are heard", heard)
	}
}

// TestNothingOvertakesAChangeOfTenure: a request that comes after the change tells of a bucket that
// was lost under the new tenure. The machine hears of the change first, also when the last lane is
// due.
func TestNothingOvertakesAChangeOfTenure(t *testing.T) {
	q := newEvents()
	q.deliver(exchange.TenureChanged{Generation: 2}, nil)
	q.post(exchange.Lost{Generation: 2})
	q.post(heardOf("n1", 1, 0))
	for _, want := range []exchange.Event{exchange.TenureChanged{}, exchange.Heard{}, exchange.Lost{}} {
		if got, _ := q.next(leastFirst); fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
			t.Errorf("%T is heard where %T is due", got, want)
		}
	}
}

// TestHintsWaitInOrder: under random puts and takes, the hint queue behaves as a plain list in
// which a newer hint replaces the older one of its bucket and node.
func TestHintsWaitInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var q hintQueue
	var plain []exchange.Hint
	for turn := range quantity.Units(20_000) {
		if random.IntN(5) < 2 {
			h, ok := q.take()
			if ok != (len(plain) > 0) || ok && h != plain[0] {
				t.Fatalf("turn %d: took %+v, %t of %d", turn, h, ok, len(plain))
			}
			plain = plain[min(1, len(plain)):]
			continue
		}
		h := heardOf(fmt.Sprint(random.IntN(3)), random.IntN(40), turn).Hint
		q.put(h)
		replaced := false
		for i, old := range plain {
			if old.Node == h.Node && old.Bucket == h.Bucket {
				plain[i], replaced = h, true
			}
		}
		if !replaced {
			plain = append(plain, h)
		}
		if cap(q.order) > 1000 {
			t.Fatalf("turn %d: room for %d of %d", turn, cap(q.order), len(plain))
		}
	}
}

// TestAFullLaneIsCounted: asks and wants beyond what may wait are refused, and counted in their
// lane.
func TestAFullLaneIsCounted(t *testing.T) {
	q := newEvents()
	for range maxAsksWaiting + 3 {
		q.post(exchange.Asked{})
	}
	q.post(exchange.Questioned{})
	for range maxWantsWaiting + 2 {
		q.post(exchange.Wanted{})
	}
	if asks, wants := q.dropped[askLane].Load(), q.dropped[wantLane].Load(); asks != 4 ||
		wants != 2 || q.lost() != 6 {
		t.Errorf("%d asks and %d wants are counted as dropped", asks, wants)
	}
}

// TestMovesGoInPieces: thousands of scripts that move rights are sent in bounded pipelines, a few
// at a time, and each result returns to its caller.
func TestMovesGoInPieces(t *testing.T) {
	turns := make(chan struct{}, movesUnderWay)
	var under, most atomic.Int64
	store := func(_ context.Context, calls []int) []int {
		if len(calls) > maxMoved {
			t.Errorf("a pipeline of %d", len(calls))
		}
		most.Store(max(most.Load(), under.Add(1)))
		defer under.Add(-1)
		doubled := make([]int, len(calls))
		for i, c := range calls {
			doubled[i] = 2 * c
		}
		return doubled
	}
	var all sync.WaitGroup
	for message := range 16 {
		all.Go(func() {
			calls := make([]int, algorithms.MaxUnits%7+250)
			for i := range calls {
				calls[i] = message*1000 + i
			}
			results := 0
			inPieces(t.Context(), turns, calls, store, func(i, r int) {
				results++
				if r != 2*calls[i] {
					t.Errorf("call %d came to %d", calls[i], r)
				}
			})
			if results != len(calls) {
				t.Errorf("%d results of %d calls", results, len(calls))
			}
		})
	}
	all.Wait()
	if most.Load() > movesUnderWay {
		t.Errorf("%d pipelines at a time", most.Load())
	}
}

// TestMovesEndWithTheirNode: scripts whose turn has not come when a node ends are not done, and have
// no results.
func TestMovesEndWithTheirNode(t *testing.T) {
	turns := make(chan struct{}, 1)
	turns <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	inPieces(ctx, turns, make([]int, 3*maxMoved), func(context.Context, []int) []int {
		t.Error("done")
		return nil
	}, func(i, _ int) { t.Errorf("call %d has a result", i) })
}
