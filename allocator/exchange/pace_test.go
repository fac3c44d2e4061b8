//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestPaceOfAsksWhereUseFades: a region holds all that the others do not need, and wants more. It
// asks at the pace that its lenders name, not at the faster pace that suits lenders whose use
// fades.
func TestPaceOfAsksWhereUseFades(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		t.Run(string(kind), func(t *testing.T) {
			const seconds = 10
			c := newClusterOf(t, 1, kind, allocator.Second, 400, 400, 200)
			c.judged()
			c.demandFor(Options{}, 1, 950, 60, 20)
			c.run(c.now + 3*allocator.Second)
			before := c.stats().Asks
			c.run(c.now + seconds*allocator.Second)
			asks := (c.stats().Asks - before) / seconds
			t.Logf("%d asks a second", asks)
			if asks > 100 {
				t.Errorf("%d asks a second, want at most 100", asks)
			}
			if v := c.judge.Verdict(); !v.Holds() {
				t.Error(v)
			}
		})
	}
}

// TestALenderWithMoreIsAskedAtOnce: the lenders gave all that a region asked for, and said that they
// have more. If it lacks more then, it does not wait as long as they name for the case that they have
// nothing, and asks for more than they gave.
func TestALenderWithMoreIsAskedAtOnce(t *testing.T) {
	for _, c := range []struct {
		spare    quantity.Units
		credited bool // what they gave, by then
		asked    int
	}{{100, true, 2}, {100, false, 2}} {
		s := newThrong(algorithms.SlidingWindowCounter, 1, 3, false)
		report := func(units quantity.Units) Report {
			all := s.report(units)
			all[0].Admitted = units
			return all
		}
		s.now += 2 * allocator.Second
		first := s.m.Step(s.now, report(10))
		s.now += allocator.Second / 50
		share, gave := quantity.Units(400), map[string]quantity.Units{}
		for _, sent := range first.Calls {
			r := Reply{From: sent.Peer, Generation: 9, ForGeneration: 7}
			for _, a := range sent.Message.Asks {
				r.Grants = append(r.Grants, Grant{Cell: a.Cell, Lent: a.Lent, Spare: c.spare, Retry: allocator.Second})
			}
			for _, credit := range s.m.Step(s.now, Answered{ID: sent.ID, Reply: r}).Credits {
				share, gave[sent.Peer] = share+credit.Gain, credit.Lent
				if c.credited {
					s.m.Step(s.now, Credited{Credit: credit, Result: algorithms.Credited{
						Head:  algorithms.Head{Status: algorithms.StatusOK, Now: quantity.StoreTime(s.now)},
						State: algorithms.State{Cell: credit.Cell, Entitlement: 400, Share: share, Used: share},
						Row:   algorithms.Row{Borrowed: credit.Lent}}})
				}
			}
		}
		s.now += allocator.Second / 50
		second := append(s.m.Step(s.now, report(300)).Calls, s.m.Step(s.now, Tick{Jitter: allocator.PPM}).Calls...)
		if len(gave) != 2 || len(second) != c.asked {
			t.Errorf("%+v: %d lenders gave something, and %d are asked at once", c, len(gave), len(second))
		}
		for _, sent := range second {
			if got := sent.Message.Asks[0].Lent; got <= gave[sent.Peer] {
				t.Errorf("%+v: %s gave %d units, and is asked for %d", c, sent.Peer, gave[sent.Peer], got)
			}
		}
		s.now += allocator.Second / 50
		if third := s.m.Step(s.now, report(300)); len(third.Calls) > 0 {
			t.Errorf("%+v: asked again before there was an answer: %+v", c, third.Calls)
		}
	}
}

// TestALoneRegionAsksNobody: its demand is above the limit, and there is nobody to ask.
func TestALoneRegionAsksNobody(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			c := newClusterOf(t, 1, kind, allocator.Second, 100)
			c.judged()
			c.demandFor(Options{}, 1, 200)
			c.run(c.now + 3*allocator.Second)
			if asks := c.stats().Asks; asks > 0 || c.admitted() == 0 {
				t.Errorf("%d asks, %d admitted", asks, c.admitted())
			}
		})
	}
}

// TestWaitingRequestsAskOnce: requests wait for rights (on_exhausted: borrow) and there are none to
// be had. A further request does not ask every peer again while an answer is under way.
func TestWaitingRequestsAskOnce(t *testing.T) {
	c := newCluster(t, 1, allocator.Second, 20, 20, 20, 20, 20)
	for _, r := range c.regions {
		r.borrows = true
	}
	c.demandFor(Options{}, 1, 60, 60, 20, 20, 20)
	c.run(c.now + 3*allocator.Second)
	before := c.stats().Asks
	c.run(c.now + 10*allocator.Second)
	if asks := (c.stats().Asks - before) / 10; asks > 50 {
		t.Errorf("%d asks a second of five regions, want at most 50", asks)
	}
}

// firstAsks plays a node with so many buckets in need at once, reported every 20 ms in the same
// order. Its peers answer every call with nothing after a round trip. For each bucket that some
// peer was asked for, it returns the round trips until the first ask.
func firstAsks(kind algorithms.Kind, buckets, trips int) map[string]int64 {
	const roundTrip = allocator.Second / 10
	s := newThrong(kind, buckets, 3, false)
	s.now += allocator.Second // what was refused before is over
	type sent struct {
		at   quantity.NodeTime
		call Call
	}
	var underway []sent
	begun, first := s.now, map[string]int64{}
	note := func(out Effects) {
		for _, c := range out.Calls {
			underway = append(underway, sent{s.now, c})
			for _, a := range c.Message.Asks {
				if first[a.Bucket] == 0 {
					first[a.Bucket] = (s.now.Sub(begun))/roundTrip + 1
				}
			}
		}
	}
	for turn := 1; s.now < begun.Add(int64(trips)*roundTrip); turn++ {
		for len(underway) > 0 && underway[0].at+roundTrip <= s.now {
			c := underway[0].call
			underway = underway[1:]
			r := Reply{From: c.Peer, Generation: 9, ForGeneration: 7,
				Grants: make([]Grant, len(c.Message.Asks))}
			for i, a := range c.Message.Asks {
				r.Grants[i] = Grant{Cell: a.Cell, Retry: Interval / 2} // and then it is asked again
			}
			note(s.m.Step(s.now, Answered{ID: c.ID, Reply: r}))
		}
		note(s.m.Step(s.now, s.report(8)))
		if turn%10 == 0 {
			note(s.m.Step(s.now, Tick{Jitter: allocator.PPM}))
		}
		s.now += allocator.Second / 50
	}
	return first
}

// TestBusyBucketsTakeTurns: more buckets are in need than calls have room for. Each is asked for in
// its turn, and none waits while others are asked for twice.
func TestBusyBucketsTakeTurns(t *testing.T) {
	const buckets, room = MaxBuckets, MaxCalls * MaxAsks
	// A fixed window asks once for what it lacks. A token bucket asks for refill of two cells and
	// for tokens.
	for kind, asks := range map[algorithms.Kind]int64{algorithms.FixedWindow: 1,
		algorithms.TokenBucket: 3} {
		t.Run(string(kind), func(t *testing.T) {
			turns := (asks*buckets + room - 1) / room
			first := firstAsks(kind, buckets, int(2*turns))
			if len(first) != buckets {
				t.Errorf("%d of %d buckets were asked for at all", len(first), buckets)
			}
			late := 0
			for _, trips := range first {
				if trips > turns {
					late++
				}
			}
			if late > 0 {
				t.Errorf("%d buckets waited for more than %d round trips", late, turns)
			}
		})
	}
}
