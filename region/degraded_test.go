package region_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/rules"
)

// series reads the node's metrics: by name and labels as in name{label=value}.
func (n *running) series(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := n.Metrics().Gather()
	suite.Must(t, err)
	all := map[string]float64{}
	for _, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("metric %s has no help", f.GetName())
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			// Of the two one is not there and reads as 0.
			all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetCounter().GetValue() +
				m.GetGauge().GetValue()
		}
	}
	return all
}

// agrees compares what a node's status, metrics and decisions say about a peer, and returns it.
func (n *running) agrees(t *testing.T, of string) region.Peer {
	t.Helper()
	synctest.Wait() // nothing may happen between the two looks
	s, series := n.Status(), n.series(t)
	i := slices.IndexFunc(s.Peers, func(p region.Peer) bool { return p.Region == of })
	if i < 0 {
		t.Fatalf("%s knows no region %s: %+v", n.name, of, s)
	}
	p := s.Peers[i]
	degraded := 0.0
	if p.Degraded {
		degraded = 1
	}
	if series["quotad_degraded{peer="+of+"}"] != degraded ||
		series["quotad_peer_age_seconds{peer="+of+"}"] != p.Age.Seconds() {
		t.Errorf("%s: status %+v, metrics %v", n.name, p, series)
	}
	if want := !p.Heard || p.Age > exchange.DegradedAfter*time.Microsecond; p.Degraded != want {
		t.Errorf("%s: %+v: an age alone makes a region degraded", n.name, p)
	}
	return p
}

func TestDegraded(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: second, limit: 100, window: 1s",
		"name: home, domain: home, limit: 100, window: 1s, weights: {us: 1, eu: 1, ap: 0}")
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		home := admit.Request{Domain: "home", Descriptors: request("a").Descriptors, Cost: 1}
		if got := us.check(t, request("a")); got.Degraded {
			t.Errorf("degraded from the start: %+v", got)
		}
		c.Network.Isolate("ap/n1", 10*time.Second)
		cut := time.Now()
		var began, ended time.Duration
		for time.Since(cut) < 20*time.Second {
			time.Sleep(100 * time.Millisecond)
			p := us.agrees(t, "ap")
			if us.agrees(t, "eu").Degraded {
				t.Fatal("degraded towards a region that was not cut off")
			}
			switch {
			case p.Degraded && began == 0:
				began = time.Since(cut)
			case !p.Degraded && began > 0 && ended == 0:
				ended = time.Since(cut)
			case p.Degraded && ended > 0:
				t.Fatal("degraded again after the heal")
			}
			// The node looks at ages when its engine steps, which the decision makes it do.
			got := us.check(t, request("a"))
			if after := us.agrees(t, "ap"); got.Degraded != p.Degraded &&
				got.Degraded != after.Degraded {
				t.Errorf("after %v: status %+v, then %+v, decision %+v", time.Since(cut), p, after,
					got)
			}
			if got := us.check(t, home); got.Degraded {
				t.Errorf("a limit that the lost region has no part in: %+v", got)
			}
		}
		// The last answered call was sent at most one ping interval before the cut.
		if began < 2500*time.Millisecond || began > 3500*time.Millisecond {
			t.Errorf("degraded %v after the cut, want 3 s after the last answered call", began)
		}
		if ended < 10*time.Second || ended > 15*time.Second {
			t.Errorf("whole again %v after the cut, which lasted 10 s", ended)
		}
	})
}

// A region that never answered is degraded from the start, and no request waits for it.
func TestServesWhileARegionWasNeverThere(t *testing.T) {
	started(t, documents.Parse(t, 1, halves, "name: second, limit: 100, window: 1s"),
		[]string{"us/n1"}, func(t *testing.T, c *cluster) {
			us := c.running["us/n1"]
			if p := us.agrees(t, "eu"); p.Heard || !p.Degraded || us.Ready() != nil {
				t.Errorf("peer %+v, ready %v", p, us.Ready())
			}
			nextCell(time.Second)
			begun := time.Now()
			admitted, last := us.drain(t, request("a"), 200)
			if admitted != 50 || !last.Degraded || time.Since(begun) > 0 {
				t.Errorf("%d admitted, then %+v, after %v", admitted, last, time.Since(begun))
			}
		})
}

func TestStatusBucketAndMetricsAgree(t *testing.T) {
	d := documents.Parse(t, 4, halves, "name: second, limit: 100, window: 1s",
		"name: watch, limit: 3, window: 1s, shadow: true",
		"name: lost, domain: lost, limit: 10, window: 1s, on_store_failure: deny")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		us.load(t, request("a"), 2, 2*time.Second)
		nextCell(time.Second)
		var last admit.Decision
		for range 5 {
			last = us.check(t, request("a"))
		}
		b, err := us.Bucket(t.Context(), "second", "api", request("a").Descriptors)
		if err != nil || b.Limit.Name != "second" || b.Terms.Entitlement != 50 ||
			b.Inspected.Used != 5 || b.Inspected.Share != last.Share ||
			b.Inspected.Cell != last.Cell {
			t.Errorf("bucket %+v, %v; last decision %+v", b, err, last)
		}
		for _, row := range b.Inspected.Rows {
			if row.Cell == b.Inspected.Cell {
				b.Terms.Entitlement += row.Borrowed + row.Regained - row.Lent - row.Returned
			}
		}
		if b.Terms.Entitlement != b.Inspected.Share {
			t.Errorf("the rows make a share of %d: %+v", b.Terms.Entitlement, b.Inspected)
		}

		// Keys of requests, even odd ones, add no series.
		before := us.series(t)
		for _, account := range []string{"x", "y", "\xff", "new\nline", "\u202e",
			strings.Repeat("v", 256)} {
			us.check(t, request(account))
		}
		us.check(t, admit.Request{Domain: "secret", Descriptors: request("a").Descriptors, Cost: 1})
		series := us.series(t)
		extra := maps.Clone(series)
		maps.DeleteFunc(extra, func(name string, _ float64) bool {
			_, old := before[name]
			return old
		})
		if want := map[string]float64{"quotad_decisions_total{limit=,reason=no_limit}": 1,
			"quotad_no_limit_total{domain=}": 1}; !maps.Equal(extra, want) {
			t.Errorf("new series %v, want %v", extra, want)
		}

		s := us.Status()
		if got := series["quotad_store_generation{}"]; got != float64(s.Generation) || got == 0 {
			t.Errorf("generation %v, status %d", got, s.Generation)
		}
		for _, counter := range s.Counters() {
			if got, there := series["quotad_exchange_total{what="+counter.Name+"}"]; !there ||
				got > float64(counter.Value) {
				t.Errorf("%s: metric %v (%v), status %d", counter.Name, got, there, counter.Value)
			}
		}
		goldenSeries(t, us)
		var decisions float64
		for name, value := range series {
			if strings.HasPrefix(name, "quotad_decisions_total") {
				decisions += value
			}
		}
		if end := us.check(t, request("a")); decisions != float64(end.Sequence-1) {
			t.Errorf("%v decisions counted, %d made", decisions, end.Sequence-1)
		}

		c.flushAll("us")
		us.check(t, admit.Request{Domain: "lost", Descriptors: request("a").Descriptors, Cost: 1})
		series = us.series(t)
		if series["quotad_store_failures_total{}"] != 1 ||
			series["quotad_decisions_total{limit=lost,reason=store_failure}"] != 1 {
			t.Errorf("a request that the store did not decide: %v", series)
		}
		c.within(time.Second, "the store to be opened anew",
			func() bool {
				return us.series(t)["quotad_store_generation{}"] > float64(s.Generation)
			})
	})
}

func TestBucketErrors(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: second, limit: 100, window: 1s")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		if _, err := us.Bucket(t.Context(), "minute", "api",
			request("a").Descriptors); !errors.Is(err, rules.ErrNoSuchBucket) {
			t.Errorf("a limit that is not there: %v", err)
		}
		var field *invalid.Field
		if _, err := us.Bucket(t.Context(), "second", "", request("a").Descriptors); !errors.As(err,
			&field) || field.Name != "domain" {
			t.Errorf("no domain: %v", err)
		}
		b, err := us.Bucket(t.Context(), "second", "api",
			map[string]string{"account": "never seen"})
		if err != nil || b.Inspected.Used != 0 || b.Inspected.Share != 100 ||
			len(b.Inspected.Rows) != 0 {
			t.Errorf("a bucket nobody used: %+v, %v", b, err)
		}
		c.flushAll("us")
		if _, err := us.Bucket(t.Context(), "second", "api", request("a").Descriptors); err == nil {
			t.Error("a bucket was read from a store that was lost")
		}
	})
}
