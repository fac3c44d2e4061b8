//go:build !race

package sim

import (
	"slices"
	"strings"
	"testing"
)

// TestShrinkKeepsWhatBreaks: shrinking leaves few acts of a plan that breaks an invariant. They
// break the same invariant, and the timeline shows it. The violation here is made up: a bucket is
// judged as if its limit were lower.
func TestShrinkKeepsWhatBreaks(t *testing.T) {
	c := Config{For: 30_000_000, lowered: 2}
	for seed := uint64(1); ; seed++ {
		p := Draw(seed, c)
		o, err := Run(p)
		if err != nil {
			t.Fatal(err)
		}
		if o.Broken == nil {
			continue
		}
		f, err := Explain(p)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case f.Broken.Invariant != o.Broken.Invariant:
			t.Errorf("%s broke first, and %s when shrunk", o.Broken.Invariant, f.Broken.Invariant)
		case len(f.Acts) >= len(p.Acts) || len(f.Acts) > 5:
			t.Errorf("of %d acts %d are left", len(p.Acts), len(f.Acts))
		case !strings.Contains(f.Timeline, "VIOLATION"):
			t.Errorf("the timeline does not tell:\n%s", f.Timeline)
		}
		ids := []int{} // perhaps none is needed
		for _, a := range f.Acts {
			ids = append(ids, a.ID)
		}
		c.Only = ids
		again, err := Run(Draw(seed, c))
		if err != nil || again.Broken == nil || *again.Broken != *f.Broken {
			t.Errorf("acts %v alone: %v, %v; want %v", slices.Sorted(slices.Values(ids)), again,
				err, f.Broken)
		}
		return
	}
}
