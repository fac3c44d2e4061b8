package admit

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// classed is a limit of which 100 units are here, batch may use 60 and interactive all.
const classed = "name: minute, limit: 250, window: 1m, classes: {by: priority, batch: 0.6, interactive: 1}"

// of returns a request of a class.
func of(class string, cost quantity.Units) Request {
	q := units("a", cost)
	if class != "" {
		q.Descriptors["priority"] = class
	}
	return q
}

// demanded returns what was admitted and denied that counts as demand since it was asked last.
func (l *Limiter) demanded() (admitted, denied quantity.Units) {
	for _, o := range l.rights.Observations() {
		admitted, denied = admitted+o.Admitted, denied+o.Denied
	}
	return admitted, denied
}

// A batch job stops where the part of its class ends. What it is told is about its class, its
// denial is remembered for it alone, and is no demand, whether units are free or not. Who waits gets
// the rest.
func TestBatchLeavesTheRest(t *testing.T) {
	counted(t, hereAndThere, []string{classed}, func(t *testing.T, n *Limiter, s *countedServer) {
		if d := n.must(t, of("batch", 50)); !d.Allowed || d.Class != "batch" || d.Remaining != 10 || d.Kept != 40 {
			t.Errorf("50 of batch: %+v", d)
		}
		n.must(t, of("batch", 10))
		left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))
		for i := range 5 {
			d := n.must(t, of("batch", 1))
			if d.Allowed || d.Reason != OverLimit || d.Class != "batch" || d.Remaining != 0 || d.Kept != 40 || d.Share != 100 ||
				d.FromMemory != (i > 0) || d.RetryAfter > left || d.RetryAfter < left-time.Second {
				t.Errorf("denial %d of batch: %+v", i, d)
			}
		}
		if admitted, denied := n.demanded(); admitted != 60 || denied != 0 {
			t.Errorf("%d admitted and %d denied are demand", admitted, denied)
		}
		for _, class := range []string{"interactive", "bulk", ""} {
			if d := n.must(t, of(class, 10)); !d.Allowed || d.Kept != 0 || d.Class != map[bool]string{true: class}[class == "interactive"] {
				t.Errorf("10 of %q beside a remembered denial of batch: %+v", class, d)
			}
		}
		n.must(t, of("interactive", 10))
		n.demanded()
		if d := n.must(t, of("interactive", 1)); d.Allowed || d.Remaining != 0 {
			t.Errorf("all is used: %+v", d)
		}
		if d := n.must(t, of("batch", 1)); d.Allowed || !d.FromMemory {
			t.Errorf("batch: %+v", d)
		}
		time.Sleep(150 * time.Millisecond) // the store is asked again
		n.must(t, of("batch", 1))
		if _, denied := n.demanded(); denied != 1 {
			t.Errorf("%d denied units are demand, of 1 of interactive when all is used", denied)
		}
		if got := counts(t, n.metrics.unclassed.counter("minute", "")); got != 2 {
			t.Errorf("%d requests of no class are counted, of 2", got)
		}
		if got := counts(t, n.metrics.classUnits.WithLabelValues("minute", "batch", classDenied)); got != 7 {
			t.Errorf("%d denied units of batch are counted, of 7", got)
		}
	})
}

// A cost above what its class may use of all that the limit has never fits; one above its part of
// what this region has by itself exceeds that.
func TestCostsAboveAClass(t *testing.T) {
	counted(t, hereAndThere, []string{classed}, func(t *testing.T, n *Limiter, s *countedServer) {
		for cost, want := range map[quantity.Units]Reason{151: Never, 150: ExceedsRegionCapacity, 61: ExceedsRegionCapacity, 60: WithinLimit} {
			if d := n.must(t, of("batch", cost)); d.Reason != want {
				t.Errorf("%d of batch: %+v, want %s", cost, d, want)
			}
		}
	})
}

// Requests of several classes that come together are decided in one call, in their order.
func TestClassesTogether(t *testing.T) {
	counted(t, hereAndThere, []string{classed}, func(t *testing.T, n *Limiter, s *countedServer) {
		before := s.items.Load()
		all := []Request{of("batch", 59), of("interactive", 1), of("batch", 1), of("interactive", 40), of("interactive", 1)}
		got, err := n.CheckBatch(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, true, false, true, false} {
			if got[i].Allowed != want {
				t.Errorf("request %d: %+v", i, got[i])
			}
		}
		if items := s.items.Load() - before; items != 1 {
			t.Errorf("%d items were asked about", items)
		}
		if admitted, denied := n.demanded(); admitted != 100 || denied != 1 {
			t.Errorf("%d admitted and %d denied are demand", admitted, denied)
		}
	})
}

// A class that may not use all waits for no units of other regions: with as many as it costs it would
// not fit either. Who may use all does.
func TestBatchDoesNotBorrow(t *testing.T) {
	counted(t, hereAndThere, []string{classed + ", on_exhausted: borrow"}, func(t *testing.T, n *Limiter, s *countedServer) {
		n.must(t, of("batch", 60))
		waits := func(class string) bool {
			f, err := n.Begin(of(class, 1), true)
			if err != nil {
				t.Fatal(err)
			}
			f.Ask(t.Context())
			if f.Next() != Waits {
				return false
			}
			f.Waited(false, false)
			return true
		}
		if waits("batch") {
			t.Error("batch waits for units although some are free")
		}
		n.must(t, of("interactive", 40))
		if !waits("interactive") {
			t.Error("interactive does not wait for units")
		}
		if waits("batch") {
			t.Error("batch waits for units when none is free")
		}
	})
}

// Questions of a class fit as one unit does, and a charge heeds no class.
func TestClassesAndCharges(t *testing.T) {
	counted(t, hereAndThere, []string{classed + ", charge: always"}, func(t *testing.T, n *Limiter, s *countedServer) {
		n.must(t, of("batch", 60))
		n.demanded()
		ask := func(class string) Decision {
			q := of(class, 1)
			q.Question = true
			return n.must(t, q)
		}
		if d := ask("batch"); d.Allowed || d.Kept != 40 {
			t.Errorf("a question of batch: %+v", d)
		}
		if _, denied := n.demanded(); denied != 0 {
			t.Errorf("%d units of it are demand", denied)
		}
		if d := ask("interactive"); !d.Allowed {
			t.Errorf("a question of interactive: %+v", d)
		}
		if d, err := n.Report(t.Context(), of("batch", 40)); err != nil || !d.Allowed || d.Owed != 0 || d.Remaining != 0 {
			t.Errorf("a charge of batch: %+v, %v", d, err)
		}
	})
}

// Without the store a class has its part of the node's part.
func TestClassesWithoutTheStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 2, documents.Parse(t, 1, hereAndThere, classed+", lending_limit: 0"))
		if d := n.askWithoutStore(of("batch", 30), true); !d.Allowed || d.Remaining != 0 || d.Class != "batch" || d.Kept != 20 {
			t.Errorf("30 of 50: %+v", d)
		}
		if d := n.askWithoutStore(of("batch", 1), true); d.Allowed || d.Kept != 20 {
			t.Errorf("one more of batch: %+v", d)
		}
		if got := n.fits(t, of("interactive", 1), 100); got != 20 {
			t.Errorf("interactive is admitted %d, want 20", got)
		}
	})
}

// A list whose last entry is the class meets the limit and the bucket of the list without it, and
// is denied by the part of its class.
func TestListsOfClasses(t *testing.T) {
	limit := "name: path, entries: [{key: account}], limit: 250, window: 1m, classes: {by: priority, batch: 0.6}"
	counted(t, hereAndThere, []string{limit}, func(t *testing.T, n *Limiter, s *countedServer) {
		ask := func(cost quantity.Units, entries ...policy.KeyValue) Decision {
			t.Helper()
			entries = append([]policy.KeyValue{{Name: "account", Value: "a"}}, entries...)
			return n.must(t, Request{Domain: "api", Lists: []List{{Entries: entries, Cost: cost}}})
		}
		batch := policy.KeyValue{Name: "priority", Value: "batch"}
		if d := ask(60, batch); !d.Allowed || d.Limits[0].Class != "batch" || d.Limits[0].Remaining != 0 || d.Limits[0].Kept != 40 {
			t.Errorf("60 of batch: %+v", d)
		}
		if d := ask(1, batch); d.Allowed || d.Reason != OverLimit || d.Limits[0].Admits || d.Limits[0].Remaining != 0 || d.Limits[0].RetryAfter <= 0 {
			t.Errorf("one more of batch: %+v", d)
		}
		if d := ask(40); !d.Allowed || d.Limits[0].Class != "" || d.Limits[0].Remaining != 0 {
			t.Errorf("40 of no class: %+v", d)
		}
	})
}

// Over entries the class is a list's last descriptor. Of a bucket that two lists meet counts what
// the list of the smaller part says.
func TestClassesOfLists(t *testing.T) {
	d, err := policy.Parse("limits.yaml", []byte("version: 1\nregions: {here: {weight: 1}}\nlimits:\n"+
		"  - {name: path, domain: api, entries: [{key: account}], algorithm: fixed_window, limit: 100, window: 1m, classes: {by: priority, batch: 0.6, bulk: 0.1}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, d)
		list := func(class string) List {
			l := List{Entries: []policy.KeyValue{{Name: "account", Value: "a"}}, Cost: 1}
			if class != "" {
				l.Entries = append(l.Entries, policy.KeyValue{Name: "priority", Value: class})
			}
			return l
		}
		for _, tc := range []struct {
			lists []List
			class string
			part  quantity.PPM
		}{
			{[]List{list("")}, "", 1_000_000},
			{[]List{list("batch")}, "batch", 600_000},
			{[]List{list("batch"), list("bulk")}, "bulk", 100_000},
			{[]List{list("bulk"), list("")}, "bulk", 100_000},
			{[]List{list("other")}, "", 1_000_000},
		} {
			w := n.prepare(Request{Domain: "api", Lists: tc.lists}, true, nil)
			if len(w.Applied) != 1 || w.class(0) != tc.class || w.PortionOf(0) != tc.part {
				t.Errorf("%v: class %q of %d", tc.lists, w.class(0), w.PortionOf(0))
			}
		}
	})
}
