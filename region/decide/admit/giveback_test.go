package admit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
)

// stored returns what the store counts as used of the limit of account a.
func (l *Limiter) stored(t *testing.T) quantity.Units {
	t.Helper()
	r := l.tenure.Rules()
	_, b, err := r.Locate("minute", "api", request("a").Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	found, err := l.store.Inspect(t.Context(), algorithms.Inspect{
		Fence: algorithms.Fence{Epoch: r.Epoch}, Target: r.Target(b, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return found.State.Used
}

// What a node holds goes back when it is idle, when the document changes, and when the node ends:
// then the store counts what was admitted.
func TestChunksGoBack(t *testing.T) {
	for _, tc := range []struct {
		name string
		ends func(t *testing.T, n *Limiter)
	}{
		{"after idling", func(*testing.T, *Limiter) { time.Sleep(held.Life + 2*sweepEvery) }},
		{"with another document", func(t *testing.T, n *Limiter) {
			d := documents.Parse(t, 2, here, prefetched,
				"name: new, domain: new, limit: 1, window: 1s")
			if err := n.tenure.Adopt(t.Context(), d); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * sweepEvery)
		}},
		{"with an exact limit", func(t *testing.T, n *Limiter) {
			d := documents.Parse(t, 2, here, "name: minute, limit: 1000, window: 1m")
			if err := n.tenure.Adopt(t.Context(), d); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * sweepEvery)
		}},
		{"at the end", func(t *testing.T, n *Limiter) { n.chunks.ReturnAll(t.Context()) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			counted(t, here, []string{prefetched}, func(t *testing.T, n *Limiter,
				_ *countedServer) {
				admitted := warm(t, n, request("a"))
				if stored := n.stored(t); stored <= admitted {
					t.Fatalf("%d admitted, %d stored: nothing is held", admitted, stored)
				}
				tc.ends(t, n)
				if stored := n.stored(t); stored != admitted {
					t.Errorf("%d admitted, %d stored", admitted, stored)
				}
				n.wantAccounted(t, 0)
			})
		})
	}
}

// A node that ends waits for the chunk that it has asked for, and gives that back, too. It asks for
// no more.
func TestChunksUnderWayGoBack(t *testing.T) {
	counted(t, here, []string{prefetched}, func(t *testing.T, n *Limiter, s *countedServer) {
		warm(t, n, request("a"))
		n.chunks.ReturnOver(t.Context(), true)
		admitted := n.stored(t)
		s.takes.Store(int64(20 * time.Millisecond))
		a := n.tenure.Rules().Match(asked(request("a")))[0]
		n.chunks.topUp(n.tenure.Rules(), a)
		synctest.Wait() // the chunk is on its way
		begun := time.Now()
		n.chunks.ReturnAll(t.Context())
		if took := time.Since(begun); took > n.deadline+100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		s.takes.Store(0)
		if stored := n.stored(t); stored != admitted {
			t.Errorf("%d stored, %d were admitted", stored, admitted)
		}
		n.must(t, request("a"))
		n.chunks.topUp(n.tenure.Rules(), a)
		time.Sleep(time.Second)
		if stored := n.stored(t); stored != admitted+1 {
			t.Errorf("%d stored, %d were admitted", stored, admitted+1)
		}
		n.wantAccounted(t, 0)
	})
}

// What comes back makes room for those that were denied, also if the document has changed.
func TestGivingBackEndsDenials(t *testing.T) {
	counted(t, here, []string{prefetched}, func(t *testing.T, n *Limiter, _ *countedServer) {
		admitted := warm(t, n, request("a"))
		d := documents.Parse(t, 2, here, prefetched, "name: new, domain: new, limit: 1, window: 1s")
		if err := n.tenure.Adopt(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		rest := units("a", 1000-admitted)
		if d := n.must(t, rest); d.Allowed {
			t.Fatalf("%+v", d)
		}
		if d := n.must(t, rest); d.Allowed || !d.FromMemory {
			t.Fatalf("%+v", d)
		}
		n.chunks.ReturnOver(t.Context(), false)
		if d := n.must(t, rest); !d.Allowed {
			t.Errorf("%+v", d)
		}
	})
}

// However many chunks go back at a time, one round trip carries a bounded number of them.
func TestManyChunksGoBackInPieces(t *testing.T) {
	counted(t, here, []string{prefetched}, func(t *testing.T, n *Limiter, s *countedServer) {
		const many = 3*maxReturned + 1
		var all []leftover
		for i := range many {
			q := units(distinct(i), 10)
			n.must(t, q)
			a := n.tenure.Rules().Match(asked(q))[0]
			all = append(all, leftover{a, &held.Chunk{Answer: held.Answer{Now: now(),
				Generation: n.tenure.Generation(),
				State:      algorithms.State{Cell: algorithms.CellAt(now(), a.Bucket.Cell)}}}, 10})
		}
		synctest.Wait() // for the chunks that are asked for
		trips := s.trips.Load()
		n.chunks.giveBack(t.Context(), all)
		if got := s.trips.Load() - trips; got != 4 || s.refunds.Load() != many {
			t.Errorf("%d refunds in %d round trips", s.refunds.Load(), got)
		}
		if got := counts(t, n.chunks.returnedUnits); got != 10*many {
			t.Errorf("%d units came back of %d", got, 10*many)
		}
	})
}
