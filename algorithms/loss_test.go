//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// TestALossIsNotDatedBeforeWhatWasSeen: a store that lost its data shows an earlier time than
// before, because its clock was set back or is another machine's. The cells it served before, and
// the next one, which it may have promised, stay closed for as long as they weigh. After that
// windows begin unused, a token bucket empty, and a queue full.
func TestALossIsNotDatedBeforeWhatWasSeen(t *testing.T) {
	const start = 1_800_000_000_010 * 1000 // a cell begins
	tests := []struct {
		terms  Terms
		opens  quantity.StoreTime // after start
		refill int64              // time from there until all 400 are available again
	}{
		{Terms{Kind: FixedWindow, Cell: 1000}, 2000, 0},
		// cells 0 and 1, and the one in which they fade
		{Terms{Kind: SlidingWindowCounter, Cell: 1000, ClockMargin: 100}, 3100, 0},
		// cells 2 and 3, and a window after
		{Terms{Kind: SlidingWindowLog, Cell: 250, ClockMargin: 100}, 2100, 0},
		{Terms{Kind: TokenBucket, Cell: 500, Burst: 400}, 1500, 1000},
		{Terms{Kind: LeakyBucket, Cell: 500, Burst: 400}, 1500, 1000},
	}
	for _, test := range tests {
		t.Run(string(test.terms.Kind), func(t *testing.T) {
			terms := test.terms
			terms.Window, terms.Tick, terms.Entitlement = 1000, 1, 400
			decide := func(w *Twin, at quantity.StoreTime, cost quantity.Units) Decided {
				return w.Decide(start+at,
					Decide{Fence: Fence{Generation: w.Generation, Epoch: "1-e", Clock: start + at},
						Commit:  true,
						Costs:   []quantity.Units{cost},
						Buckets: []LimitTarget{{Target: Target{Key: "k", Terms: terms}}}})
			}
			var w Twin
			w.Open(start, Open{Generation: 1, Epoch: "1-e"})
			seen := decide(&w, 500, 400)
			if !seen.Answers[0].Admitted {
				t.Fatalf("the first 400: %+v", seen)
			}
			w.Flush()
			w.Open(start-4500, Open{Generation: 2, Epoch: "1-e", Lost: true, Seen: seen.Now})
			for at := quantity.StoreTime(-4500); at < test.opens; at += 50 {
				if d := decide(&w, at, 1); d.Answers[0].Admitted {
					t.Fatalf("at %d: admitted, although what was lost weighs until %d: %+v", at,
						test.opens, d)
				}
			}
			if test.refill > 0 {
				if d := decide(&w, test.opens.Add(test.refill)-1, 400); d.Answers[0].Admitted {
					t.Errorf("admitted a burst before there can be one: %+v", d)
				}
			}
			if d := decide(&w, test.opens.Add(test.refill), 400); !d.Answers[0].Admitted {
				t.Errorf("the first moment that the loss cannot have touched: %+v", d)
			}
		})
	}
}
