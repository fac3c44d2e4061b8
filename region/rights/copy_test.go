package rights

import (
	"path/filepath"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/region/copies"
	"github.com/quotad/quotad/region/journal"
)

// TestACopyTakesNoLaterWordsPlace: what a mate saw long ago has the generation in which it was seen. So it does
// not take the place of what this node's journal has of a later time and an earlier generation than the
// store has now.
func TestACopyTakesNoLaterWordsPlace(t *testing.T) {
	j, err := journal.Open(filepath.Join(fixtures.Folder(t), "j"), journal.Options{Region: "us", Node: "n2"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	b := lasting("a")
	at := b.Cells().Opens(7)
	before := newLastSeen("us", Memory{}, atTime(at), atTime(at))
	before.used(b, shown(7, 90), at+100)
	mine, _ := before.checkpoints(1, true)
	if err := j.Checkpoint(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	// A failover: generation 2. The node restarts, and a mate gives it all that it has.
	after := newLastSeen("us", Memory{}, atTime(at), atTime(at))
	after.learn([]copies.Use{{Bucket: "a", Cell: 7, Units: 40, At: at + 50, Until: mine[0].Until, Generation: 1}})
	learned, _ := after.checkpoints(2, true)
	if err := j.Checkpoint(t.Context(), learned); err != nil {
		t.Fatal(err)
	}
	if has, err := j.Checkpoints("a"); err != nil || len(has) != 1 || has[0].Used != 90 {
		t.Errorf("the journal has %+v %v, and had 90 used, seen later", has, err)
	}
}

// F16: the mates are those whose addresses follow. Where each zone has a subnet, as zones of clouds do, they are in
// the same zone, and are lost together.
func TestFindingMatesAreInTheSameZone(t *testing.T) {
	all := []string{"10.0.1.1:8082", "10.0.1.2:8082", "10.0.1.3:8082", "10.0.2.1:8082", "10.0.2.2:8082", "10.0.2.3:8082"}
	for _, own := range all {
		elsewhere := false
		for _, mate := range mostNext(all, own, mostMates) {
			elsewhere = elsewhere || mate[:6] != own[:6]
		}
		if !elsewhere {
			t.Errorf("%s has no mate in another zone", own)
		}
	}
}
