package region

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/bubble"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/rules"
)

// Every region knows the same of every store; what the stores hold and what the nodes may admit without them is together
// no more than the limit, whatever the split; and what regions report as their entitlements adds up to it.
func TestReserveIsOutOfEveryStore(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		kind := rapid.SampledFrom(algorithms.Kinds).Draw(r, "kind")
		weight := rapid.IntRange(1, 1000)
		weights := []string{fmt.Sprintf("us: {weight: %d}", weight.Draw(r, "us")), fmt.Sprintf("eu: {weight: %d}", weight.Draw(r, "eu")),
			fmt.Sprintf("ap: {weight: %d}", weight.Draw(r, "ap"))}
		units := rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, 100_000))
		if kind == algorithms.SlidingWindowLog {
			units = rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, algorithms.MaxLog))
		}
		limit, burst := units.Draw(r, "limit"), int64(0)
		part := policy.PPM(rapid.Int64Range(1, int64(policy.PPMOne)).Draw(r, "reserve"))
		fields := fmt.Sprintf("name: kept, algorithm: %s, limit: %d, window: 1m, local_reserve: %s", kind, limit, part)
		if kind.Bucket() {
			burst = units.Draw(r, "burst")
			fields += fmt.Sprintf(", burst: %d", burst)
		}
		d := document(t, 1, weights, fields)
		q, nodes := request(rapid.String().Draw(r, "account")), rapid.IntRange(1, 5).Draw(r, "nodes")
		var all, entitled, bursts int64
		for _, known := range d.Regions {
			a, other := rulesOf(t, d, known.Name).Match(q.Domain, q.Descriptors)[0], rulesOf(t, d, d.Regions[0].Name).Match(asked(q))[0]
			if f := a.Target.Terms.Entitlement; f != a.Bucket.Entitlements[known.Name] || f != other.Bucket.Entitlements[known.Name] ||
				a.Target.Terms.Burst != other.Bucket.Bursts[known.Name] {
				r.Fatalf("regions differ over %s: %+v and %+v", known.Name, a.Bucket, other.Bucket)
			}
			if home := d.Limits[0].Home(); home == (a.Reserve != nil) {
				r.Fatalf("home mode %t, reserve %+v", home, a.Reserve)
			}
			entitled, bursts = entitled+a.Entitlement(), bursts+a.Target.Terms.Burst
			all += a.Target.Terms.Entitlement
			if a.Reserve != nil {
				part := newFallback(nodes, nil).part(a)
				all, bursts = all+part*int64(nodes), bursts+a.Reserve.Burst
			}
			if a.Bucket.Limit != limit || a.Most() > max(limit, burst) {
				r.Fatalf("limit %d, a cost of %d may be admitted, of %d and a burst of %d", a.Bucket.Limit, a.Most(), limit, burst)
			}
		}
		if all > limit || entitled != limit || bursts != burst {
			r.Fatalf("%d units and a burst of %d are handed out, %d entitled to, of %d and %d", all, bursts, entitled, limit, burst)
		}
	})
}

// A node without its store admits of each window its part of the reserve, whatever may be lent.
func TestWithoutStoreReserveOfEachKind(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		for _, tc := range []struct {
			fields string
			nodes  int
			part   int // of the entitlement of 400, under a fixed window; half of it under the others
		}{
			{"limit: 1000, local_reserve: 0.1", 1, 40},
			{"limit: 1000, local_reserve: 0.1, lending_limit: 0", 1, 40},
			{"limit: 1000, local_reserve: 0.1, lending_limit: 1", 1, 40},
			{"limit: 1000, local_reserve: 0.1", 2, 20},
			{"limit: 1000, local_reserve: 0.1", 41, 0},
			{"limit: 1000, local_reserve: 1", 1, 400},
			{"limit: 1000, local_reserve: 0.002499", 1, 0}, // less than a unit is none, and nothing else takes its place
			{"limit: 3, local_reserve: 0.5", 1, 0},         // home mode
		} {
			if kind != algorithms.FixedWindow {
				tc.part /= 2
			}
			t.Run(fmt.Sprint(kind, ", ", tc.fields, ", ", tc.nodes), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					n := unstarted(t, tc.nodes, document(t, 1, hereAndThere, fmt.Sprintf("name: part, algorithm: %s, window: 1m, %s", kind, tc.fields)))
					for window := range 3 {
						time.Sleep(time.Minute)
						if got := n.fits(t, request("a"), tc.part+10); got != tc.part {
							t.Errorf("window %d: %d admitted, want %d", window, got, tc.part)
						}
					}
				})
			})
		}
	}
}

// An entitlement of one unit has no reserve: the unit is the store's, and a node without it admits nothing.
func TestReserveOfOneUnit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, document(t, 1, hereAndThere, "name: few, limit: 4, window: 1m, local_reserve: 0.5"))
		time.Sleep(time.Minute)
		seen := map[int64]int{}
		for account := range 50 {
			q := request(fmt.Sprint(account))
			a := n.rules.Load().Match(q.Domain, q.Descriptors)[0]
			f := a.Entitlement() // 1 or 2, by key
			seen[f]++
			if stored := a.Target.Terms.Entitlement; stored != 1 || n.fits(t, q, 5) != int(f-1) {
				t.Errorf("account %d, entitled to %d: %d in the store", account, f, stored)
			}
		}
		t.Logf("entitlements: %v", seen)
	})
}

// What was spent of a reserve is never booked, what was spent of the store's always is, whichever document was in force.
func TestReserveIsNotBooked(t *testing.T) {
	with := unstarted(t, 1, document(t, 1, hereAndThere, "name: minute, limit: 100, window: 1m, local_reserve: 0.5")).rules.Load().Match(asked(request("a")))[0]
	without := unstarted(t, 1, document(t, 2, hereAndThere, "name: minute, limit: 100, window: 1m, lending_limit: 0.5")).rules.Load().Match(asked(request("a")))[0]
	for name, order := range map[string][2]rules.Applied{"a reserve, then none": {with, without}, "none, then a reserve": {without, with}} {
		f, now := newFallback(1, nil), time.Unix(6000, 0)
		for _, a := range order {
			if m := f.take(a, 3, true, now); !m.room {
				t.Fatalf("%s: %+v", name, m)
			}
		}
		spare := f.take(order[1], 2, true, now)
		f.giveBack(order[1], 2, spare.window)
		if all := f.unbooked(9); len(all) != 1 || all[0].units != 3 || f.status() != (LocalStatus{Buckets: 1, Units: 6, Unbooked: 3, Bytes: bytesOfA}) {
			t.Errorf("%s: to be booked %+v, status %+v", name, all, f.status())
		}
		if got := f.booked(f.unbooked(9)[0]); got != 3 || len(f.unbooked(9)) != 0 {
			t.Errorf("%s: %d booked, then still %+v", name, got, f.unbooked(9))
		}
		f.standAnew()
		if all := f.unbooked(9); len(all) != 1 || all[0].units != 3 {
			t.Errorf("%s: to a store that lost it %+v", name, all)
		}
	}
}

// All regions use their stores up, and then, cut off from them, what was kept out of them: the limit, and not a unit more.
func TestReserveAndStoresTogether(t *testing.T) {
	nodes := []string{"us/n1", "us/n2", "eu/n1", "eu/n2"}
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			part := 20 // of two nodes' 40, of F = 200
			if kind != algorithms.FixedWindow {
				part = 10
			}
			started(t, document(t, 1, halves, limitOf(kind, 400, ", local_reserve: 0.2")), nodes, func(t *testing.T, c *cluster) {
				nextCell(10 * time.Second)
				admitted := 0
				for _, name := range []string{"us/n1", "eu/n2"} {
					first := c.running[name].check(t, request("a"))
					if first.Entitlement != 200 || first.Share != 160 || first.LimitUnits != 400 || first.Remaining != 159 {
						t.Errorf("%s: %+v", name, first)
					}
					got, _ := c.running[name].drain(t, request("a"), 500)
					admitted += 1 + got
				}
				if admitted != 320 {
					t.Errorf("%d admitted by the stores, which hold 320", admitted)
				}
				c.cutOff(t)
				for _, name := range nodes {
					got, last := c.running[name].drain(t, request("a"), 500)
					if admitted += got; got != part || last.Reason != StoreFailureLocal || last.Entitlement != 200 {
						t.Errorf("%s: %d admitted without the store, want %d; then %+v", name, got, part, last)
					}
				}
				if want := 320 + 4*part; admitted != want {
					t.Errorf("%d admitted in all, want %d", admitted, want)
				}
			})
		})
	}
}

// A region that borrows takes no more than what the other stores hold: reserves are never lent.
func TestReserveIsNotLent(t *testing.T) {
	nodes := []string{"us/n1", "eu/n1"}
	started(t, document(t, 1, halves, limitOf(algorithms.FixedWindow, 400, ", local_reserve: 0.2, lending_limit: 1")), nodes, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		nextCell(10 * time.Second)
		var admitted int64
		for _, units := range us.load(t, request("a"), 2, 5*time.Second) {
			admitted += units
		}
		if admitted <= 200 || admitted > 320 {
			t.Errorf("us: %d admitted, want more than its entitlement and at most what the stores hold, 320", admitted)
		}
		got, _ := c.running["eu/n1"].drain(t, request("a"), 500)
		admitted += int64(got)
		c.cutOff(t)
		for _, name := range nodes {
			got, _ := c.running[name].drain(t, request("a"), 500)
			if admitted += int64(got); got != 40 {
				t.Errorf("%s: %d admitted without the store, want 40", name, got)
			}
		}
		if admitted != 400 {
			t.Errorf("%d admitted in all, the limit is 400", admitted)
		}
	})
}

// A store that comes back is not charged with the reserve: it has its whole part left.
func TestReserveLeavesTheStoreAlone(t *testing.T) {
	started(t, document(t, 1, alone, "name: long, limit: 400, window: 1m, local_reserve: 0.2"), []string{"us/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		nextCell(time.Minute)
		us.check(t, request("a"))
		time.Sleep(37 * time.Millisecond) // at no moment at which the store is tried again
		us.breakers.trip(us.store.Shards()[0])
		for range 3 {
			if d := us.check(t, request("a")); !d.Allowed || d.Reason != StoreFailureLocal {
				t.Errorf("without the store: %+v", d)
			}
		}
		if got := us.Status().Local; got != (LocalStatus{Buckets: 1, Units: 3, Bytes: bytesOfA}) {
			t.Errorf("admitted without the store: %+v", got)
		}
		time.Sleep(5 * time.Second)
		if d := us.check(t, request("a")); d.Reason != WithinLimit || d.Remaining != 318 {
			t.Errorf("with the store again: %+v", d)
		}
		if err := us.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if got := us.state(t, request("a")); got.Used != 2 || got.Entitlement != 320 {
			t.Errorf("in the store: %+v", got)
		}
	})
}

// A cost between what the stores hold and the limit is never admitted, and draws nobody's rights.
func TestReserveMakesLargeCostsImpossible(t *testing.T) {
	started(t, document(t, 1, halves, limitOf(algorithms.FixedWindow, 400, ", local_reserve: 0.2, on_exhausted: borrow")), []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		nextCell(10 * time.Second)
		for range 20 {
			if d := us.check(t, cost("a", 321)); d.Allowed || d.Reason != Never {
				t.Fatalf("%+v", d)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got := us.counter(t, "units_borrowed"); got != 0 {
			t.Errorf("%d units borrowed for it", got)
		}
		if d := us.check(t, cost("a", 200)); !d.Allowed {
			t.Errorf("a cost that the stores hold together: %+v", d)
		}
	})
}

// cutOff ends all stores.
func (c *cluster) cutOff(t *testing.T) {
	t.Helper()
	for region := range c.servers {
		c.loseStore(region)
	}
}
