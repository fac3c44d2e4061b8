//go:build !race

package exchange

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// throng is a node with MaxBuckets buckets, each used beyond its entitlement. The other regions say
// what they want of each bucket and have nothing to spare. No tick has more to do.
type throng struct {
	m       *Machine
	now     quantity.NodeTime
	buckets []*Bucket
	peers   []string
	kind    algorithms.Kind
}

// newThrong builds a throng of so many buckets and regions, this region included.
func newThrong(kind algorithms.Kind, buckets, regions int, hinted bool) *throng {
	s := &throng{m: New("r0", "n1", Options{}), now: 1_000_000 * allocator.Second, kind: kind}
	entitlements, bursts := map[string]quantity.Units{}, map[string]quantity.Units{}
	for i := range regions {
		name := fmt.Sprintf("r%d", i)
		entitlements[name] = 400
		if kind.Bucket() {
			bursts[name] = 400
		}
		if i > 0 {
			s.peers = append(s.peers, name)
		}
	}
	limit, window := quantity.Units(400*int64(regions)), int64(60*allocator.Second)
	for i := range buckets {
		s.buckets = append(s.buckets,
			&Bucket{ID: fmt.Sprintf("1:q,3:api,12:fixed_window,11:60000000000,7:account,5:%05d,",
				i),
				Epoch: epochForTests, Kind: kind, Limit: limit, Window: window,
				Cell: algorithms.CellLength(kind, window),
				Tick: algorithms.Tick(kind, limit, window), Entitlements: entitlements,
				Bursts:  bursts,
				Lending: 950_000, Borrowing: -1})
	}
	s.m.Step(s.now, TenureChanged{Generation: 7, Epoch: epochForTests, Peers: s.peers})
	for range 4 {
		s.pass(hinted)
		s.answer(s.m.Step(s.now, Tick{Jitter: allocator.PPM}))
	}
	return s
}

// pass is the time between two ticks: every bucket is used beyond what is left of it, and every
// peer says what it wants.
func (s *throng) pass(hinted bool) {
	s.now += Interval / 2
	s.answer(s.m.Step(s.now, s.report(8)))
	for _, p := range s.peers {
		for _, b := range s.buckets {
			if hinted {
				s.m.Step(s.now, Heard{Hint: Hint{Region: p, Node: "n1", Bucket: b.ID,
					Cell: quantity.Cell(int64(s.now) / b.Cell),
					Used: 300, Total: 600, Rate: 10_000, Share: 400}})
			}
		}
	}
	s.now += Interval / 2
}

// report is what was decided in every bucket: so many units denied, a few admitted.
func (s *throng) report(denied quantity.Units) Report {
	all := make(Report, len(s.buckets))
	for i, b := range s.buckets {
		all[i] = Observed{Bucket: b, Requests: allocator.Requests{Admitted: 1, Denied: denied}, Now: quantity.StoreTime(s.now),
			State: algorithms.State{Cell: quantity.Cell(int64(s.now) / b.Cell),
				Entitlement: 400, Share: 400, NextShare: 400, Used: 400}}
	}
	return all
}

// answer answers every call with empty grants.
func (s *throng) answer(out Effects) {
	for len(out.Calls) > 0 {
		calls := out.Calls
		out = Effects{}
		for _, c := range calls {
			r := Reply{From: c.Peer, Generation: 9, ForGeneration: 7,
				Grants: make([]Grant, len(c.Message.Asks))}
			for i, a := range c.Message.Asks {
				r.Grants[i] = Grant{Cell: a.Cell, Retry: Interval}
			}
			out.Calls = append(out.Calls, s.m.Step(s.now, Answered{ID: c.ID, Reply: r}).Calls...)
		}
	}
}

// BenchmarkTick is one tick of a node that has all the buckets it plans for, all over their
// entitlement.
func BenchmarkTick(b *testing.B) {
	eachThrong(b, func(s *throng) Effects { return s.m.Step(s.now, Tick{Jitter: allocator.PPM}) })
}

// BenchmarkReport is one report of decisions on all of them.
func BenchmarkReport(b *testing.B) {
	eachThrong(b, func(s *throng) Effects { return s.m.Step(s.now, s.report(8)) })
}

func eachThrong(b *testing.B, step func(*throng) Effects) {
	for _, kind := range algorithms.Kinds {
		for _, regions := range []int{3, 10} {
			for _, hinted := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/regions=%d/hinted=%t", kind, regions, hinted),
					func(b *testing.B) {
						s := newThrong(kind, MaxBuckets, regions, hinted)
						asks := s.m.Stats().Asks
						b.ResetTimer()
						for range b.N {
							b.StopTimer()
							s.pass(hinted)
							b.StartTimer()
							out := step(s)
							b.StopTimer()
							s.answer(out)
							b.StartTimer()
						}
						b.ReportMetric(float64(s.m.Stats().Asks-asks)/float64(b.N), "asks/op")
					})
			}
		}
	}
}
