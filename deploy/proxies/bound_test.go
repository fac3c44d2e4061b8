package proxies

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// burstOf is what the recipes say may come at once of a limit.
func burstOf(k algorithms.Kind, limit, burst int64) int64 {
	switch {
	case k == algorithms.FixedWindow:
		return 2 * limit
	case k.Bucket():
		return burst
	}
	return limit
}

// leaky is limit_req of nginx 1.22 with nodelay, in its arithmetic: thousandths of requests.
type leaky struct {
	rate, burst  int64 // a second; both in thousandths
	excess, last int64
	begun        bool
}

// newLeaky returns limit_req as the recipe says to set it: of the rates that are no less than the
// limit's, as nginx rounds them down, the least.
func newLeaky(limit, burst int64) *leaky {
	perMinute, perSecond := limit, (limit+59)/60
	if limit%3 != 0 { // 1000/60 of it is not whole
		perMinute++
	}
	return &leaky{rate: min(perMinute*1000/60, perSecond*1000), burst: burst * 1000}
}

func (l *leaky) passes(ms int64) bool {
	if !l.begun {
		l.begun, l.last = true, ms
		return true
	}
	excess := max(l.excess-l.rate*(ms-l.last)/1000+1000, 0)
	if excess > l.burst {
		return false
	}
	l.excess, l.last = excess, ms
	return true
}

// rated is gpc0_rate of HAProxy 2.6, with the rule of the recipe: below most.
type rated struct {
	period, most          int64
	since, current, prior int64
	begun                 bool
}

func (r *rated) passes(ms int64) bool {
	if !r.begun {
		r.begun, r.since = true, ms
	}
	switch late := ms - r.since; {
	case late >= 2*r.period:
		r.since, r.prior, r.current = ms, 0, 0
	case late >= r.period:
		r.since, r.prior, r.current = r.since+r.period, r.current, 0
	}
	remains := r.period - (ms - r.since)
	if r.current+r.prior*remains/r.period >= r.most {
		return false
	}
	r.current++
	return true
}

// minute is the window of the limits, and the period of HAProxy's rates.
const minute = int64(time.Minute / time.Microsecond)

// TestBoundsDenyNobodyWithinTheLimit: whoever sends only what quotad alone would admit is denied
// nothing by the bounds of nginx and HAProxy, whatever the kind of the limit.
func TestBoundsDenyNobodyWithinTheLimit(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			suite.Check(t, func(t *rapid.T) {
				limit := rapid.Int64Range(1, 200).Draw(t, "limit")
				burst := rapid.Int64Range(1, 200).Draw(t, "burst")
				atOnce := burstOf(kind, limit, burst)
				nginx, haproxy := newLeaky(limit, atOnce), &rated{period: 60_000, most: atOnce + limit}
				admitted := 0
				for at := range admittedOf(t, kind, limit, burst) {
					if admitted++; !nginx.passes(at/1000) || !haproxy.passes(at/1000) {
						t.Fatalf("the bound denies request %d, which quotad admits", admitted)
					}
				}
			})
		})
	}
}

// TestBoundsDeny: the bounds are not more than they must be. With half of what comes at once, the
// same requests are denied.
func TestBoundsDeny(t *testing.T) {
	nginx, haproxy := newLeaky(100, 50), &rated{period: 60_000, most: 100}
	deniedBy := map[string]int{}
	for at := range 200 {
		if !nginx.passes(int64(at)) {
			deniedBy["nginx"]++
		}
		if !haproxy.passes(int64(at)) {
			deniedBy["haproxy"]++
		}
	}
	if fmt.Sprint(deniedBy) != "map[haproxy:100 nginx:149]" {
		t.Errorf("denied by %v", deniedBy)
	}
}

// admittedOf plays what a client sends, and yields when quotad admits it, in microseconds. Clients
// come in bursts, in a steady flow, or near the ends of windows.
func admittedOf(t *rapid.T, kind algorithms.Kind, limit, burst int64) func(func(int64) bool) {
	terms := algorithms.Terms{Kind: kind, Window: minute, Cell: algorithms.CellLength(kind, minute),
		Entitlement: quantity.Units(limit)}
	terms.Tick = algorithms.Tick(kind, quantity.Units(max(limit, burst)), minute)
	if kind.Bucket() {
		terms.Burst = quantity.Units(burst)
	}
	var store algorithms.Twin
	now := 1000*minute + rapid.Int64Range(0, minute-1).Draw(t, "start")
	store.Open(quantity.StoreTime(now), algorithms.Open{Generation: 1, Epoch: "e"})
	return func(yield func(int64) bool) {
		for range rapid.IntRange(1, 12).Draw(t, "turns") {
			switch rapid.IntRange(0, 2).Draw(t, "after") {
			case 0:
				now += rapid.Int64Range(0, 3*minute).Draw(t, "pause")
			case 1:
				now += minute - now%minute // the next window
			default:
				now += max(minute-now%minute-1000, 0) // the end of this one
			}
			gap := rapid.SampledFrom([]int64{0, 1000, minute / (2 * limit), minute / limit}).Draw(t, "gap")
			for range rapid.Int64Range(1, 3*max(limit, burst)).Draw(t, "requests") {
				d := store.Decide(quantity.StoreTime(now), algorithms.Decide{
					Fence:  algorithms.Fence{Generation: 1, Epoch: "e", Clock: quantity.StoreTime(now)},
					Commit: true, Costs: []quantity.Units{1}, Buckets: []algorithms.LimitTarget{{
						Target: algorithms.Target{Key: "b", Terms: terms}}}})
				if len(d.Answers) != 1 {
					t.Fatalf("not decided: %+v", d.Status)
				}
				if d.Answers[0].Admitted && !yield(now) {
					return
				}
				now = min(now+gap, math.MaxInt64/2)
			}
		}
	}
}
