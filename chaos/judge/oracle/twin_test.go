package oracle

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// metered are the kinds that have a meter.
var metered = []string{"leaky_bucket", "sliding_window_counter", "sliding_window_log",
	"token_bucket"}

// drawLimit draws a limit of a few microseconds, so that a twin can look at each of them.
func drawLimit(t *rapid.T, kinds ...string) Limit {
	l := Limit{
		Algorithm:  rapid.SampledFrom(kinds).Draw(t, "algorithm"),
		Limit:      rapid.Int64Range(1, 8).Draw(t, "limit"),
		Window:     time.Duration(rapid.Int64Range(1, 9).Draw(t, "window")) * time.Microsecond,
		ClockSlack: time.Duration(rapid.Int64Range(0, 1).Draw(t, "slack")) * time.Microsecond,
		Settle:     time.Hour, // drawn in any order
	}
	if algorithms[l.Algorithm].burst {
		l.Burst = rapid.Int64Range(1, 8).Draw(t, "burst")
	}
	return l
}

// drawTiny draws a history within a few microseconds of the epoch, where a cell of every kind
// begins, with up to three unknown outcomes.
func drawTiny(t *rapid.T, l Limit) []Answer {
	var n answers
	var history []Answer
	region := rapid.SampledFrom([]string{"ap", "eu", "us"})
	at, cost := rapid.Int64Range(-12, 12), rapid.Int64Range(0, 4)
	for range rapid.IntRange(0, 12).Draw(t, "known") {
		o := rapid.SampledFrom([]Outcome{Admitted, Admitted, Denied}).Draw(t, "outcome")
		history = append(history, n.under(l, region.Draw(t, "region"), at.Draw(t, "at"),
			cost.Draw(t, "cost"), o))
	}
	for range rapid.IntRange(0, 3).Draw(t, "unknown") {
		from := at.Draw(t, "from")
		history = append(history, n.lost(region.Draw(t, "region"), from,
			from+rapid.Int64Range(0, 2).Draw(t, "took"), cost.Draw(t, "cost")))
	}
	return rapid.Permutation(history).Draw(t, "order")
}

// use is units admitted at a time, in µs after the epoch.
type use struct{ at, units int64 }

// dumbLevel returns the bounded quantity at an instant (µs after the epoch), after all uses up to
// and at that instant, straight from the definition and rounded up to a unit. No use is before -30.
func dumbLevel(l Limit, uses []use, at int64) int64 {
	const begin = -30
	window := l.Window.Microseconds()
	used := func(from, to int64) (sum int64) { // from..to, inclusive
		for _, u := range uses {
			if from <= u.at && u.at <= min(to, at) {
				sum += u.units
			}
		}
		return sum
	}
	rest := (epoch.UnixMicro() + at) % window // position in the window
	start := at - rest
	switch l.Algorithm {
	case "fixed_window":
		return used(start, at)
	case "sliding_window_counter":
		return (used(start, at)*window + used(start-window, start-1)*(window-rest) + window - 1) /
			window
	case "sliding_window_log":
		return used(at-window+1, at)
	case "token_bucket":
		level := l.Burst * window
		for t := int64(begin); t <= at; t++ {
			level = min(l.Burst*window, level+l.Limit) - used(t, t)*window
		}
		return (l.Burst*window - level + window - 1) / window
	default:
		var backlog int64
		for t := int64(begin); t <= at; t++ {
			backlog = max(0, backlog-l.Limit) + used(t, t)*window
		}
		return (backlog + window - 1) / window
	}
}

// eachChoice calls visit with every possible outcome of the unknown requests: not admitted, or
// admitted at any microsecond of their interval.
func eachChoice(l Limit, unknown []Answer, uses []use, visit func([]use)) {
	if len(unknown) == 0 {
		visit(uses)
		return
	}
	a, slack := unknown[0], l.ClockSlack.Microseconds()
	eachChoice(l, unknown[1:], uses, visit)
	for at := a.Sent.Sub(epoch).Microseconds() - slack; at <= a.Seen.Sub(epoch).Microseconds()+
		slack; at++ {
		eachChoice(l, unknown[1:], append(uses[:len(uses):len(uses)], use{at, a.Cost}), visit)
	}
}

// The ceilings are compared with a twin that looks at every microsecond, for every possible outcome
// of the unknown requests.
func TestCeilingsAgainstTwin(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		l := drawLimit(t, metered...)
		history := drawTiny(t, l)
		const first, last = -16, 40
		var uses []use
		var unknown []Answer
		cells, begins, decided := map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
		for _, a := range history {
			at := a.Sent.Sub(epoch).Microseconds()
			switch a.Outcome {
			case Unknown:
				unknown = append(unknown, a)
				at -= l.ClockSlack.Microseconds()
			case Admitted:
				uses = append(uses, use{at, a.Cost})
				decided[at] = decided[at] || a.Cost > 0
			}
			cells[l.CellOf(epoch.UnixMicro()+at)] = true
			begins[at] = begins[at] || a.Outcome != Denied && a.Cost > 0
		}
		var worst, known [last - first]int64
		for at := range known {
			known[at] = dumbLevel(l, uses, int64(at+first))
		}
		eachChoice(l, unknown, uses, func(uses []use) {
			for at := range worst {
				worst[at] = max(worst[at], dumbLevel(l, uses, int64(at+first)))
			}
		})
		bound := l.Limit
		if l.Burst > 0 {
			bound = l.Burst
		}
		var most, maxKnown int64
		over, proven := map[int64]bool{}, map[int64]bool{}
		for i := range worst {
			at := int64(i + first)
			most, maxKnown = max(most, worst[i]), max(maxKnown, known[i])
			if cell := l.CellOf(epoch.UnixMicro() + at); begins[at] && worst[i] > bound {
				over[cell] = true
				if decided[at] && known[i] > bound {
					proven[cell] = true
				}
			}
		}
		v := record(l, history).Verdict()
		if v.MaxAdmitted != most || v.MaxKnown != maxKnown || v.MaxExcess != max(0, most-bound) ||
			v.Limit != bound {
			t.Fatalf("at most %d, known %d, bound %d by the twin; verdict %+v", most, maxKnown,
				bound, v)
		}
		if v.CellsChecked != len(cells) || v.CellsOver != len(over) ||
			v.CellsProvenOver != len(proven) {
			t.Fatalf("%d cells, %d over, %d proven by the twin; verdict %+v", len(cells), len(over),
				len(proven), v)
		}
		if v.Holds() != (most <= bound) || v.Proven() != (maxKnown > bound) || v.Misplaced != 0 {
			t.Fatalf("holds %v, proven %v: %+v", v.Holds(), v.Proven(), v)
		}
	})
}

// The judge finds no fault with the decisions of one limiter that has the whole limit.
func TestSingleLimiterIsBeyondReproach(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		l := drawLimit(t, append(metered, "fixed_window")...)
		bound := algorithms[l.Algorithm].bound(l)
		var n answers
		var uses []use
		var history []Answer
		at, admits := int64(-12), int64(0)
		region := "eu"
		for range rapid.IntRange(0, 30).Draw(t, "answers") {
			if step := rapid.Int64Range(0, 3).Draw(t, "step"); step > 0 {
				at += step // the limiter does not decide the order of regions within a microsecond
				region = rapid.SampledFrom([]string{"ap", "eu", "us"}).Draw(t, "region")
			}
			u := use{at, rapid.Int64Range(0, 5).Draw(t, "cost")}
			if dumbLevel(l, append(uses[:len(uses):len(uses)], u), at) > bound {
				history = append(history, n.under(l, region, at, u.units, Denied))
				continue
			}
			uses = append(uses, u)
			admits += u.units
			history = append(history, n.under(l, region, at, u.units, Admitted))
		}
		j := record(l, rapid.Permutation(history).Draw(t, "order"))
		if v := j.Verdict(); !v.Holds() {
			t.Fatalf("accused without cause: %+v", v)
		}
		var total Row
		for _, p := range j.Summary() {
			total = total.plus(p.Total)
		}
		if total.FalseDenials != 0 || total.PooledAdmits != admits {
			t.Fatalf("admitted %d: %+v", admits, total)
		}
	})
}

// The pool is compared with its definition, on random decisions of others. False denials lie
// between what is lost over the whole run and all that only the pool admits.
func TestPoolsAgainstTwin(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		l := drawLimit(t, metered...)
		l.ClockSlack = 0
		bound := algorithms[l.Algorithm].bound(l)
		var n answers
		var uses []use
		j := New(l)
		var pooled, ours, poolOnly int64
		for at := int64(-12); at < 20; at += rapid.Int64Range(1, 4).Draw(t, "step") {
			o := rapid.SampledFrom([]Outcome{Admitted, Denied}).Draw(t, "outcome")
			a := n.under(l, "eu", at, rapid.Int64Range(0, 5).Draw(t, "cost"), o)
			j.Record(a)
			ours += admitted(a)
			if with := append(uses[:len(uses):len(uses)], use{at, a.Cost}); dumbLevel(l, with,
				at) <= bound {
				uses = with
				pooled += a.Cost
				if o == Denied {
					poolOnly += a.Cost
				}
			}
		}
		total := j.Summary()[0].Total
		if total.PooledAdmits != pooled {
			t.Fatalf("the pool admits %d, the twin %d", total.PooledAdmits, pooled)
		}
		if total.FalseDenials < max(0, pooled-ours) || total.FalseDenials > poolOnly {
			t.Fatalf("%d false denials; the pool admits %d, ours %d, the pool alone %d",
				total.FalseDenials, pooled, ours, poolOnly)
		}
	})
}

func TestOrderOfRecordingDoesNotMatter(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		l := drawLimit(t, append(metered, "fixed_window")...)
		history := drawTiny(t, l)
		j := record(l, history)
		again := New(l)
		for _, a := range rapid.Permutation(history).Draw(t, "another order") {
			again.Record(a)
			again.Verdict() // a query must change nothing
		}
		if got, want := again.Verdict(), j.Verdict(); !reflect.DeepEqual(got, want) {
			t.Fatalf("verdict\n got %+v\nwant %+v", got, want)
		}
		if got, want := again.Summary(), j.Summary(); !reflect.DeepEqual(got, want) {
			t.Fatalf("summary\n got %+v\nwant %+v", got, want)
		}
	})
}

// One admission that no state allows is found whatever else is in the history.
func TestAdmissionAboveTheBoundIsFound(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		l := drawLimit(t, append(metered, "fixed_window")...)
		history := drawTiny(t, l)
		var n answers
		at := rapid.Int64Range(-12, 12).Draw(t, "at")
		bad := n.under(l, "mad", at, algorithms[l.Algorithm].bound(l)+1, Admitted)
		v := record(l, append(history, bad)).Verdict()
		if v.Holds() || v.CellsProvenOver == 0 || v.MaxExcess < 1 {
			t.Fatalf("not found: %+v", v)
		}
	})
}
