package sim

import "testing"

// TestTightSeedsComeNear: no seed of the tight draw breaks an invariant, and they come near what the
// judge allows. Of the buckets that are allowed an excess a third come to half of it, of the others
// half come within a tenth of their limit, and half of the probes must be given what they ask for.
func TestTightSeedsComeNear(t *testing.T) {
	h := Hunt{Config: Config{For: *seconds * 1_000_000, Tight: true}, From: *from, Seeds: 60}
	tally, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tally.Broken != nil {
		f, err := Explain(tally.Broken.Plan)
		if err != nil {
			t.Fatal(err)
		}
		t.Fatalf("seed %d: %v\n%v\n%s", f.Seed, f.Broken, f.Acts, f.Timeline)
	}
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
