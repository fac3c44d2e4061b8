//go:build !race

package sim

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/quantity"
)

// TestANodeWithoutItsJournalCountsAsOneMore: nodes decide without their store, after their region
// has used what it had. A node that starts again spends nothing more; one that lost its journal
// spends its part once more, also of a reserve, and no more than that.
func TestANodeWithoutItsJournalCountsAsOneMore(t *testing.T) {
	for name, c := range map[string]struct {
		limit string
		ends  []Act
		above quantity.Units
	}{
		"runs on":             {hourly, nil, 1000},
		"starts again":        {hourly, []Act{at(22, Crash, 1)}, 1000},
		"no journal":          {hourly, []Act{at(22, JournalLost, 0)}, 1500},
		"an old journal":      {hourly, []Act{at(14, JournalOld, 8)}, 1500},
		"reserve":             {hourly + ", local_reserve: 0.1", nil, 0},
		"reserve, no journal": {hourly + ", local_reserve: 0.1", []Act{at(22, JournalLost, 0)}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			p := local(pair(1, c.limit, [][2]int64{{1, 13}, {16, 42}}, append(c.ends,
				at(15, StoreDown, 6), at(15, StoreDown, 6, of(1)), at(25, StoreDown, 18))...))
			if strings.Contains(c.limit, "local_reserve") {
				p.Document = strings.Replace(p.Document, "lending_limit: 0, ", "", 1)
			}
			w, err := newWorld(p, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			w.counts.Deeds = map[Deed]int64{}
			w.run(p.Heal)
			if w.broken != nil {
				t.Fatal(w.broken)
			}
			var most quantity.Units
			for _, units := range w.limits[0].buckets[0].labels {
				most = max(most, units)
			}
			if most != 1000+c.above {
				t.Errorf("%d admitted, want %d above 1000", most, c.above)
			}
		})
	}
}
