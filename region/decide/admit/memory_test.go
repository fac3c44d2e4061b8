package admit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
)

// countedServer is a store's server that counts the requests that reach it, and that answers after
// a while.
type countedServer struct {
	store.Servers
	trips, items, refunds atomic.Int64
	takes                 atomic.Int64  // ns
	closed                chan struct{} // ends the node
}

// Exec implements store.Servers.
func (s *countedServer) Exec(ctx context.Context, calls []store.Call) []store.Reply {
	s.trips.Add(1)
	for _, c := range calls {
		switch op := c.Op.(type) {
		case *store.Op[algorithms.Items, algorithms.ItemsDecided]:
			s.items.Add(int64(len(op.Call.Each)))
		case *store.Op[algorithms.Settle, algorithms.Settled]:
			s.refunds.Add(1)
		}
	}
	time.Sleep(time.Duration(s.takes.Load()))
	return s.Servers.Exec(ctx, calls)
}

// counted runs a test in virtual time on a limiter of region "here" whose store counts requests.
func counted(t *testing.T, regions, limits []string, f func(t *testing.T, n *Limiter,
	s *countedServer)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		_, way := lab.NewTwin(now, "r").Connect(time.Now)
		s := &countedServer{Servers: way, closed: make(chan struct{})}
		n := until(t, s.closed, store.New(store.Parts{Servers: s,
			NewSecret: func() string { return "secret" }}), 1,
			documents.Parse(t, 1, regions, limits...))
		suite.Must(t, n.tenure.Open(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		runs.Go(func() { n.Run(ctx) })
		t.Cleanup(func() {
			cancel()
			runs.Wait()
		})
		synctest.Wait()
		f(t, n, s)
	})
}

var here = []string{"here: {weight: 1}"}

// must decides a request.
func (l *Limiter) must(t *testing.T, q Request) Decision {
	t.Helper()
	d, err := l.Check(t.Context(), q)
	suite.Must(t, err)
	return d
}

// units is a request of so many units.
func units(account string, of quantity.Units) Request {
	q := request(account)
	q.Cost = of
	return q
}

// counts returns what a metric counts.
func counts(t *testing.T, c prometheus.Counter) int {
	t.Helper()
	var m dto.Metric
	suite.Must(t, c.Write(&m))
	return int(m.GetCounter().GetValue())
}

// A flood on an exhausted bucket makes one call in 100 ms. All of it is denied, and counts as
// demand; it is told to come again at the same time, which comes nearer.
func TestAFloodOnAnExhaustedBucket(t *testing.T) {
	counted(t, hereAndThere, []string{"name: minute, limit: 250, window: 1m"}, // 100 of it are here
		func(t *testing.T, n *Limiter, s *countedServer) {
			if !n.must(t, units("a", 100)).Allowed {
				t.Fatal("denied")
			}
			n.rights.Observations()
			before := s.items.Load()
			const callers, each = 64, 1000 // in a second
			var denied atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range each {
						left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))
						d := n.must(t, request("a"))
						if d.Allowed || d.Reason != OverLimit || d.Limit != "minute" ||
							d.Share != 100 || d.RetryAfter > left || d.RetryAfter < left-time.Millisecond ||
							d.ResetAfter != d.RetryAfter || d.At != now() {
							t.Errorf("%v before the minute is over: %+v", left, d)
							return
						}
						denied.Add(1)
						time.Sleep(time.Millisecond)
					}
				})
			}
			all.Wait()
			// The first callers ask together, before a denial is known.
			if asked := s.items.Load() - before; asked < 9 || asked > callers+11 {
				t.Errorf("the store was asked %d times by %d requests", asked, denied.Load())
			}
			if got := counts(t, n.metrics.rememberedDenials); got < callers*each-2*callers {
				t.Errorf("%d of %d denials were remembered", got, denied.Load())
			}
			var demand quantity.Units
			for _, o := range n.rights.Observations() {
				demand += o.Denied
			}
			if demand != callers*each {
				t.Errorf("%d denied units are reported as demand, of %d", demand, callers*each)
			}
		})
}

// After a denial, who is told so by the node, and who asks.
func TestWhoAsksAfterADenial(t *testing.T) {
	limits := []string{"name: minute, limit: 100, window: 1m",
		"name: shadowed, domain: shadowed, limit: 100, window: 1m",
		"name: shadow, domain: shadowed, key: [account, shadow], limit: 9, window: 1m, shadow: true"}
	again, shadowed, dear := request("a"), request("a"), units("a", 101)
	again.ID = "x"
	shadowed.Domain = "shadowed"
	shadowed.Descriptors = map[string]string{"account": "a", "shadow": "x"}
	for _, tc := range []struct {
		name     string
		question Request
		asks     bool
	}{
		{"the same", request("a"), false},
		{"one with a receipt", cost("a", 1), false},
		{"more", units("a", 2), false},
		{"more than there ever is", dear, true},
		{"one with an id", again, true},
		{"one with a shadow limit", shadowed, true},
		{"another account", request("b"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			counted(t, here, limits, func(t *testing.T, n *Limiter, s *countedServer) {
				used := units("a", 100)
				used.Domain, used.Descriptors = tc.question.Domain, tc.question.Descriptors
				if tc.name == "another account" {
					used = units("a", 100)
				}
				n.must(t, used)
				used.Cost = 1
				n.must(t, used)
				before := s.items.Load()
				d := n.must(t, tc.question)
				if asked := s.items.Load() > before; asked != tc.asks || d.FromMemory == tc.asks {
					t.Errorf("asked: %v, %+v", asked, d)
				}
				before = s.items.Load()
				if d, err := n.Peek(t.Context(), tc.question); err != nil || d.FromMemory ||
					s.items.Load() == before {
					t.Errorf("a peek: %+v, %v", d, err)
				}
			})
		})
	}
}

// A cost below the denied one is not denied for it.
func TestACheaperRequestAsks(t *testing.T) {
	counted(t, here, []string{"name: minute, limit: 100, window: 1m"},
		func(t *testing.T, n *Limiter, _ *countedServer) {
			n.must(t, units("a", 90))
			if d := n.must(t, units("a", 20)); d.Allowed {
				t.Errorf("20 of 10: %+v", d)
			}
			if d := n.must(t, units("a", 20)); d.Allowed || !d.FromMemory {
				t.Errorf("20 of 10 again: %+v", d)
			}
			if d := n.must(t, units("a", 10)); !d.Allowed || d.FromMemory {
				t.Errorf("10 of 10: %+v", d)
			}
		})
}

// Of several limits that deny, the one that denies longest decides, also from memory.
func TestTheLongestDenialIsTold(t *testing.T) {
	for _, limits := range [][]string{
		{"name: second, limit: 25, window: 1s", "name: hour, limit: 25, window: 1h"},
		{"name: hour, limit: 25, window: 1h", "name: second, limit: 25, window: 1s"},
	} {
		counted(t, hereAndThere, limits, func(t *testing.T, n *Limiter, s *countedServer) {
			n.must(t, units("a", 10))
			asked := n.must(t, request("a"))
			time.Sleep(10 * time.Millisecond)
			told := n.must(t, request("a"))
			if asked.Limit != "hour" || !told.FromMemory || told.Limit != "hour" ||
				told.RetryAfter != asked.RetryAfter-10*time.Millisecond ||
				told.Cell != asked.Cell || told.ResetAfter != told.RetryAfter {
				t.Errorf("asked %+v\ntold %+v", asked, told)
			}
			n.rights.Observations()
			n.must(t, request("a"))
			reported := n.rights.Observations()
			for _, o := range reported {
				if o.Denied != 1 {
					t.Errorf("%s: %d denied units are reported", o.Bucket.ID, o.Denied)
				}
			}
			if len(reported) != 2 {
				t.Errorf("%d buckets are reported", len(reported))
			}
			before := s.items.Load()
			for range 500 {
				time.Sleep(time.Millisecond)
				n.must(t, request("a"))
			}
			if asked := s.items.Load() - before; asked < 4 || asked > 6 {
				t.Errorf("the store was asked %d times in 500 ms", asked)
			}
		})
	}
}

// What makes room, on this node, ends its denials at once.
func TestDenialsEndWithTheirReason(t *testing.T) {
	limit := "name: minute, limit: 100, window: 1m, lending_limit: 1"
	for _, tc := range []struct {
		name  string
		makes func(t *testing.T, n *Limiter, receipt string)
		asks  bool
	}{
		{"nothing", func(*testing.T, *Limiter, string) {}, false},
		{"a refund", func(t *testing.T, n *Limiter, receipt string) {
			if _, err := n.receipts.Settle(t.Context(), receipt, 0); err != nil {
				t.Error(err)
			}
		}, true},
		{"a reset", func(t *testing.T, n *Limiter, _ string) {
			_, err := n.Reset(t.Context(), "minute", "api", request("a").Descriptors)
			if err != nil {
				t.Error(err)
			}
		}, true},
		{"more rights", func(t *testing.T, n *Limiter, _ string) {
			a := n.tenure.Rules().Match(asked(request("a")))[0]
			cell := algorithms.CellAt(now(), a.Bucket.Cell)
			n.rights.Credit(t.Context(), []exchange.Credit{{Bucket: a.Bucket,
				ForGeneration: n.tenure.Generation(),
				Announcement: algorithms.Announcement{Peer: "there",
					PeerGeneration: 1, Cell: cell, Lent: 10,
					Most: 60}}})
		}, true},
		{"another document", func(t *testing.T, n *Limiter, _ string) {
			more := "name: minute, limit: 200, window: 1m, lending_limit: 1"
			d := documents.Parse(t, 2, hereAndThere, more)
			if err := n.tenure.Adopt(t.Context(), d); err != nil {
				t.Error(err)
			}
			n.tenure.Hear("there", []tenure.Told{{Epoch: d.Epoch()}})
			n.tenure.Review(t.Context())
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			counted(t, hereAndThere, []string{limit}, func(t *testing.T, n *Limiter,
				_ *countedServer) {
				paid := n.must(t, cost("a", 40)) // all that is here
				if d := n.must(t, request("a")); !paid.Allowed || d.Allowed {
					t.Fatalf("%+v", d)
				}
				if d := n.must(t, request("a")); !d.FromMemory {
					t.Fatalf("%+v", d)
				}
				tc.makes(t, n, paid.Receipt)
				if d := n.must(t, request("a")); d.Allowed != tc.asks || d.FromMemory == tc.asks {
					t.Errorf("%+v", d)
				}
			})
		})
	}
}

// A part of a request that was charged for a moment is no reason to deny others after it.
func TestSpanningUndoEndsDenials(t *testing.T) {
	spanned(t, []string{perAccount, perAddress}, func(t *testing.T, c *cluster, n *running) {
		q := both(4)
		q.Receipt = false
		n.check(t, q) // 4 of 10 and of 5
		r := n.tenure.Rules()
		for _, a := range r.Match(q.Domain, q.Descriptors) {
			// This was answered while a request of the other shard's was charged here.
			state := n.inspect(t, a.Limit.Name, q)
			a.Held.Learn(held.Answer{Generation: n.tenure.Generation(), Now: n.store.Latest(),
				State: state, Ends: (state.Cell + 1).OpensAt(a.Target.Terms.Cell),
				Asked: n.elapsed(), Heard: n.elapsed(), Denied: 6,
				Verdict: algorithms.Verdict{Retry: time.Hour.Microseconds()}})
		}
		undone := both(2) // there is one of the address
		undone.ID = "x"   // it asks in any case
		if d := n.check(t, undone); d.Allowed {
			t.Fatalf("%+v", d)
		}
		six := request("42")
		six.Cost = 6
		if d := n.check(t, six); !d.Allowed {
			t.Errorf("6 of 6: %+v", d)
		}
	})
}

// While a bucket recovers, each request asks the store.
func TestARecoveringBucketIsAsked(t *testing.T) {
	started(t, documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m"),
		[]string{"us/n1"}, func(t *testing.T, c *cluster) {
			n := c.running["us/n1"]
			n.check(t, request("a"))
			if c.twin == nil {
				c.twin = lab.NewTwin(now, "a")
				c.stop("us/n1")
				n = c.start("us/n1", n.tenure.Rules().Document)
				n.check(t, request("a"))
			}
			c.twin.Flush()
			recovering := 0
			for range 100 {
				d, err := n.Check(t.Context(), request("a"))
				if err == nil && d.Reason == Recovering {
					recovering++
					if d.FromMemory {
						t.Fatalf("%+v", d)
					}
				}
				time.Sleep(time.Millisecond)
			}
			if recovering == 0 {
				t.Error("the bucket did not recover, which shows nothing")
			}
		})
}

// A node that ends decides nothing any more, neither by a denial that it remembers nor from a
// chunk.
func TestAClosedNodeRemembersNothing(t *testing.T) {
	for name, limit := range map[string]string{
		"a denial": "name: minute, limit: 1, window: 1m",
		"a chunk":  prefetched,
	} {
		t.Run(name, func(t *testing.T) {
			counted(t, here, []string{limit}, func(t *testing.T, n *Limiter, s *countedServer) {
				fromMemory := func() bool {
					d, err := n.Check(t.Context(), request("a"))
					return err == nil && d.FromMemory
				}
				for try := 0; !fromMemory(); try++ {
					if try == 1000 {
						t.Fatal("the node remembers nothing while it runs")
					}
					time.Sleep(time.Millisecond)
				}
				close(s.closed)
				if d, err := n.Check(t.Context(), request("a")); !errors.Is(err, ErrClosed) {
					t.Errorf("%+v, %v", d, err)
				}
			})
		})
	}
}
