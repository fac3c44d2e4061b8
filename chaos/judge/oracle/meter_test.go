package oracle

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// verdictCase is a history and its expected verdict, all in one bucket and with exact clocks.
type verdictCase struct {
	name    string
	limit   Limit
	history func(n *answers, l Limit) []Answer
	max     int64 // MaxAdmitted
	over    int   // CellsOver
	proven  bool
	says    string // part of the first violation
}

func (c verdictCase) run(t *testing.T) {
	t.Run(c.name, func(t *testing.T) {
		v := record(c.limit, c.history(&answers{}, c.limit)).Verdict()
		if v.MaxAdmitted != c.max || v.CellsOver != c.over || v.Holds() != (c.over == 0) ||
			v.Proven() != c.proven || v.Misplaced != 0 {
			t.Fatalf("want at most %d, %d cells over, proven %v; got holds %v, proven %v, %+v",
				c.max, c.over, c.proven, v.Holds(), v.Proven(), v)
		}
		if c.over > 0 && (v.Violations[0].Excess != v.MaxExcess ||
			v.Violations[0].Certain != c.proven) {
			t.Errorf("violation %+v", v.Violations[0])
		}
		if c.says != "" && v.Violations[0].Text != c.says {
			t.Errorf("sentence\n got %s\nwant %s", v.Violations[0].Text, c.says)
		}
	})
}

// steps returns a history of known admissions, given as pairs of microseconds after the epoch and
// units, in two regions in turn.
func steps(pairs ...int64) func(*answers, Limit) []Answer {
	return func(n *answers, l Limit) []Answer {
		var history []Answer
		for i := 0; i < len(pairs); i += 2 {
			history = append(history, n.under(l, []string{"eu", "us"}[i/2%2], pairs[i], pairs[i+1],
				Admitted))
		}
		return history
	}
}

// doubted returns a history of one unknown outcome and known admissions as in steps.
func doubted(from, to, units int64, pairs ...int64) func(*answers, Limit) []Answer {
	return func(n *answers, l Limit) []Answer {
		return append(steps(pairs...)(n, l), n.lost("ap", from, to, units))
	}
}

const second = 1_000_000 // µs

func TestSlidingWindowCounterCeiling(t *testing.T) {
	l := ofKind("sliding_window_counter", 10, 0)
	tests := []verdictCase{
		{name: "full to the last unit", history: steps(1*second, 4, 2*second, 6), max: 10},
		{name: "one unit above", history: steps(1*second, 4, 2*second, 7), max: 11, over: 1,
			proven: true,
			says:   `bucket "orders/42", cell 180000000: the estimate reached 11 units on a limit of 10, 1 too many, at store time 1800000002000000 µs, with 11 units admitted in this cell and the one before (eu 4, us 7)`},
		{name: "together in one microsecond", history: steps(3*second, 5, 3*second, 6), max: 11,
			over: 1, proven: true},
		{name: "half of the cell before", history: steps(1*second, 10, 15*second, 5), max: 10},
		{name: "a microsecond before that half", history: steps(1*second, 10, 15*second-1, 5),
			max: 11, over: 1, proven: true,
			says: `bucket "orders/42", cell 180000001: the estimate reached 11 units on a limit of 10, 1 too many, at store time 1800000014999999 µs, with 15 units admitted in this cell and the one before (eu 10, us 5)`},
		{name: "a unit more than half", history: steps(1*second, 10, 15*second, 6), max: 11,
			over: 1, proven: true},
		{name: "all of the cell before, at the start of the next", history: steps(10*second-1, 10,
			10*second, 1), max: 11, over: 1, proven: true},
		{name: "the cell before still weighs at its last microsecond",
			history: steps(0, 10, 20*second-1, 10), max: 11, over: 1, proven: true},
		{name: "and no longer after it", history: steps(0, 10, 20*second, 10), max: 10},
		{name: "two cells before weigh nothing", history: steps(9*second, 10, 25*second, 10),
			max: 10},
		{name: "an admission later in the cell does not weigh before it",
			history: steps(1*second, 10, 19*second, 8, 11*second, 1), max: 10},
		{name: "an unknown in either of two cells: in the later",
			history: doubted(1*second, 12*second, 5, 15*second, 6), max: 11, over: 1,
			says: `bucket "orders/42", cell 180000001: the estimate reached 11 units on a limit of 10, 1 too many, at store time 1800000015000000 µs, with 11 units admitted in this cell and the one before, 5 of them of unknown outcome (ap 5, eu 6)`},
		{name: "an unknown in either of two cells: in the earlier",
			history: doubted(9*second, 12*second, 5, 9*second, 6), max: 11, over: 1},
		{name: "an unknown of the cell before", history: doubted(1*second, 12*second, 5, 25*second,
			8), max: 11, over: 1},
		{name: "an unknown of the cell before, with room", history: doubted(1*second, 12*second, 5,
			25*second, 7), max: 10},
		{name: "an unknown that has not begun", history: doubted(15*second, 16*second, 1, 14*second,
			10), max: 11, over: 1},
		{name: "an unknown of two cells before", history: doubted(1*second, 10*second-1, 10,
			20*second, 10), max: 10},
		{name: "large numbers, exact", limit: Limit{Algorithm: l.Algorithm, Limit: 1 << 51,
			Window: 366 * 24 * time.Hour}, history: func(n *answers, l Limit) []Answer {
			start := 57*l.Window.Microseconds() - epoch.UnixMicro()
			return []Answer{
				n.under(l, "eu", start-1, 1<<51, Admitted),
				n.under(l, "us", start+l.Window.Microseconds()/2, 1<<50+1, Admitted),
			}
		}, max: 1<<51 + 1, over: 1, proven: true},
	}
	for _, tt := range tests {
		if tt.limit.Limit == 0 {
			tt.limit = l
		}
		tt.run(t)
	}
}

func TestSlidingWindowLogCeiling(t *testing.T) {
	l := ofKind("sliding_window_log", 10, 0)
	tests := []verdictCase{
		{name: "full to the last unit", history: steps(1*second, 4, 2*second, 6), max: 10},
		{name: "one unit above", history: steps(1*second, 4, 2*second, 7), max: 11, over: 1,
			proven: true,
			says:   `bucket "orders/42", cell 1800000002: 11 units admitted in the interval of 10s that ends at store time 1800000002000000 µs, on a limit of 10, 1 too many (eu 4, us 7)`},
		{name: "together in one microsecond", history: steps(3*second, 5, 3*second, 6), max: 11,
			over: 1, proven: true},
		{name: "the last microsecond of an interval", history: steps(3*second, 10, 13*second-1, 1),
			max: 11, over: 1, proven: true},
		{name: "an admission leaves exactly a window later", history: steps(3*second, 10, 13*second,
			10), max: 10},
		{name: "only what is in the interval is named", history: steps(2*second, 3, 3*second, 7,
			12*second, 4), max: 11, over: 1, proven: true,
			says: `bucket "orders/42", cell 1800000012: 11 units admitted in the interval of 10s that ends at store time 1800000012000000 µs, on a limit of 10, 1 too many (eu 4, us 7)`},
		{name: "two cells of one interval are two violations",
			history: steps(3*second, 11, 4*second, 1), max: 12, over: 2, proven: true},
		{name: "an unknown as late as can be", history: doubted(0, 20*second, 1, 30*second-1, 10),
			max: 11, over: 1,
			says: `bucket "orders/42", cell 1800000029: 11 units admitted in the interval of 10s that ends at store time 1800000029999999 µs, on a limit of 10, 1 too many, 1 of them of unknown outcome (ap 1, eu 10)`},
		{name: "an unknown a window ago at least", history: doubted(0, 20*second, 1, 30*second, 10),
			max: 10},
		{name: "an unknown as early as can be", history: doubted(15*second-1, 20*second, 1,
			5*second, 10), max: 11, over: 1},
		{name: "an unknown a window later at least", history: doubted(15*second, 20*second, 1,
			5*second, 10), max: 10},
		{name: "large numbers, exact", limit: Limit{Algorithm: l.Algorithm, Limit: 1 << 51,
			Window: 366 * 24 * time.Hour},
			history: func(n *answers, l Limit) []Answer {
				w := l.Window.Microseconds()
				return steps(-w, 1<<51, 0, 1<<51, w-1, 1)(n, l)
			}, max: 1<<51 + 1, over: 1, proven: true},
	}
	for _, tt := range tests {
		if tt.limit.Limit == 0 {
			tt.limit = l
		}
		tt.run(t)
	}
}

// The two buckets are mirror images and differ only in their words.
func TestBucketCeilings(t *testing.T) {
	tests := []verdictCase{ // a unit a second and a burst of 3, unless it says otherwise
		{name: "the whole burst", history: steps(1*second, 1, 1*second, 2), max: 3},
		{name: "one unit above", history: steps(1*second, 1, 1*second, 3), max: 4, over: 1,
			proven: true,
			says:   `bucket "orders/42", cell 1800000001: the bucket of 3 tokens fell below zero by 1 at store time 1800000001000000 µs, after 4 units admitted since it was last full (eu 1, us 3)`},
		{name: "a unit comes back in a second", history: steps(0, 3, 1*second, 1), max: 3},
		{name: "and no microsecond before", history: steps(0, 3, 1*second-1, 1), max: 4, over: 1,
			proven: true},
		{name: "a microsecond's worth is one unit of excess", history: steps(0, 3, 2*second-1, 2),
			max: 4, over: 1, proven: true},
		{name: "no more than the burst is ever saved", history: steps(0, 3, 100*second, 3), max: 3},
		{name: "one more than ever is saved", history: steps(0, 3, 100*second, 4), max: 4, over: 1,
			proven: true,
			says:   `bucket "orders/42", cell 1800000100: the bucket of 3 tokens fell below zero by 1 at store time 1800000100000000 µs, after 4 units admitted since it was last full (us 4)`},
		{name: "only what came since it was full is named", history: steps(0, 3, 100*second, 3,
			101*second-1, 1), max: 4, over: 1, proven: true,
			says: `bucket "orders/42", cell 1800000100: the bucket of 3 tokens fell below zero by 1 at store time 1800000100999999 µs, after 4 units admitted since it was last full (eu 1, us 3)`},
		{name: "what is owed stays owed", history: steps(0, 5, 2*second, 1), max: 5, over: 2,
			proven: true},
		{name: "until it is paid back", history: steps(0, 5, 3*second, 1), max: 5, over: 1,
			proven: true},
		{name: "no remainder is lost", limit: ofKind("", 3, 3), history: steps(0, 3, 3_333_334, 1),
			max: 3},
		{name: "nor found", limit: ofKind("", 3, 3), history: steps(0, 3, 3_333_333, 1), max: 4,
			over: 1, proven: true},
		{name: "over many admissions", limit: ofKind("", 3, 2), history: steps(0, 2, 3_333_334, 1,
			6_666_667, 1, 10*second, 1), max: 2},
		{name: "over many admissions and less a microsecond", limit: ofKind("", 3, 2),
			history: steps(0, 2, 3_333_334, 1, 6_666_667, 1, 10*second-1, 1), max: 3, over: 1,
			proven: true},
		{name: "a burst beyond the limit", limit: ofKind("", 10, 100),
			history: steps(0, 100, 40*second, 41), max: 101, over: 1, proven: true},
		{name: "an unknown as late as can be", history: doubted(0, 10*second, 3, 11*second-1, 1),
			max: 4, over: 1,
			says: `bucket "orders/42", cell 1800000010: the bucket of 3 tokens fell below zero by 1 at store time 1800000010999999 µs, after 4 units admitted since it was last full, 3 of them of unknown outcome (ap 3, eu 1)`},
		{name: "an unknown drained since", history: doubted(0, 10*second, 3, 11*second, 1), max: 3},
		{name: "an unknown as early as can be", history: doubted(2*second-1, 9*second, 2, 0, 3),
			max: 4, over: 1},
		{name: "an unknown when there is room at once", history: doubted(2*second, 9*second, 2, 0,
			3), max: 3},
		{name: "large numbers, exact", limit: Limit{Limit: 1 << 51, Burst: 1 << 52,
			Window: 366 * 24 * time.Hour},
			history: func(n *answers, l Limit) []Answer {
				return steps(0, 1<<52, l.Window.Microseconds()/2, 1<<50, l.Window.Microseconds(),
					1<<50, l.Window.Microseconds()+1, 72)(n, l)
			}, max: 1<<52 + 1, over: 1, proven: true}, // 71.2 units come back in a microsecond
	}
	for _, kind := range []string{"token_bucket", "leaky_bucket"} {
		for _, tt := range tests {
			if tt.limit.Limit == 0 {
				tt.limit = ofKind("", 10, 3)
			}
			tt.limit.Algorithm = kind
			if kind == "leaky_bucket" {
				tt.says = ""
			}
			tt.name = kind + "/" + tt.name
			tt.run(t)
		}
	}
	verdictCase{
		name: "a queue's words", limit: ofKind("leaky_bucket", 10, 3), history: steps(0, 2,
			1*second, 3), max: 4, over: 1, proven: true,
		says: `bucket "orders/42", cell 900000000: the queue held 4 units on a burst of 3, 1 too many, at store time 1800000001000000 µs, of 5 units admitted since it was last empty (eu 2, us 3)`,
	}.run(t)
}

// TestARateChanges: a bucket of 3 drains by 10 in ten seconds, from 5 s on by 20, and from 6 s on by 10
// again. Filled up at 4 s, it has room for 1, 2 and 1 in the three seconds after that.
func TestARateChanges(t *testing.T) {
	l := ofKind("leaky_bucket", 10, 3)
	l.Rates = func() []Rate {
		return []Rate{{From: sec(5).UnixMicro(), Limit: 20}, {From: sec(6).UnixMicro(), Limit: 10}}
	}
	verdictCase{name: "full", limit: l, history: steps(4*second, 3, 5*second, 1, 6*second, 2, 7*second, 1), max: 3}.run(t)
	verdictCase{name: "above", limit: l, history: steps(4*second, 3, 5*second, 1, 6*second, 3, 8*second, 1), max: 4, over: 1, proven: true}.run(t)
	l.Rates = nil
	verdictCase{name: "at one rate", limit: l, history: steps(4*second, 3, 5*second, 1, 6*second, 2, 7*second, 1), max: 4, over: 1, proven: true}.run(t)
}

// TestABurstIsLowered: a bucket of 4 drains by 10 in ten seconds, and is one of 2 from 5 s on. What was
// left of it is left, and no more than 2.
func TestABurstIsLowered(t *testing.T) {
	l := ofKind("token_bucket", 10, 4)
	l.Rates = func() []Rate { return []Rate{{From: sec(5).UnixMicro(), Limit: 10, Burst: 2}} }
	verdictCase{name: "one a second", limit: l, history: steps(4*second, 4, 5*second, 1, 6*second, 1, 7*second, 1), max: 4}.run(t)
	l.Burst = 2 // the largest that is counted from then on
	l.Rates = func() []Rate {
		return []Rate{{From: sec(1).UnixMicro(), Limit: 10, Burst: 4}, {From: sec(5).UnixMicro(), Limit: 10, Burst: 2}}
	}
	verdictCase{name: "full again", limit: l, history: steps(9*second, 3), max: 3, over: 1, proven: true}.run(t)
}

func TestCellOf(t *testing.T) {
	tests := []struct {
		kind     string
		window   time.Duration
		at, want int64
	}{
		{"sliding_window_counter", 10 * time.Second, 10*second - 1, 0},
		{"sliding_window_counter", 10 * time.Second, 10 * second, 1},
		{"sliding_window_counter", 10 * time.Second, -1, -1},
		{"sliding_window_log", time.Minute, 6*second - 1, 0},
		{"sliding_window_log", time.Minute, 6 * second, 1},
		{"sliding_window_log", 5 * time.Second, 1 * second, 1},
		{"sliding_window_log", 1999 * time.Millisecond, 1_999_000, 1},
		{"sliding_window_log", 1999 * time.Millisecond, 1_998_999, 0},
		{"sliding_window_log", 500 * time.Millisecond, 499_999, 0},
		{"sliding_window_log", 500 * time.Millisecond, 500_000, 1},
		{"sliding_window_log", 10*time.Second + 3*time.Microsecond, 1*second + 0, 0},
		{"sliding_window_log", 10*time.Second + 3*time.Microsecond, 1*second + 1, 1},
		{"sliding_window_log", 10 * time.Second, -1, -1},
		{"token_bucket", time.Hour, 1*second - 1, 0},
		{"token_bucket", time.Hour, 1 * second, 1},
		{"leaky_bucket", time.Millisecond, -1, -1},
		{"leaky_bucket", time.Millisecond, 3 * second, 3},
	}
	for _, tt := range tests {
		l := Limit{Limit: 1, Window: tt.window, Algorithm: tt.kind}
		if got := l.CellOf(tt.at); got != tt.want {
			t.Errorf("%s of %v: %d µs lies in cell %d, want %d", tt.kind, tt.window, tt.at, got,
				tt.want)
		}
	}
}

// Nothing that a node may claim makes the judge fail.
func TestClaimsBeyondAllTime(t *testing.T) {
	for _, kind := range []string{"sliding_window_counter", "sliding_window_log", "token_bucket",
		"leaky_bucket"} {
		for _, window := range []time.Duration{time.Microsecond, math.MaxInt64 / 1000 * 1000} {
			t.Run(fmt.Sprintf("%s/%v", kind, window), func(t *testing.T) {
				l := Limit{Limit: 1, Window: window, Algorithm: kind}
				if algorithms[kind].burst {
					l.Burst = 1
				}
				var n answers
				j := New(l)
				for _, at := range []int64{math.MinInt64, math.MaxInt64, 0, math.MinInt64,
					math.MaxInt64} {
					a := n.under(l, "eu", 0, MaxCost, Admitted)
					a.At, a.Cell = at, l.CellOf(at)
					j.Record(a)
				}
				for range 3000 { // more than fits into 64 bits
					j.Record(n.under(l, "us", 0, MaxCost, Admitted))
				}
				v := j.Verdict()
				if v.Misplaced != 5 || v.MaxAdmitted != math.MaxInt64 ||
					!strings.Contains(v.Violations[0].Text, "us 9223372036854775807") {
					t.Errorf("%+v", v)
				}
				j.Summary() // must not fail
			})
		}
	}
}

// Many admissions of one microsecond and region take as little memory as one.
func TestAdmissionsAreMerged(t *testing.T) {
	l := ofKind("token_bucket", 10, 10)
	var n answers
	j := New(l)
	for i := range int64(50_000) {
		j.Record(n.under(l, "eu", i%3, 1, Admitted))
	}
	if kept := len(j.buckets["orders/42"].ceiling.(*timeline).spans); kept > 2*1024 {
		t.Errorf("%d spans kept of 3 microseconds", kept)
	}
	if v := j.Verdict(); v.MaxAdmitted != 50_000 {
		t.Errorf("verdict %+v", v)
	}
}
