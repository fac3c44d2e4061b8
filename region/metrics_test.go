package region_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/region/decide/local"
)

var update = flag.Bool("update", false, "write testdata/metrics.txt anew")

// goldenSeries compares the names and types of series with those in testdata/metrics.txt.
func goldenSeries(t *testing.T, n *running) {
	t.Helper()
	families, err := n.Metrics().Gather()
	suite.Must(t, err)
	kinds := map[string]string{}
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
		if counts := f.GetType().String() == "COUNTER"; counts != strings.HasSuffix(f.GetName(),
			"_total") {
			t.Errorf("%s is a %s: only counters end in _total, and all of them do", f.GetName(),
				f.GetType())
		}
	}
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(n.series(t))) {
		family, _, _ := strings.Cut(name, "{")
		fmt.Fprintf(&got, "%s %s\n", kinds[family], name)
	}
	path := filepath.Join("testdata", "metrics.txt")
	if *update {
		suite.Must(t, os.WriteFile(path, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	suite.Must(t, err)
	if got.String() != string(want) {
		t.Errorf("series are not those of %s (go test -run StatusBucket -update writes it):\n%s",
			path, got.String())
	}
}

// Rights that move are counted on both sides, by the other region. No counter ever goes back.
func TestMovedUnitsAreCounted(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: second, limit: 100, window: 1s")
	twoRegions(t, d, func(t *testing.T, c *cluster, us, eu *running) {
		before := us.counters(t)
		for range 5 {
			us.load(t, request("a"), 2, time.Second)
			after := us.counters(t)
			for name, value := range before {
				if after[name] < value {
					t.Errorf("%s went from %v to %v", name, value, after[name])
				}
			}
			before = after
		}
		us.wantFullness(t, "second", 100)
		time.Sleep(time.Second)
		synctest.Wait()
		borrowed := us.series(t)["quotad_moved_units_total{direction=borrowed,peer=eu}"]
		lent := eu.series(t)["quotad_moved_units_total{direction=lent,peer=us}"]
		if borrowed == 0 || lent != borrowed || borrowed != float64(us.Status().Exchange.Borrowed) {
			t.Errorf("us borrowed %v, eu lent %v, status %d", borrowed, lent,
				us.Status().Exchange.Borrowed)
		}
		for name, n := range map[string]*running{"borrowed": us, "lent": eu} {
			series := "quotad_limit_moved_units_total{direction=" + name + ",limit=second}"
			if got := n.series(t)[series]; got != borrowed {
				t.Errorf("%s is %v, want %v", series, got, borrowed)
			}
		}
		if s := us.Status(); len(s.Documents.Regions) != 1 ||
			us.series(t)["quotad_peer_policy_version{peer=eu}"] != 1 {
			t.Errorf("documents of eu: %+v", s.Documents.Regions)
		}
		if got := us.commits(t); got+1 != us.Status().Journal.Sequence { // the first was before the node
			t.Errorf("%d commits are timed of %d", got, us.Status().Journal.Sequence)
		}
		last := us.check(t, request("a")).Sequence
		if decisions, buckets := us.timed(t); decisions != last || buckets != 10 {
			t.Errorf("%d decisions, %d of them timed, in %d buckets", last, decisions, buckets)
		}
	})
}

// wantFullness fails the test unless the metrics about a limit are of one bucket.
func (n *running) wantFullness(t *testing.T, limit string, units float64) {
	t.Helper()
	all := n.series(t)
	of := func(name string) float64 { return all["quotad_limit_"+name+"{limit="+limit+"}"] }
	share, free, used := of("share_units"), of("free_units"), of("used_ratio")
	if of("units") != units || share <= 0 || math.Abs((share-free)/share-used) > 1e-6 {
		t.Errorf("units %v, share %v, free %v, used %v", of("units"), share, free, used)
	}
}

// counters reads only the node's counters.
func (n *running) counters(t *testing.T) map[string]float64 {
	t.Helper()
	all := n.series(t)
	maps.DeleteFunc(all,
		func(name string, _ float64) bool { return !strings.Contains(name, "_total{") })
	return all
}

// commits reads how many commits of the journal the histogram of their times counts.
func (n *running) commits(t *testing.T) uint64 {
	t.Helper()
	families, err := n.Metrics().Gather()
	suite.Must(t, err)
	for _, f := range families {
		if f.GetName() == "quotad_journal_commit_seconds" {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatal("there is no histogram of commits")
	return 0
}

// timed reads how many decisions the histogram of decision times counts, and its number of buckets.
func (n *running) timed(t *testing.T) (decisions uint64, buckets int) {
	t.Helper()
	families, err := n.Metrics().Gather()
	suite.Must(t, err)
	for _, f := range families {
		if f.GetName() == "quotad_decision_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), len(h.GetBucket())
		}
	}
	return 0, 0
}

// A region counts its denials while another region has said that it has spare units.
func TestDeniedWithSpareIsCounted(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: second, limit: 100, window: 1s, borrowing_limit: 0")
	twoRegions(t, d, func(t *testing.T, c *cluster, us, eu *running) {
		// eu says that it needs 10 of its 50 in a second, and us may borrow none.
		for i := range 200 {
			us.check(t, request("a"))
			us.check(t, request("a"))
			if i%10 == 0 {
				eu.check(t, request("a"))
			}
			time.Sleep(10 * time.Millisecond)
		}
		if got := us.series(t)["quotad_denied_with_spare_units_total{}"]; got == 0 {
			t.Error("units were denied while others had spare ones, and none counted")
		}
		if got := eu.series(t)["quotad_denied_with_spare_units_total{}"]; got != 0 {
			t.Errorf("eu denied nothing, and counts %v units", got)
		}
	})
}

// Regions that were given different documents of one version take neither's from each other, say
// so, and do not trade. Declined asks are counted on both sides with the reason.
func TestTwoDocumentsOfOneVersion(t *testing.T) {
	inBubble(t, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us := c.start("us/n1", documents.Parse(t, 1, halves, "name: second, limit: 100, window: 1s"))
		other := documents.Parse(t, 1, halves, "name: second, limit: 120, window: 1s")
		if _, err := c.tryStart("eu/n1", other); !errors.Is(err, barrier.ErrConflict) {
			t.Errorf("a first start beside another document of one version: %v", err)
		}
		c.alone = true
		eu := c.start("eu/n1", other)
		c.meet()
		us.load(t, request("a"), 2, 2*time.Second)
		time.Sleep(time.Second)
		asked := us.series(t)["quotad_asks_declined_total{by=peers,reason=terms}"]
		declined := eu.series(t)["quotad_asks_declined_total{by=here,reason=terms}"]
		if asked == 0 || asked != declined {
			t.Errorf("us had %v asks declined, eu declined %v", asked, declined)
		}
		for n, other := range map[*running]string{us: "eu", eu: "us"} {
			heard := n.Status().Documents.Regions
			if err := heard[0].Refused; heard[0].Region != other || !errors.Is(err, barrier.ErrConflict) {
				t.Errorf("%s says of %s: %v", n.name, other, err)
			}
		}
	})
}

// Units admitted without the store are counted, and so are those that the store was charged with
// later.
func TestLocalUnitsAreCounted(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: hour, limit: 100, window: 1h, lending_limit: 0")
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		server := c.onTwin("us")
		us := c.start("us/n1", d)
		server.SetDown(true)
		us.check(t, request("a"))
		series := us.series(t)
		if series["quotad_store_out_of_reach{shard=quotad}"] != 1 ||
			series["quotad_local_admitted_units_total{}"] != 1 ||
			series["quotad_local_unbooked_units{}"] != 1 {
			t.Errorf("a unit was admitted without the store: %v", series)
		}
		if s := us.Status(); len(s.Store.OutOfReach) != 1 ||
			s.Local != (local.Status{Buckets: 1, Units: 1, Unbooked: 1,
				Bytes: s.Local.Bytes}) || s.Local.Bytes == 0 {
			t.Errorf("status: store %+v, local %+v", s.Store, s.Local)
		}
		server.SetDown(false)
		c.within(2*time.Second, "the store to be charged",
			func() bool { return us.Status().Local.Unbooked == 0 })
		series = us.series(t)
		if series["quotad_store_out_of_reach{shard=quotad}"] != 0 ||
			series["quotad_local_booked_units_total{}"] != 1 {
			t.Errorf("the store was charged with a unit: %v", series)
		}
	})
}
