//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestBenefitOfTheTail: the last units of a long window are scattered: each of four regions has one
// or two, and expects less than half a request more. One region needs them, and is denied them if
// each keeps its own.
func TestBenefitOfTheTail(t *testing.T) {
	const window = 20 // seconds
	var got [2]denials
	for i, o := range []Options{{}, {WithoutTail: true}} {
		// units of each of the others in a window
		for _, calm := range []quantity.Units{5, 15, 25} {
			for seed := range uint64(8) {
				c := newClusterOf(t, seed, algorithms.FixedWindow, window*allocator.Second, 40, 40,
					40, 40, 40)
				c.bucket.Lending = allocator.PPM
				c.pooled = new(quantity.Units)
				c.run((c.now/(window*allocator.Second) + 1) * window * allocator.Second)
				c.demandFor(o, window, 400, calm, calm, calm, calm)
				c.run(c.now + (window-1)*allocator.Second)
				c.demandFor(o, window, 400, 0, 0, 0, 0)
				c.run(c.now + allocator.Second - 1)
				got[i].add(c)
			}
		}
	}
	on, off := got[0].falsely(), got[1].falsely()
	t.Logf("false denials of %d units: %d with, %d without", got[0].pooled, on, off)
	if off < 2*on || off == 0 || on*100 > got[0].pooled {
		t.Errorf("false denials of %d units: %d with, %d without", got[0].pooled, on, off)
	}
}
