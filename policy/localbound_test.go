//go:build !race

package policy

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// tokenBucket is a proxy's bucket, by the meaning of a [LocalBound].
type tokenBucket struct {
	LocalBound
	left float64
	at   time.Duration
}

// take takes a token, and reports whether there was one.
func (b *tokenBucket) take(at time.Duration) bool {
	per := float64(b.TokensPerFill) / float64(b.FillInterval)
	b.left = min(float64(b.Tokens), b.left+float64(at-b.at)*per)
	b.at = at
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// asked is when a request is decided, and for how long it waited for that.
type asked struct{ at, waited time.Duration }

// drawAsked draws requests of a client who does not mind its limit. Some come at once, and some
// around the ends of windows. Of those that wait, some wait as long as makes them arrive together.
func drawAsked(t *rapid.T, l *Limit, wait time.Duration) (all []asked) {
	together := wait > 0 && rapid.Bool().Draw(t, "together")
	at := rapid.Int64Range(0, 3*int64(l.Window)).Draw(t, "begin")
	for range rapid.IntRange(1, 12).Draw(t, "groups") {
		switch rapid.IntRange(0, 2).Draw(t, "pause") {
		case 0: // to just before or after the end of a window
			at += int64(l.Window) - at%int64(l.Window) + rapid.Int64Range(-2, 2).Draw(t, "beside")*1e6
		case 1:
			at += rapid.Int64Range(0, 2*int64(l.Window)).Draw(t, "long")
		case 2:
			at += rapid.Int64Range(0, 1+int64(l.Window)/int64(l.Limit)).Draw(t, "short")
		}
		for range rapid.Int64Range(1, 3*int64(max(l.Limit, l.Burst))).Draw(t, "requests") {
			waited := rapid.SampledFrom([]int64{0, 0, int64(wait) / 3, int64(wait)}).Draw(t, "waited")
			if together {
				waited = at % int64(wait)
			}
			all = append(all, asked{time.Duration(at), time.Duration(waited)})
		}
	}
	return all
}

// admitted returns those of requests that quotad admits, by one region that has all of the limit.
func admitted(l *Limit, all []asked) (those []asked) {
	terms := algorithms.Terms{Kind: l.Algorithm, Entitlement: l.Limit, Burst: l.Burst,
		Window: l.Window.Microseconds(),
		Cell:   algorithms.CellLength(l.Algorithm, l.Window.Microseconds()),
		Tick:   algorithms.Tick(l.Algorithm, l.Largest(), l.Window.Microseconds())}
	const begin = quantity.StoreTime(1_200_000_000) // where a window of each length begins
	var store algorithms.Twin
	store.Open(begin, algorithms.Open{Generation: 1, Region: "eu", Epoch: "1-e"})
	for _, a := range all {
		now := begin.Add(a.at.Microseconds())
		d := store.Decide(now, algorithms.Decide{Fence: algorithms.Fence{Generation: store.Generation,
			Epoch: "1-e", Clock: now}, Commit: true, Costs: []quantity.Units{1},
			Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: "k", Terms: terms}}}})
		if d.Answers[0].Admitted {
			those = append(those, a)
		}
	}
	return those
}

// drawLimit draws a limit of which a test can ask for all.
func drawLimit(t *rapid.T) *Limit {
	l := &Limit{Algorithm: rapid.SampledFrom(algorithms.Kinds).Draw(t, "algorithm"),
		Limit:  quantity.Units(rapid.Int64Range(1, 30).Draw(t, "limit")),
		Window: rapid.SampledFrom([]time.Duration{10, 300, 1000, 60_000}).Draw(t, "window") * time.Millisecond}
	if l.Algorithm.Bucket() {
		l.Burst = quantity.Units(rapid.Int64Range(1, 40).Draw(t, "burst"))
	}
	return l
}

// A proxy's bucket has a token for every request that quotad admits, however long it waits for its
// decision.
func TestLocalBoundAdmitsWhatQuotadAdmits(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		wait := rapid.SampledFrom([]time.Duration{0, 50 * time.Millisecond, time.Second}).Draw(t, "wait")
		bound, ok := l.LocalBound(wait)
		if !ok {
			t.Fatal("it has no bound")
		}
		all := drawAsked(t, l, wait)
		slices.SortStableFunc(all, func(a, b asked) int { return cmp.Compare(a.at, b.at) })
		passed := admitted(l, all)
		slices.SortStableFunc(passed, func(a, b asked) int {
			return cmp.Compare(a.at-a.waited, b.at-b.waited)
		})
		begin := passed[0].at - passed[0].waited
		bucket := tokenBucket{bound, float64(bound.Tokens), begin}
		for i, a := range passed {
			if !bucket.take(a.at - a.waited) {
				t.Fatalf("%+v of %s %d of %v, burst %d, has no token for the request %d of %d at %v", bound,
					l.Algorithm, l.Limit, l.Window, l.Burst, i, len(passed), a.at)
			}
		}
	})
}

// A smaller bucket would deny some of that: for each kind, a burst, and then the next one as soon as
// there is one.
func TestLocalBoundIsNoLarger(t *testing.T) {
	for _, c := range []struct {
		algorithm Algorithm
		burst     quantity.Units
		bursts    [2]time.Duration // when quotad admits 10 and then as many again
	}{
		{FixedWindow, 0, [2]time.Duration{time.Minute - time.Microsecond, time.Minute}},
		{SlidingWindowCounter, 0, [2]time.Duration{0, 2 * time.Minute}},
		{SlidingWindowLog, 0, [2]time.Duration{0, time.Minute}},
		{TokenBucket, 10, [2]time.Duration{0, time.Minute}},
		{LeakyBucket, 10, [2]time.Duration{0, time.Minute}},
	} {
		l := &Limit{Algorithm: c.algorithm, Limit: 10, Window: time.Minute, Burst: c.burst}
		var all []asked
		for _, at := range c.bursts {
			all = append(all, slices.Repeat([]asked{{at: at}}, 10)...)
		}
		if got := admitted(l, all); len(got) != len(all) {
			t.Errorf("%s: quotad admits %d of %d", c.algorithm, len(got), len(all))
		}
		bound, _ := l.LocalBound(0)
		bound.Tokens -= 2 // one is for rounding
		bucket, denied := tokenBucket{bound, float64(bound.Tokens), 0}, 0
		for _, a := range all {
			if !bucket.take(a.at) {
				denied++
			}
		}
		if denied == 0 {
			t.Errorf("%s: %+v admits it all", c.algorithm, bound)
		}
	}
}

// The numbers of a proxy are whole and bounded. Where they are not exact, more comes, and not less.
func TestLocalBoundIsRefilledInTime(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		l := &Limit{Algorithm: FixedWindow, Limit: quantity.Units(rapid.Int64Range(1, 1<<45).Draw(t, "limit")),
			Window: time.Duration(rapid.Int64Range(int64(MinWindow/time.Microsecond),
				int64(MaxWindow/time.Microsecond)).Draw(t, "window")) * time.Microsecond}
		b, _ := l.LocalBound(time.Second)
		if b.FillInterval < minFillInterval || b.FillInterval%time.Millisecond != 0 || b.TokensPerFill == 0 {
			t.Fatalf("%+v is no bucket of Envoy's", b)
		}
		most := math.MaxUint32 / 2 / float64(minFillInterval) // more than anybody asks
		is, want := float64(b.TokensPerFill)/float64(b.FillInterval), float64(l.Limit)/float64(l.Window)
		if is < min(want, most)*(1-1e-9) || is > 1.03*want+2/float64(b.FillInterval) {
			t.Fatalf("%d in %v: %+v", l.Limit, l.Window, b)
		}
	})
}

// What denies nothing by itself, or says that everything passes without a store, has no bound; what
// counts by the calendar has one for its shortest window.
func TestLocalBoundOfADocument(t *testing.T) {
	d := mustParse(t, `version: 1
regions: {eu: {weight: 1}, us: {weight: 2}}
limits:
- {name: page, domain: web, key: [k], algorithm: sliding_window_counter, limit: 1000, window: 1m}
- {name: month, domain: web, key: [k], algorithm: fixed_window, limit: 3000, window: month}
- {name: pace, domain: web, key: [k], algorithm: token_bucket, limit: 100, window: 10ms, burst: 7}
- {name: tried, domain: web, key: [k], algorithm: fixed_window, limit: 10, window: 1m, shadow: true}
- {name: one-of, domain: web, key: [k], algorithm: fixed_window, limit: 10, window: 1m, alternative: true}
- {name: open, domain: web, key: [k], algorithm: fixed_window, limit: 10, window: 1m, on_store_failure: allow}
`)
	want := map[string]LocalBound{"page": {1018, 1000, time.Minute},
		"month": {6002, 3000, (28*24 - 1) * time.Hour}, "pace": {10_008, 500, 50 * time.Millisecond}}
	for _, l := range d.Limits {
		if b, ok := l.LocalBound(time.Second); b != want[l.Name] || ok != (b.Tokens > 0) {
			t.Errorf("%s: %+v, %v", l.Name, b, ok)
		}
	}
}
