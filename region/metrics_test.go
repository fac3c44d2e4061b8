package region

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
)

var update = flag.Bool("update", false, "write testdata/metrics.txt anew")

// goldenSeries compares series with those in testdata/metrics.txt, which stand there by name with their types.
func goldenSeries(t *testing.T, n *running) {
	t.Helper()
	families, err := n.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
		if counts := f.GetType().String() == "COUNTER"; counts != strings.HasSuffix(f.GetName(), "_total") {
			t.Errorf("%s is a %s: only counters end in _total, and all of them do", f.GetName(), f.GetType())
		}
	}
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(n.series(t))) {
		family, _, _ := strings.Cut(name, "{")
		fmt.Fprintf(&got, "%s %s\n", kinds[family], name)
	}
	path := filepath.Join("testdata", "metrics.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("series are not those of %s (go test -run StatusBucket -update writes it):\n%s", path, got.String())
	}
}

// Rights that move are counted on both sides, by the peer they move to or from, and no counter ever goes back.
func TestMovedUnitsAreCounted(t *testing.T) {
	d := document(t, 1, halves, "name: second, limit: 100, window: 1s")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us, eu := c.running["us/n1"], c.running["eu/n1"]
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
		time.Sleep(time.Second)
		synctest.Wait()
		borrowed := us.series(t)["quotad_moved_units_total{direction=borrowed,peer=eu}"]
		lent := eu.series(t)["quotad_moved_units_total{direction=lent,peer=us}"]
		if borrowed == 0 || lent != borrowed || borrowed != float64(us.Status().Exchange.UnitsBorrowed) {
			t.Errorf("us borrowed %v, eu lent %v, status %d", borrowed, lent, us.Status().Exchange.UnitsBorrowed)
		}
		if decisions, buckets := us.timed(t); decisions != us.sequence.Load() || buckets != len(decisionBuckets) {
			t.Errorf("%d decisions, %d of them timed, in %d buckets", us.sequence.Load(), decisions, buckets)
		}
	})
}

// counters reads the node's counters alone.
func (n *running) counters(t *testing.T) map[string]float64 {
	t.Helper()
	all := n.series(t)
	maps.DeleteFunc(all, func(name string, _ float64) bool { return !strings.Contains(name, "_total{") })
	return all
}

// timed reads how many decisions the histogram of their times has, and in how many buckets.
func (n *running) timed(t *testing.T) (decisions uint64, buckets int) {
	t.Helper()
	families, err := n.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "quotad_decision_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), len(h.GetBucket())
		}
	}
	return 0, 0
}

// A region that denies while another has said that it has spare units counts that.
func TestDeniedWithSpareIsCounted(t *testing.T) {
	d := document(t, 1, halves, "name: second, limit: 100, window: 1s, borrowing_limit: 0")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us, eu := c.running["us/n1"], c.running["eu/n1"]
		for i := range 200 { // eu says that it needs 10 of its 50 in a second, and us may borrow none
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

// Asks that are declined are counted on both sides, with the reason: regions under different documents do not trade.
func TestDeclinedAsksAreCounted(t *testing.T) {
	limit := "name: second, limit: 100, window: 1s"
	inBubble(t, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us, eu := c.start("us/n1", document(t, 1, halves, limit)), c.start("eu/n1", document(t, 2, halves, limit))
		c.meet()
		us.load(t, request("a"), 2, 2*time.Second)
		time.Sleep(time.Second)
		asked := us.series(t)["quotad_asks_declined_total{by=peers,reason=epoch}"]
		declined := eu.series(t)["quotad_asks_declined_total{by=here,reason=epoch}"]
		if asked == 0 || asked != declined {
			t.Errorf("us had %v asks declined, eu declined %v", asked, declined)
		}
	})
}

// What is admitted without the store is counted, and so is what the store was charged with afterwards.
func TestLocalUnitsAreCounted(t *testing.T) {
	d := document(t, 1, alone, "name: hour, limit: 100, window: 1h, lending_limit: 0")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		us.breakers.trip(us.store.Shards()[0])
		us.check(t, request("a"))
		series := us.series(t)
		if series["quotad_store_out_of_reach{shard=quotad}"] != 1 || series["quotad_local_admitted_units_total{}"] != 1 || series["quotad_local_unbooked_units{}"] != 1 {
			t.Errorf("a unit was admitted without the store: %v", series)
		}
		if s := us.Status(); len(s.Store.OutOfReach) != 1 || s.Local != (LocalStatus{Buckets: 1, Units: 1, Unbooked: 1, Bytes: bytesOfA}) {
			t.Errorf("status: store %+v, local %+v", s.Store, s.Local)
		}
		c.within(2*time.Second, "the store to be charged", func() bool { return us.Status().Local.Unbooked == 0 })
		series = us.series(t)
		if series["quotad_store_out_of_reach{shard=quotad}"] != 0 || series["quotad_local_booked_units_total{}"] != 1 {
			t.Errorf("the store was charged with a unit: %v", series)
		}
	})
}

// Many goroutines that meet an outcome first all count it.
func TestResolvedCounters(t *testing.T) {
	m := newMetrics()
	const callers, each = 8, 100
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for i := range each {
				m.decided(Decision{Limit: fmt.Sprint(i % 10), Reason: OverLimit})
			}
		})
	}
	done.Wait()
	n := &running{Node: &Node{metrics: m}}
	for i := range 10 {
		if got := n.series(t)[fmt.Sprintf("quotad_decisions_total{limit=%d,reason=over_limit}", i)]; got != callers*each/10 {
			t.Errorf("limit %d: %v decisions counted, want %d", i, got, callers*each/10)
		}
	}
}

// BenchmarkDecided measures what counting costs a decision: the counter as it is found, and as a vector would find it.
func BenchmarkDecided(b *testing.B) {
	m := newMetrics()
	d := Decision{Limit: "account-minute", Reason: WithinLimit}
	b.Run("resolved", func(b *testing.B) {
		for b.Loop() {
			m.decided(d)
		}
	})
	b.Run("vector", func(b *testing.B) {
		for b.Loop() {
			m.decisions.With(prometheus.Labels{"limit": d.Limit, "reason": string(d.Reason)}).Inc()
		}
	})
	b.Run("values", func(b *testing.B) {
		for b.Loop() {
			m.decisions.WithLabelValues(d.Limit, string(d.Reason)).Inc()
		}
	})
	b.Run("time", func(b *testing.B) {
		for b.Loop() {
			m.took(300 * time.Microsecond)
		}
	})
}
