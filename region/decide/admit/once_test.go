package admit

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/trade/rights"
)

// named is a request with an id.
func named(account, id string, units quantity.Units) Request {
	q := request(account)
	q.ID, q.Cost = id, units
	return q
}

// sameAs reports whether a decision repeats the one made before under its id.
func (d Decision) sameAs(first Decision) bool {
	first.Repeated, first.Node, first.Sequence = true, d.Node, d.Sequence
	return reflect.DeepEqual(d, first)
}

// An admitted request is charged once within a minute, however often it is sent again and to
// whichever node of the region.
func TestTheSameRequestAgain(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			d := documents.Parse(t, 1, alone, limitOf(kind, 10, ""))
			started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
				n1, n2 := c.running["us/n1"], c.running["us/n2"]
				q := named("a", "x", 3)
				q.Receipt = true
				first := n1.check(t, q)
				if !first.Allowed || first.Repeated || first.Remaining != 7 {
					t.Fatalf("the first: %+v", first)
				}
				for _, n := range []*running{n1, n2} {
					if got := n.check(t, q); !got.sameAs(first) {
						t.Errorf("again at %s: %+v\nfirst: %+v", n.name, got, first)
					}
				}
				if got := n1.used(t, nameOf(kind), q); got != 3 {
					t.Errorf("%d used, want the 3 of one request", got)
				}
				time.Sleep(time.Minute - time.Millisecond) // six windows later
				if got := n2.check(t, q); !got.sameAs(first) {
					t.Errorf("a minute later: %+v\nfirst: %+v", got, first)
				}
				if got := n1.used(t, nameOf(kind), q); got != 0 {
					t.Errorf("%d used in another window by a request of this one", got)
				}
				time.Sleep(time.Millisecond)
				if got := n1.check(t, q); got.Repeated || got.Remaining != 7 ||
					got.At != quantity.StoreTime(time.Now().UnixMicro()) {
					t.Errorf("after its minute: %+v", got)
				}
			})
		})
	}
}

// Of requests with one id at the same time exactly one is charged, and all get its answer.
func TestTheSameRequestAtOnce(t *testing.T) {
	const callers, ids = 1 + algorithms.Repeats, 12
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 100, ""))
	started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		nodes := []*running{c.running["us/n1"], c.running["us/n2"]}
		var got [ids][callers]Decision
		var all sync.WaitGroup
		for i := range callers * ids {
			id := i / 2 % ids // at both nodes
			all.Go(func() { got[id][i/2/ids*2+i%2] = nodes[i%2].check(t, named("a", string(rune('a'+id)), 2)) })
		}
		all.Wait()
		for id, of := range got {
			first := 0
			for _, d := range of {
				if !d.Repeated {
					first++
					d.Repeated = true
				}
				if !d.sameAs(of[0]) {
					t.Errorf("%+v\nanother %+v", d, of[0])
				}
			}
			if first != 1 {
				t.Errorf("id %d: %d not repeated, want 1", id, first)
			}
		}
		if used := nodes[0].used(t, "fixed-window", request("a")); used != 2*ids {
			t.Errorf("%d units used, want %d", used, 2*ids)
		}
	})
}

// batched asks the store to decide some requests in one round trip, and tells an engine about it.
func (n *running) batched(t *testing.T, observed *rights.Engine, requests ...Request) []Decision {
	t.Helper()
	r := n.tenure.Rules()
	together := queue.New(queue.Config{Store: n.store, Rights: observed, Now: time.Now, Elapsed: n.elapsed, Log: n.log,
		On: &queue.Goroutines{}, Closed: make(chan struct{})})
	together.Begin()
	batch := make([]queue.Ask, len(requests))
	for i, q := range requests {
		batch[i] = queue.Ask{Rules: r, Applied: r.Match(q.Domain, q.Descriptors), Cost: q.Cost,
			Commit: true}.Waits(time.Now(), time.Minute)
		if q.ID != "" {
			batch[i].Once = onceKey(q.ID, q.Cost, batch[i].Applied)
		}
	}
	said, errs := together.DecideAll(t.Context(), batch)
	decisions := make([]Decision, len(requests))
	for i, a := range said {
		if errs[i] != nil || a.Err != nil {
			t.Fatalf("request %d: %+v, %v", i, a, errs[i])
		}
		decisions[i] = n.judge(&way{Ask: batch[i]}, a)
	}
	return decisions
}

// Within one batch, too, a request is charged once, and demand is counted once.
func TestTheSameRequestInABatch(t *testing.T) {
	// Only a region that has somebody to trade with counts demand.
	d := documents.Parse(t, 1, []string{"us: {weight: 1}", "eu: {weight: 1}"},
		limitOf(algorithms.FixedWindow, 10, ", weights: {us: 1, eu: 0}"))
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		// Nothing runs in this engine, so that what it heard stays there.
		hears := rights.New(rights.Config{Region: "us", Node: "n1", Store: n.store,
			Journal: n.journal, Tenure: n.tenure,
			Now: time.Now, Log: n.log, Closed: n.config.Closed})
		var counted quantity.Units
		demand := func() quantity.Units {
			for _, o := range hears.Observations() {
				counted += o.Admitted + o.Denied
			}
			return counted
		}
		x, y, plain := named("a", "x", 2), named("a", "y", 2), request("a")
		batch := []Request{x, plain, x, y, plain, plain}
		// want is both the used units and the demand
		for round, want := range []quantity.Units{2 + 2 + 3, 2 + 2 + 3 + 3} {
			for i, d := range n.batched(t, hears, batch...) {
				again := batch[i].ID != "" && (round > 0 || i == 2)
				if !d.Allowed || d.Repeated != again {
					t.Errorf("round %d, request %d: %+v, want repeated %v", round, i, d, again)
				}
			}
			if used := n.used(t, "fixed-window", plain); used != want || demand() != want {
				t.Errorf("round %d: %d used and %d counted as demand, want %d", round, used,
					counted, want)
			}
		}
		n.batched(t, hears, named("a", "z", 9), named("a", "z", 9))
		if demand() != 10+18 {
			t.Errorf("%d counted as demand after two denials of 9, which are two demands, want 28",
				counted)
		}
		if got := n.batched(t, hears, y)[0]; !got.Repeated ||
			got.Cell != quantity.Cell(time.Now().Unix()/10) {
			t.Errorf("alone in its batch: %+v", got)
		}
	})
}

// Only what was admitted is remembered.
func TestADenialIsNotRemembered(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 5, ""))
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		n.check(t, named("a", "before", 3))
		for range 2 {
			if got := n.check(t, named("a", "x", 3)); got.Allowed || got.Repeated ||
				got.Reason != OverLimit || got.At != quantity.StoreTime(time.Now().UnixMicro()) {
				t.Errorf("no room: %+v", got)
			}
			time.Sleep(time.Second)
		}
		nextCell(10 * time.Second)
		first := n.check(t, named("a", "x", 3))
		if !first.Allowed || first.Repeated || first.Remaining != 2 {
			t.Errorf("there is room: %+v", first)
		}
		if got := n.check(t, named("a", "x", 3)); !got.sameAs(first) {
			t.Errorf("again: %+v", got)
		}
		if got := n.check(t, named("a", "before", 3)); !got.Allowed || !got.Repeated ||
			got.Cell != first.Cell-1 {
			t.Errorf("admitted in the window before: %+v", got)
		}
	})
}

// Two requests are the same only if their ids, costs and buckets are equal.
func TestAnotherRequestByTheSameID(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 100, ""),
		"name: both, key: [account, address], limit: 100, window: 10s",
		"name: other, domain: other, limit: 100, window: 10s",
		"name: total, domain: other, key: [region], limit: 100, window: 10s")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		n.check(t, named("a", "x", 1))
		elsewhere := named("a", "x", 1)
		elsewhere.Domain = "other"
		more := named("a", "x", 1)
		more.Descriptors = map[string]string{"account": "a", "address": "1"}
		unlimited := named("a", "x", 1)
		unlimited.Domain = "nobody's"
		for what, q := range map[string]Request{"another cost": named("a", "x", 2),
			"another account": named("b", "x", 1),
			"another id":      named("a", "y", 1), "an id like both": named("a", "x,1", 1),
			"no id": named("a", "", 1), "another domain": elsewhere, "a limit more": more,
			"no limit": unlimited} {
			for i := range 2 {
				got, again := n.check(t, q), i > 0 && q.ID != "" && q.Domain != "nobody's"
				if !got.Allowed || got.Repeated != again {
					t.Errorf("%s, time %d: %+v", what, i, got)
				}
			}
		}
		// A descriptor that no limit counts by changes nothing.
		same := named("a", "x", 1)
		same.Descriptors = map[string]string{"account": "a", "trace": "1"}
		if got := n.check(t, same); !got.Repeated {
			t.Errorf("the same but for a descriptor that nothing counts by: %+v", got)
		}
	})
}

// A peek says what a new request would get, and is not remembered.
func TestPeeksHaveNoID(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 5, ""))
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n, q := c.running["us/n1"], named("a", "x", 3)
		peek := func(allowed bool, remaining quantity.Units) {
			t.Helper()
			if got, err := n.Peek(t.Context(), q); err != nil || got.Allowed != allowed ||
				got.Repeated || got.Remaining != remaining {
				t.Errorf("peek: %+v, %v", got, err)
			}
		}
		peek(true, 2)
		if got := n.check(t, q); got.Repeated {
			t.Errorf("after a peek: %+v", got)
		}
		peek(false, 2)
		if got := n.check(t, q); !got.Repeated {
			t.Errorf("again: %+v", got)
		}
	})
}

// A repeated decision has one receipt, also if the caller did not ask for one the first time.
func TestOneReceiptForOneCharge(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 10, ""))
	started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		n1, n2, q := c.running["us/n1"], c.running["us/n2"], named("a", "x", 3)
		n1.check(t, q)
		q.Receipt = true
		receipt, again := n1.charged(t, q), n2.charged(t, q)
		all := receipts.SettledCharge{Limit: "fixed-window", Back: 3}
		n2.refunds(t, receipt, false, all)
		n1.refunds(t, again, true, all)
		if got := n1.used(t, "fixed-window", q); got != 0 {
			t.Errorf("%d used", got)
		}
	})
}

// A refunded request that is sent again is charged again.
func TestARefundedRequestIsChargedAnew(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 1, ""))
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n, all := c.running["us/n1"], receipts.SettledCharge{Limit: "fixed-window", Back: 1}
		q := named("a", "x", 1)
		q.Receipt = true
		first := n.charged(t, q)
		n.refunds(t, first, false, all)
		n.check(t, request("a")) // takes the unit
		if got := n.check(t, q); got.Allowed || got.Repeated {
			t.Errorf("two requests are served of a limit of one: %+v", got)
		}
		nextCell(10 * time.Second)
		second := n.charged(t, q)
		n.refunds(t, first, true, all) // and forgets nothing of the second
		if got := n.check(t, q); !got.Repeated || got.Receipt != second {
			t.Errorf("made again: %+v", got)
		}
		n.refunds(t, second, false, all)
	})
}

// An id used again after its minute is another charge, with another receipt.
func TestAnIDUsedAgainHasAReceiptOfItsOwn(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 10, ""))
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n, all := c.running["us/n1"], receipts.SettledCharge{Limit: "fixed-window", Back: 3}
		q := named("a", "x", 3)
		q.Receipt = true
		n.refunds(t, n.charged(t, q), false, all)
		time.Sleep(time.Minute)
		n.refunds(t, n.charged(t, q), false, all)
		if got := n.used(t, "fixed-window", q); got != 0 {
			t.Errorf("%d stay used", got)
		}
	})
}
