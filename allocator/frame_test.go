//go:build !race

package allocator

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

func frameOf(k algorithms.Kind, window int64) Frame {
	return FrameOf(k, window, algorithms.CellLength(k, window))
}

func TestFaded(t *testing.T) {
	for _, c := range []struct {
		kind   algorithms.Kind
		window int64
		used   quantity.Units
		want   quantity.Units
	}{
		{algorithms.FixedWindow, Second, 100, 0},
		{algorithms.SlidingWindowCounter, Second, 100, 100},
		{algorithms.SlidingWindowLog, 10 * Second, 100, 10},
		{algorithms.SlidingWindowLog, 10 * Second, 9, 0},
		{algorithms.SlidingWindowLog, Second, 100, 100}, // its cell is the window
		{algorithms.TokenBucket, Second, 100, 0},
		{algorithms.LeakyBucket, Second, 100, 0},
	} {
		if got := frameOf(c.kind, c.window).Faded(c.used); got != c.want {
			t.Errorf("%s of %d us: of %d fade %d, want %d", c.kind, c.window, c.used, got, c.want)
		}
	}
	suite.Check(t, func(r *rapid.T) {
		f := frameOf(rapid.SampledFrom(algorithms.Kinds).Draw(r, "kind"),
			rapid.Int64Range(1, 366*86400*Second).Draw(r, "window"))
		used := quantity.Units(rapid.Int64Range(0, algorithms.MaxUnits).Draw(r, "used"))
		if got := f.Faded(used); got < 0 || got > used || got > 0 && !f.Sliding {
			r.Fatalf("%+v: of %d fade %d", f, used, got)
		}
	})
}

func TestRoll(t *testing.T) {
	seen := algorithms.State{Cell: 5, Used: 60, Fading: 20, Share: 90, NextShare: 70,
		Entitlement: 50, Free: 30, Shut: 9}
	for name, c := range map[string]struct {
		kind algorithms.Kind
		cell quantity.Cell
		want algorithms.State
	}{
		"the cell it was seen in": {algorithms.FixedWindow, 5, seen},
		"an earlier cell":         {algorithms.FixedWindow, 4, seen},
		"fixed window, the next cell": {algorithms.FixedWindow, 6,
			algorithms.State{Cell: 6, Entitlement: 40, Share: 70, NextShare: 40, Free: 70,
				Shut: 9}},
		"fixed window, the one after": {algorithms.FixedWindow, 7,
			algorithms.State{Cell: 7, Entitlement: 40, Share: 40, NextShare: 40, Free: 40,
				Shut: 9}},
		"counter, the next cell": {algorithms.SlidingWindowCounter, 6,
			algorithms.State{Cell: 6, Entitlement: 40, Used: 40, Fading: 40, Share: 70,
				NextShare: 40, Free: 30, Shut: 9}},
		"log, the next cell": {algorithms.SlidingWindowLog, 6,
			algorithms.State{Cell: 6, Entitlement: 40, Used: 40, Fading: 4, Share: 70,
				NextShare: 40, Free: 30, Shut: 9}},
		"log, the one after": {algorithms.SlidingWindowLog, 7,
			algorithms.State{Cell: 7, Entitlement: 40, Share: 40, NextShare: 40, Free: 40,
				Shut: 9}},
		"bucket, the next cell": {algorithms.TokenBucket, 6,
			algorithms.State{Cell: 6, Entitlement: 40, Used: 60, Share: 70, NextShare: 40, Free: 30,
				Shut: 9}},
		"bucket, much later": {algorithms.LeakyBucket, 60,
			algorithms.State{Cell: 60, Entitlement: 40, Used: 60, Share: 40, NextShare: 40,
				Free: 30, Shut: 9}},
	} {
		if got := frameOf(c.kind, 10*Second).Roll(seen, c.cell, 40); got != c.want {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, c.want)
		}
	}
}

func TestOutlook(t *testing.T) {
	s := algorithms.State{Used: 60, Fading: 20, Share: 70, Free: 10}
	for name, c := range map[string]struct {
		kind  algorithms.Kind
		cell  quantity.Cell
		at    quantity.StoreTime // of cells of a second
		rate  quantity.MilliRate
		want  Outlook
		opens int64
	}{
		"the open cell": {algorithms.FixedWindow, 100, 100_250_000, 40_000,
			Outlook{Used: 60, Fading: 20, Rate: 40_000, Ahead: 750_000}, 0},
		"the next cell": {algorithms.FixedWindow, 101, 100_250_000, 40_000,
			Outlook{Rate: 40_000, Ahead: Second}, 750_000},
		"counter, the next cell": {algorithms.SlidingWindowCounter, 101, 100_250_000, 20_000,
			Outlook{Used: 55, Fading: 55, Rate: 20_000, Ahead: Second}, 750_000},
		"counter, no more than the share is admitted": {algorithms.SlidingWindowCounter, 101,
			100_250_000, 200_000,
			Outlook{Used: 70, Fading: 70, Rate: 200_000, Ahead: Second}, 750_000},
		"bucket, the open cell": {algorithms.TokenBucket, 100, 100_250_000, 40_000,
			Outlook{Rate: 40_000, Ahead: Second, Steady: true, Stock: 10}, 0},
		"bucket, the next cell": {algorithms.TokenBucket, 101, 100_250_000, 40_000,
			Outlook{Rate: 40_000, Ahead: Second, Steady: true, Stock: 10}, 750_000},
	} {
		got, opens := FrameOf(c.kind, Second, Second).Outlook(s, c.cell, c.at, c.rate)
		if got != c.want || opens != c.opens {
			t.Errorf("%s: %+v in %d, want %+v in %d", name, got, opens, c.want, c.opens)
		}
	}
}

// TestRollComesTrue: if no request comes, the state that Roll predicts for the next cell is the one
// that the store's twin shows when that cell opens.
func TestRollComesTrue(t *testing.T) {
	for _, k := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter} {
		suite.Check(t, func(r *rapid.T) {
			const window = 10 * Second
			terms := algorithms.Terms{Kind: k, Window: window, Cell: window,
				Tick: algorithms.Tick(k, 100, window), Entitlement: 100}
			at := quantity.StoreTime(1000*window + rapid.Int64Range(0, window-1).Draw(r, "at"))
			w := &algorithms.Twin{}
			w.Open(1, algorithms.Open{Generation: 1, Region: "us"})
			seen := useTwin(r, w, terms, at,
				quantity.Units(rapid.Int64Range(1, 100).Draw(r, "used")))
			next := useTwin(r, w, terms, 1001*window, 0)
			if got := frameOf(k, window).Roll(seen, 1001, 100); got.Used != next.Used ||
				got.Fading != next.Fading ||
				got.Share != next.Share || got.Free != next.Free {
				r.Fatalf("%s: rolled %+v, the store shows %+v", k, got, next)
			}
		})
	}
}

// useTwin returns the state that a store shows at a time, after the given units of a bucket were
// used.
func useTwin(r *rapid.T, w *algorithms.Twin, terms algorithms.Terms, at quantity.StoreTime,
	units quantity.Units) algorithms.State {
	fence := algorithms.Fence{Generation: 1, Clock: at}
	bucket := algorithms.Target{Key: "b", Terms: terms}
	if units > 0 {
		out := w.Decide(at, algorithms.Decide{Fence: fence, Commit: true,
			Buckets: []algorithms.LimitTarget{{Target: bucket}}, Costs: []quantity.Units{units}})
		if out.Status != algorithms.StatusOK || !out.Answers[0].Admitted {
			r.Fatalf("%d units are denied: %+v", units, out)
		}
	}
	out := w.Inspect(at, algorithms.Inspect{Fence: fence, Target: bucket})
	if out.Status != algorithms.StatusOK {
		r.Fatalf("%+v", out)
	}
	return out.State
}

func TestPeerNeeds(t *testing.T) {
	for _, c := range []struct {
		kind   algorithms.Kind
		capped quantity.MilliRate
		same   bool
		want   quantity.Units
	}{
		{algorithms.FixedWindow, 0, true, 77}, {algorithms.FixedWindow, 0, false, 40},
		{algorithms.FixedWindow, 1_500, true, 77}, {algorithms.FixedWindow, 1_500, false, 55}, {algorithms.FixedWindow, 9_000, false, 60},
		{algorithms.SlidingWindowCounter, 0, false, 77},
		{algorithms.SlidingWindowLog, 0, false, 77}, {algorithms.TokenBucket, 0, true, 400},
		{algorithms.LeakyBucket, 0, false, 400},
	} {
		if got := FrameOf(c.kind, 100*Second, 10*Second).PeerNeeds(77, 4_000, c.capped, 20,
			c.same); got != c.want {
			t.Errorf("%s, same cell %t: %d, want %d", c.kind, c.same, got, c.want)
		}
	}
}
