package journal

import (
	"fmt"
	"math"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestTakeBack: the journal forgets that the store's time was later, also when it is opened again.
// Checkpoints that were seen later are revised, others and all rows stay.
func TestTakeBack(t *testing.T) {
	const to, ahead = 1_000, 90_000
	j, path := newJournal(t, unsynced())
	var all []Checkpoint
	for i := range quantity.Cell(3 * rowsPage) { // on several pages; each third one of a cell to come
		c := Checkpoint{Bucket: fmt.Sprintf("%06d", i), Cell: i % 3, Used: 5, At: 500, Until: 2_000, Generation: 7}
		if i%3 > 0 {
			c.At, c.Until = ahead, 99_000
		}
		all = append(all, c)
	}
	for some := all; len(some) > 0; {
		n := min(len(some), MaxCheckpoints)
		suite.Must(t, j.Checkpoint(t.Context(), some[:n]))
		some = some[n:]
	}
	row := Row{Bucket: "b", Peer: "eu", Cell: 80, Lent: 3, Until: 99_500}
	if err := j.Record(t.Context(), []Row{row}, ahead); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{j.SetStoreTime(ahead+3_000, ahead), j.SetWholeSince(ahead - 5), j.SetGeneration(7)} {
		suite.Must(t, err)
	}
	began := func(c Checkpoint) (Checkpoint, bool) {
		if c.At <= to {
			t.Errorf("asked about %+v", c)
		}
		c.At = to
		return c, c.Cell == 1
	}
	suite.Must(t, j.TakeBack(to, began))
	check := func(j *Journal) {
		t.Helper()
		seen, latest := j.StoreTime()
		if latest != to || len(seen) > 0 && seen[0] != 0 || j.WholeSince() != to || j.Generation() != 7 {
			t.Errorf("seen %v, latest %d, whole since %d, generation %d", seen, latest, j.WholeSince(), j.Generation())
		}
		for _, c := range all {
			got, err := j.Checkpoints(c.Bucket)
			want := c
			want.At = min(c.At, to)
			if err != nil || (len(got) == 1) != (c.Cell < 2) || len(got) == 1 && got[0] != want {
				t.Fatalf("%+v became %+v, %v", c, got, err)
			}
		}
		if rows, err := j.RowsOf("b", 80, 80); err != nil || len(rows) != 1 || rows[0] != row {
			t.Errorf("rows %+v, %v", rows, err)
		}
	}
	check(j)
	suite.Must(t, j.Close())
	j = mustOpen(t, path, unsynced()) // it checks all tallies
	check(j)
	// From then on the time goes on as before, and what is pruned is whole.
	suite.Must(t, j.SetStoreTime(to+10, to+5))
	if seen, latest := j.StoreTime(); latest != to+10 || seen[0] != to+5 {
		t.Errorf("then seen %v, latest %d", seen, latest)
	}
	if _, _, err := j.Prune(math.MaxInt64); err != nil {
		t.Error(err)
	}
}

// TestTakeBackOfNothing: a new journal, and one that is not ahead, stay as they are.
func TestTakeBackOfNothing(t *testing.T) {
	j, _ := newJournal(t, unsynced())
	none := func(c Checkpoint) (Checkpoint, bool) { return c, false }
	suite.Must(t, j.TakeBack(1_000, none))
	if _, latest := j.StoreTime(); latest != 0 || j.WholeSince() != math.MaxInt64 {
		t.Errorf("latest %d, whole since %d", latest, j.WholeSince())
	}
	suite.Must(t, j.SetStoreTime(900))
	suite.Must(t, j.TakeBack(1_000, none))
	if _, latest := j.StoreTime(); latest != 900 {
		t.Errorf("latest %d", latest)
	}
}
