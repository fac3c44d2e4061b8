package rights

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/journal"
)

// TestACopyTakesNoLaterWordsPlace: what a mate saw long ago has the generation in which it was seen. So it does
// not take the place of what this node's journal has of a later time and an earlier generation than the
// store has now.
func TestACopyTakesNoLaterWordsPlace(t *testing.T) {
	j, err := journal.Open(filepath.Join(fixtures.Folder(t), "j"), journal.Options{Region: "us", Node: "n2"})
	suite.Must(t, err)
	defer j.Close()
	b := lasting("a")
	at := b.Cells().Opens(7)
	before := newLastSeen("us", Memory{}, atTime(at), atTime(at))
	before.used(b, shown(7, 90), at+100)
	mine, _ := before.checkpoints(1, true)
	suite.Must(t, j.Checkpoint(t.Context(), mine))
	// A failover: generation 2. The node restarts, and a mate gives it all that it has.
	after := newLastSeen("us", Memory{}, atTime(at), atTime(at))
	after.learn([]copies.Use{{Bucket: "a", Cell: 7, Units: 40, At: at + 50, Until: mine[0].Until, Generation: 1}})
	learned, _ := after.checkpoints(2, true)
	suite.Must(t, j.Checkpoint(t.Context(), learned))
	if has, err := j.Checkpoints("a"); err != nil || len(has) != 1 || has[0].Used != 90 {
		t.Errorf("the journal has %+v %v, and had 90 used, seen later", has, err)
	}
}

// TestMatesAreSpread: each node has copies at two others, where there are as many, and keeps those of as many.
// Where each zone has a subnet, one of the two is in another zone.
func TestMatesAreSpread(t *testing.T) {
	for zones := 1; zones <= 3; zones++ {
		for each := 1; each <= 4; each++ {
			var all []string
			for i := range zones * each {
				all = append(all, fmt.Sprintf("10.0.%d.%d:8082", i/each, i%each))
			}
			keeps := map[string]int{}
			for _, own := range all {
				mates := spread(all, own)
				elsewhere := zones == 1
				for _, mate := range mates {
					keeps[mate]++
					elsewhere = elsewhere || mate[:6] != own[:6]
				}
				if want := min(2, len(all)-1); !elsewhere || len(mates) != want || slices.Contains(mates, own) || want == 2 && mates[0] == mates[1] {
					t.Errorf("%d zones of %d: the mates of %s are %v", zones, each, own, mates)
				}
			}
			for _, node := range all {
				if want := min(2, len(all)-1); keeps[node] != want {
					t.Errorf("%d zones of %d: %s keeps copies of %d nodes, not %d", zones, each, node, keeps[node], want)
				}
			}
		}
	}
}
