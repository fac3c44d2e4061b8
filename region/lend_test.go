package region_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
)

// Every row that a borrower was told of is in the lender's journal, with that value or a higher
// one.
func TestLentRowsAreInTheJournal(t *testing.T) {
	twoRegions(t, documents.Parse(t, 1, halves, "name: hour, limit: 100, window: 1h"), func(t *testing.T, c *cluster, us, eu *running) {
		us.load(t, request("a"), 1, time.Second)
		heard, err := us.Bucket(t.Context(), "hour", "api", request("a").Descriptors)
		suite.Must(t, err)
		var borrowed quantity.Units
		for _, row := range heard.Inspected.Rows {
			borrowed += row.Borrowed
			i := slices.IndexFunc(rowsOf(t, eu.journal),
				func(r journal.Row) bool { return r.Cell == row.Cell && r.Peer == "us" })
			if row.Borrowed > 0 && (i < 0 || rowsOf(t, eu.journal)[i].Lent < row.Borrowed) {
				t.Errorf("us heard of %d units lent in cell %d; the journal of eu has %+v",
					row.Borrowed, row.Cell, rowsOf(t, eu.journal))
			}
		}
		if borrowed == 0 || us.counter(t, "units_borrowed") != borrowed {
			t.Errorf("us borrowed %d, counts %d", borrowed, us.counter(t, "units_borrowed"))
		}
	})
}

func rowsOf(t *testing.T, j *journal.Journal) (rows []journal.Row) {
	t.Helper()
	for r, err := range j.Rows() {
		suite.Must(t, err)
		rows = append(rows, r)
	}
	return rows
}

// A lender whose journal accepts no rows announces none. The borrower gets nothing, though the
// lender's store has debited once before the failure was known. Rights in flight are missing, never
// doubled. The lender goes on serving.
func TestNothingIsLentWithoutAJournal(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: second, limit: 100, window: 1s")
	twoRegions(t, d, func(t *testing.T, c *cluster, us, eu *running) {
		us.load(t, request("a"), 2, time.Second)
		if us.counter(t, "units_borrowed") == 0 {
			t.Fatal("nothing was lent before: the test shows nothing")
		}
		debited := eu.counter(t, "units_lent")
		suite.Must(t, eu.journal.Close())
		time.Sleep(2 * time.Second) // what was promised before is over
		borrowed, asks := us.counter(t, "units_borrowed"), us.counter(t, "asks")
		nextCell(time.Second)
		for cell, sum := range us.load(t, request("a"), 2, 3*time.Second) {
			if sum > 50 {
				t.Errorf("cell %d: us admitted %d of its 50", cell, sum)
			}
		}
		if got := us.counter(t, "units_borrowed"); got != borrowed {
			t.Errorf("us was given %d units by rows that are not durable", got-borrowed)
		}
		if us.counter(t, "asks") == asks || eu.counter(t, "units_lent") == debited {
			t.Error("nothing was asked for and debited: the test shows nothing")
		}
		if s := us.Status(); s.Peers[0].Degraded {
			t.Errorf("eu still answers: %+v", s.Peers)
		}
		if here, there := eu.series(t)["quotad_journal_failed{}"],
			us.series(t)["quotad_journal_failed{}"]; here != 1 || there != 0 {
			t.Errorf("journal failed: %v at eu, %v at us", here, there)
		}
		nextCell(time.Second)
		if got := eu.check(t, request("a")); !got.Allowed || got.Share > 50 {
			t.Errorf("the lender does not serve: %+v", got)
		}
	})
}

// Demand moves from one region to another and back. In every cell the regions together stay within
// the limit, and so does the sum of the shares that their stores hold.
func TestRightsFollowTheDemand(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: second, limit: 100, window: 1s")
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		total, most := map[int64]int64{}, map[string]quantity.Units{}
		names := slices.Sorted(maps.Keys(c.running))
		nextCell(time.Second)
		for busy := range 4 {
			for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 *
				time.Millisecond) {
				n := c.running[names[busy%len(names)]]
				for range 5 {
					if got := n.check(t, request("a")); got.Allowed {
						total[int64(got.Cell)]++
						most[n.name] = max(most[n.name], got.Share)
					}
				}
				var shares quantity.Units
				for _, name := range names {
					b, err := c.running[name].Bucket(t.Context(), "second", "api",
						request("a").Descriptors)
					suite.Must(t, err)
					shares += b.Inspected.Share
				}
				if shares > 100 {
					t.Fatalf("the shares add up to %d", shares)
				}
			}
		}
		for cell, sum := range total {
			if sum > 100 {
				t.Errorf("cell %d: %d admitted", cell, sum)
			}
		}
		for i, name := range names {
			if f := []quantity.Units{20, 40, 40}[i]; 2*most[name] < 3*f {
				t.Errorf("%s, entitled to %d, never held more than %d though the others were idle",
					name, f, most[name])
			}
		}
	})
}

// A region gets its own entitlement back from one that has been idle for ten seconds.
func TestARegionGetsItsOwnBack(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: hour, limit: 100, window: 1h, on_exhausted: borrow")
	twoRegions(t, d, func(t *testing.T, c *cluster, us, eu *running) {
		eu.check(t, cost("a", 10))
		time.Sleep(10 * time.Second)
		got := us.check(t, cost("a", 50))
		b, _ := eu.Bucket(t.Context(), "hour", "api", request("a").Descriptors)
		if !got.Allowed {
			t.Errorf("us is denied the 50 it is entitled to: share %d; eu, idle, has used %d of a share of %d", got.Share, b.Inspected.Used, b.Inspected.Share)
		}
	})
}
