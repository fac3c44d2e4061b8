//go:build !race

package algorithms_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestABucketOfAVersionBeforeIsKept: a version of before wrote into the field w the cell in which
// the bucket was last kept. That says nothing of how long, so the next charge keeps the bucket.
func TestABucketOfAVersionBeforeIsKept(t *testing.T) {
	const start = 1_800_000_000_000_000
	for _, kind := range []algorithms.Kind{algorithms.TokenBucket, algorithms.LeakyBucket} {
		terms := algorithms.Terms{Kind: kind, Window: 1_000_000, Cell: 1_000_000, Tick: 1,
			Entitlement: 100, Burst: 1000}
		s := newStores(t, start)
		s.open(algorithms.Open{Generation: 1})
		s.decide(terms, 1)
		cell := terms.CellAt(start)
		k := s.lua.client
		suite.Must(t, k.HSet(t.Context(), "k", "w", int64(cell)).Err())
		suite.Must(t, k.PExpireAt(t.Context(), "k", time.UnixMicro(start)).Err())
		s.decide(terms, 1)
		ends := quantity.StoreTime(k.PExpireTime(t.Context(), "k").Val().Microseconds())
		useful := terms.Useful(cell)
		if w := k.HGet(t.Context(), "k", "w").Val(); w != strconv.FormatInt(int64(useful), 10) ||
			ends < useful {
			t.Errorf("%s: kept until %s, ends at %d, want both at %d", kind, w, ends, useful)
		}
	}
}
