//go:build !race

package allocator

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestHintEvery: an unchanged hint is repeated every few seconds, and believed for more than two
// such times.
func TestHintEvery(t *testing.T) {
	for cell, want := range map[int64]int64{1: 2_000_000, 1_000_000: 2_000_000,
		6_000_000: 3_000_000, 10_000_000: 4_500_000, 86_400_000_000: 4_500_000} {
		if got := HintEvery(cell); got != want || HintLife(cell) != 5*want/2 {
			t.Errorf("cells of %d us: every %d us, believed for %d", cell, got, HintLife(cell))
		}
	}
	if HintLife(0) < maxHintEvery+2*Interval {
		t.Errorf("a mate's hint, which may be believed for the shortest time, is forgotten before the next")
	}
}

func TestTimesOfAsks(t *testing.T) {
	const trip = 80_000
	if Grace(trip) != 280_000 || Patience(trip) != 160_000 {
		t.Errorf("grace %d, patience %d", Grace(trip), Patience(trip))
	}
	for opens, want := range map[int64]int64{0: 360_000, 1: 559_999, 360_000: 200_000, 560_000: 0,
		Second: 0} {
		if got := AskWithin(trip, opens); got != want {
			t.Errorf("a cell that opens in %d us: asked for within %d, want %d", opens, got, want)
		}
	}
	for _, k := range algorithms.Kinds {
		f, want := FrameOf(k, 60*Second, 10*Second), int64(560_000)
		if k == algorithms.LeakyBucket {
			want = 10 * Second
		}
		if got := f.Lead(trip); got != want {
			t.Errorf("%s: asked for %d us before the cell opens, want %d", k, got, want)
		}
	}
	if got := FrameOf(algorithms.LeakyBucket, Second,
		Second).Lead(10 * Second); got != 2*Grace(10*Second) {
		t.Errorf("a queue whose peers are far: %d", got)
	}
}

func TestPauses(t *testing.T) {
	for _, c := range []struct{ window, pause, long int64 }{
		{1, 20_000, 20_000}, {Second, 20_000, 100_000}, {5 * Second, 100_000, 500_000},
		{10 * Second, 200_000, Second}, {60 * Second, 200_000, Second}, {300_000, 20_000, 30_000},
	} {
		f := Frame{Window: c.window, Cell: c.window}
		if f.Pause() != c.pause || f.LongPause() != c.long {
			t.Errorf("window of %d us: %d and %d, want %d and %d", c.window, f.Pause(),
				f.LongPause(), c.pause, c.long)
		}
	}
	suite.Check(t, func(r *rapid.T) {
		f := Frame{Window: rapid.Int64Range(1, 1<<51).Draw(r, "window")}
		if p, long := f.Pause(), f.LongPause(); p < Interval/10 || p > Interval || long < p ||
			long > MaxRetry {
			r.Fatalf("window of %d us: %d and %d", f.Window, p, long)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	fading := Outlook{Fading: 500, Ahead: Second, Rate: 250_000} // a unit comes free each 4 ms
	for name, c := range map[string]struct {
		f    Frame
		e    Emptied
		want int64
	}{
		"the cell ends soon": {FrameOf(algorithms.FixedWindow, Second, Second),
			Emptied{Left: 300_000}, 300_000},
		"it ends at once": {FrameOf(algorithms.FixedWindow, Second, Second),
			Emptied{Left: 1}, Interval / 2},
		"it keeps some": {FrameOf(algorithms.FixedWindow, Second, Second),
			Emptied{Left: 900_000, Keeps: true}, 300_000},
		"it ends later than anyone waits": {FrameOf(algorithms.FixedWindow, 9*Second, 9*Second),
			Emptied{Left: 5 * Second}, MaxRetry},
		"a long cell": {FrameOf(algorithms.FixedWindow, LongCell, LongCell),
			Emptied{Left: 5 * Second}, Interval},
		"a bucket": {FrameOf(algorithms.TokenBucket, 5*Second, Second),
			Emptied{Left: 1}, 100_000},
		"a queue": {FrameOf(algorithms.LeakyBucket, 60*Second, LongCell),
			Emptied{Left: 1}, Interval},
		"use fades": {FrameOf(algorithms.SlidingWindowCounter, Second, Second),
			Emptied{Limit: 5000, Outlook: fading}, 40_000},
		"use fades quickly": {FrameOf(algorithms.SlidingWindowCounter, Second, Second),
			Emptied{Limit: 500, Outlook: fading}, 20_000},
		"use fades slowly": {FrameOf(algorithms.SlidingWindowLog, Second, Second/10),
			Emptied{Limit: 50_000, Outlook: fading}, 100_000},
		"nothing is known of the cell": {FrameOf(algorithms.SlidingWindowLog, Second, Second/10),
			Emptied{Limit: 500, Outlook: fading, Unseen: true}, 100_000},
	} {
		if got := c.f.RetryAfter(c.e); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestALenderAsksForNoLongPause: whatever a lender knows, it asks to be left alone for more than 0
// and at most MaxRetry.
func TestALenderAsksForNoLongPause(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		units, time := rapid.Int64Range(0, maxUnits), rapid.Int64Range(1, 1<<51)
		f := FrameOf(rapid.SampledFrom(algorithms.Kinds).Draw(r, "kind"), time.Draw(r, "window"),
			time.Draw(r, "cell"))
		e := Emptied{Limit: quantity.Units(units.Draw(r, "limit")),
			Unseen: rapid.Bool().Draw(r, "unseen"), Keeps: rapid.Bool().Draw(r, "keeps"),
			Left: rapid.Int64Range(-1<<51, 1<<51).Draw(r, "left"),
			Outlook: Outlook{Used: quantity.Units(units.Draw(r, "used")),
				Fading: quantity.Units(units.Draw(r, "fading")),
				Rate:   quantity.MilliRate(units.Draw(r, "rate")), Ahead: time.Draw(r, "ahead")}}
		if got := f.RetryAfter(e); got <= 0 || got > MaxRetry {
			r.Fatalf("%+v, %+v: %d", f, e, got)
		}
	})
}
