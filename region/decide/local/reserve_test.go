package local

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// Every region computes the same split for every store. What the stores hold and what the nodes may
// admit without them is together no more than the limit, and the entitlements that regions report
// add up to it.
func TestReserveIsOutOfEveryStore(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		kind := rapid.SampledFrom(algorithms.Kinds).Draw(r, "kind")
		weight := rapid.IntRange(1, 1000)
		weights := []string{fmt.Sprintf("us: {weight: %d}", weight.Draw(r, "us")),
			fmt.Sprintf("eu: {weight: %d}", weight.Draw(r, "eu")),
			fmt.Sprintf("ap: {weight: %d}", weight.Draw(r, "ap"))}
		units := rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, 100_000))
		if kind == algorithms.SlidingWindowLog {
			units = rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, algorithms.MaxLog))
		}
		limit, burst := quantity.Units(units.Draw(r, "limit")), quantity.Units(0)
		part := policy.PPM(rapid.Int64Range(1, int64(policy.PPMOne)).Draw(r, "reserve"))
		fields := fmt.Sprintf("name: kept, algorithm: %s, limit: %d, window: 1m, local_reserve: %s",
			kind, limit, part)
		if kind.Bucket() {
			burst = quantity.Units(units.Draw(r, "burst"))
			fields += fmt.Sprintf(", burst: %d", burst)
		}
		d := documents.Parse(t, 1, weights, fields)
		account := map[string]string{"account": rapid.String().Draw(r, "account")}
		nodes := rapid.IntRange(1, 5).Draw(r, "nodes")
		var all, entitled, bursts quantity.Units
		for _, known := range d.Regions {
			a, other := rulesOf(d, known.Name).Match("api", account)[0],
				rulesOf(d, d.Regions[0].Name).Match("api", account)[0]
			if f := a.Target.Terms.Entitlement; f != a.Bucket.Entitlements[known.Name] ||
				f != other.Bucket.Entitlements[known.Name] ||
				a.Target.Terms.Burst != other.Bucket.Bursts[known.Name] {
				r.Fatalf("regions differ over %s: %+v and %+v", known.Name, a.Bucket, other.Bucket)
			}
			if home := d.Limits[0].Home(); home == (a.Reserve != nil) {
				r.Fatalf("home mode %t, reserve %+v", home, a.Reserve)
			}
			entitled, bursts = entitled+a.Entitlement(), bursts+a.Target.Terms.Burst
			all += a.Target.Terms.Entitlement
			if a.Reserve != nil {
				part := New(Config{Nodes: nodes}).of(a)
				all, bursts = all+part*quantity.Units(nodes), bursts+a.Reserve.Burst
			}
			if a.Bucket.Limit != limit || a.Most() > max(limit, burst) {
				r.Fatalf("limit %d, a cost of %d may be admitted, of %d and a burst of %d",
					a.Bucket.Limit, a.Most(), limit, burst)
			}
		}
		if all > limit || entitled != limit || bursts != burst {
			r.Fatalf("%d units and a burst of %d are handed out, %d entitled to, of %d and %d", all,
				bursts, entitled, limit, burst)
		}
	})
}

// A node without its store admits of each window its part of the reserve, whatever may be lent.
func TestWithoutStoreReserveOfEachKind(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		for _, tc := range []struct {
			fields string
			nodes  int
			// of the entitlement of 400, under a fixed window; half of it under the others
			part int
		}{
			{"limit: 1000, local_reserve: 0.1", 1, 40},
			{"limit: 1000, local_reserve: 0.1, lending_limit: 0", 1, 40},
			{"limit: 1000, local_reserve: 0.1, lending_limit: 1", 1, 40},
			{"limit: 1000, local_reserve: 0.1", 2, 20},
			{"limit: 1000, local_reserve: 0.1", 41, 0},
			{"limit: 1000, local_reserve: 1", 1, 400},
			// Less than a unit counts as none, and no other part takes its place.
			{"limit: 1000, local_reserve: 0.002499", 1, 0},
			{"limit: 3, local_reserve: 0.5", 1, 0}, // home mode
		} {
			if kind != algorithms.FixedWindow {
				tc.part /= 2
			}
			t.Run(fmt.Sprint(kind, ", ", tc.fields, ", ", tc.nodes), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					n := with(t, tc.nodes, fmt.Sprintf("name: part, algorithm: %s, window: 1m, %s", kind, tc.fields))
					for window := range 3 {
						time.Sleep(time.Minute)
						if got := n.admits("a", tc.part+10); got != tc.part {
							t.Errorf("window %d: %d admitted, want %d", window, got, tc.part)
						}
					}
				})
			})
		}
	}
}

// An entitlement of one unit has no reserve: the unit is the store's, and a node without it admits
// nothing.
func TestReserveOfOneUnit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := with(t, 1, "name: few, limit: 4, window: 1m, local_reserve: 0.5")
		time.Sleep(time.Minute)
		seen := map[int64]int{}
		for account := range 50 {
			a := n.applied(fmt.Sprint(account))
			f := a.Entitlement() // 1 or 2, by key
			seen[int64(f)]++
			if stored := a.Target.Terms.Entitlement; stored != 1 || n.admits(fmt.Sprint(account), 5) != int(f-1) {
				t.Errorf("account %d, entitled to %d: %d in the store", account, f, stored)
			}
		}
		t.Logf("entitlements: %v", seen)
	})
}

// Units spent of a reserve are never charged in the store. Units spent of the store's part always
// are, whichever document was in force.
func TestReserveIsNotBooked(t *testing.T) {
	reserve := with(t, 1, "name: minute, limit: 100, window: 1m, local_reserve: 0.5").applied("a")
	none := with(t, 1, "name: minute, limit: 100, window: 1m, lending_limit: 0.5").applied("a")
	for name, order := range map[string][2]*rules.Applied{"a reserve, then none": {reserve, none},
		"none, then a reserve": {none, reserve}} {
		f, now := New(Config{}), time.Unix(6000, 0)
		for _, a := range order {
			if m := f.take(Charge{Applied: a, Cost: 3}, true, now); !m.room {
				t.Fatalf("%s: %+v", name, m)
			}
		}
		spare := f.take(Charge{Applied: order[1], Cost: 2}, true, now)
		f.giveBack(order[1], 2, spare.window)
		if all := f.unsettled(9); len(all) != 1 || all[0].units != 3 ||
			f.Status() != (Status{Buckets: 1, Units: 6, Unbooked: 3, Bytes: bytesOfA}) {
			t.Errorf("%s: to be booked %+v, status %+v", name, all, f.Status())
		}
		if got := f.settled(f.unsettled(9)[0]); got != 3 || len(f.unsettled(9)) != 0 {
			t.Errorf("%s: %d booked, then still %+v", name, got, f.unsettled(9))
		}
		f.BookAnew()
		if all := f.unsettled(9); len(all) != 1 || all[0].units != 3 {
			t.Errorf("%s: to a store that lost it %+v", name, all)
		}
	}
}
