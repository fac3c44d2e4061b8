//go:build !race

package allocator

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestRoot(t *testing.T) {
	for n, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, 3: 1, 4: 2, 8: 2, 9: 3,
		1 << 62: 1 << 31, 1<<63 - 1: 3_037_000_499} {
		if got := root(n); got != want {
			t.Errorf("root of %d: %d, want %d", n, got, want)
		}
	}
	suite.Check(t, func(r *rapid.T) {
		n := rapid.Int64Range(0, 1<<60).Draw(r, "n")
		if got := root(n); got*got > n || (got+1)*(got+1) <= n {
			r.Fatalf("root of %d: %d", n, got)
		}
	})
}
