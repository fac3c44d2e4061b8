package queue

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// A part of a request has the portions of its limits, and requests of a group have theirs one after
// the other; where all may use all, nothing is said.
func TestPortions(t *testing.T) {
	const batch quantity.PPM = 600_000
	a, b := &rules.Applied{}, &rules.Applied{}
	w := Ask{Applied: []*rules.Applied{a, b}, Portions: []quantity.PPM{algorithms.Whole, batch}}
	if own := w.only(Part{Of: []int{1}}); own.Applied[0] != b || own.PortionOf(0) != batch {
		t.Errorf("the second limit alone: %+v", own)
	}
	whole := Ask{Applied: w.Applied}
	if got := partsOf([]Ask{whole, w, whole}); !slices.Equal(got, []quantity.PPM{algorithms.Whole, algorithms.Whole, algorithms.Whole, batch, algorithms.Whole, algorithms.Whole}) {
		t.Errorf("of three requests: %v", got)
	}
	if got := partsOf([]Ask{whole, whole}); got != nil {
		t.Errorf("of requests that may use all: %v", got)
	}
}
