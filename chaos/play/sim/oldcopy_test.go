//go:build !race

package sim

import (
	"slices"
	"testing"
)

// TestAnOldCopyBetweenTwoBeats: a node lends, and dies before its next checkpoint; its journal is
// replaced by a copy of a second before, and then its store loses all. The store must have known of
// the rows that were announced, so that the copy is known as one and the peers are asked.
func TestAnOldCopyBetweenTwoBeats(t *testing.T) {
	p := Draw(1304, Config{For: 30_000_000, Large: true})
	p.Acts = slices.DeleteFunc(p.Acts, func(a Act) bool { return !slices.Contains([]int{1, 14, 18}, a.ID) })
	if len(p.Acts) != 3 || p.Acts[0].Do != JournalOld || p.Acts[1].Do != Burst || p.Acts[2].Do != Flush {
		t.Fatalf("the seed draws other acts by now: %+v", p.Acts)
	}
	o, err := Run(p)
	if err != nil || o.Broken != nil {
		t.Fatal(err, o.Broken)
	}
	if o.Counts.Admitted < 150 {
		t.Errorf("%d admitted: the test shows nothing", o.Counts.Admitted)
	}
}
