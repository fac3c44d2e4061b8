package store

import (
	"runtime"
	"testing"

	"github.com/quotad/quotad/algorithms"
)

// A row of a one-minute cell costs the embedded server no more than one of any other cell. (Cell
// numbers below 2^26 are indices up to which its Lua fills an array.)
func TestRowsCostTheEmbeddedServerLittle(t *testing.T) {
	server := kinds["embedded"].start(t)
	s := node(t, server, first)
	for _, kind := range algorithms.Kinds {
		const window = 60_000_000
		of := algorithms.Terms{Kind: kind, Window: 10 * window, Cell: algorithms.CellLength(kind,
			10*window), Tick: 1, Entitlement: 100}
		if kind.Bucket() {
			of.Burst = 100
		}
		d := decide(t, s, on(string(kind), of, 1))
		lend(t, s, algorithms.Lend{Fence: under(epoch),
			Target: algorithms.Target{Key: BucketKey(Whole, string(kind)), Terms: of},
			Debit: algorithms.Debit{Peer: "us",
				Cell: d.Buckets[0].Cell, Lent: 1, Cap: 100}})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decide(t, s, on(string(kind), of, 1))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 20<<20 {
			t.Errorf("%s: a decision took %d MB", kind, used>>20)
		}
	}
}
