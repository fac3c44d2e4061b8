//go:build !race

package sim

import "testing"

// TestSameSeedSameBytes: a run is the same each time, whatever ran before.
func TestSameSeedSameBytes(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		c := Config{For: 30_000_000}
		first, err := Trace(Draw(seed, c), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Trace(Draw(seed, c), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if first.Digest != again.Digest || first.Digest == (Digest{}) ||
			first.Timeline != again.Timeline || first.Counts.Events != again.Counts.Events ||
			first.Counts.Bytes != again.Counts.Bytes || first.Counts.Rows != again.Counts.Rows {
			t.Errorf("seed %d differs:\n%s\n%+v\n%s\n%+v", seed, first.Timeline, first.Counts,
				again.Timeline, again.Counts)
		}
	}
}

// TestAWideSeedIsTheSameEachTime: nodes with little memory drop what they remember of long windows in an order that
// chance does not decide.
func TestAWideSeedIsTheSameEachTime(t *testing.T) {
	seen := map[Digest]bool{}
	for range 4 {
		o, err := RunDigested(Draw(9, Config{For: 60_000_000, Wider: true}))
		if err != nil {
			t.Fatal(err)
		}
		seen[o.Digest] = true
	}
	if len(seen) > 1 {
		t.Errorf("%d runs of 4 differ", len(seen))
	}
}
