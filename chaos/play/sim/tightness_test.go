//go:build !race

package sim

import "testing"

// TestTightSeedsComeNear: no seed of the tight draw breaks an invariant, and they come near what
// the judge allows. Of the buckets that are allowed an excess a third come to half of it, of the
// others half come within a tenth of their limit, and half of the probes must be given what they
// ask for.
func TestTightSeedsComeNear(t *testing.T) {
	tally := holds(t, Hunt{Config: Config{Tight: true}, Seeds: 60})
	near := tally.Counts.Tightness
	t.Logf("%+v", near)
	if near.Excused < 10 || 3*near.Half < near.Excused {
		t.Errorf("%d of %d buckets come to half of what they are allowed", near.Half, near.Excused)
	}
	if near.Exact < 10 || 2*near.Tenth < near.Exact {
		t.Errorf("%d of %d buckets come within a tenth of their limit", near.Tenth, near.Exact)
	}
	if near.Probes < 30 || 2*near.Demanding < near.Probes {
		t.Errorf("%d of %d probes must be given most of what they ask for", near.Demanding, near.Probes)
	}
}
