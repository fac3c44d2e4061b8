//go:build !race

package lab

import (
	"context"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// epoch is the policy epoch of most calls here.
const epoch = "1-a"

var first = store.Opening{Region: "eu", Epoch: epoch, Bootstrap: true}

const long = int64(1) << 50

func terms(entitlement quantity.Units) algorithms.Terms {
	return algorithms.Terms{Kind: algorithms.FixedWindow, Window: long, Cell: long, Tick: 1,
		Entitlement: entitlement}
}

func key(id string) string { return store.BucketKey(store.Whole, id) }

// under returns the fence of a call. The store fills in the rest.
func under(epoch string) algorithms.Fence { return algorithms.Fence{Epoch: epoch} }

// charge is a call that charges costs to one bucket.
func charge(id string, entitlement quantity.Units, costs ...quantity.Units) algorithms.Decide {
	return algorithms.Decide{Fence: under(epoch), Commit: true, Costs: costs,
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: key(id),
			Terms: terms(entitlement)}}}}
}

// decide runs one call, which must reach the store.
func decide(t testing.TB, s *store.Store, c algorithms.Decide) algorithms.Decided {
	t.Helper()
	r := s.Decide(context.Background(), []algorithms.Decide{c})[0]
	if !store.Answered(r.Err) {
		t.Fatal(r.Err)
	}
	return r.Value
}

func mustOpen(t testing.TB, s *store.Store, o store.Opening) store.Opened {
	t.Helper()
	opened, err := s.Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open %+v: %v", o, err)
	}
	return opened
}

func admitted(d algorithms.Decided) (n int64) {
	for _, a := range d.Answers {
		if a.Admitted {
			n++
		}
	}
	return n
}
