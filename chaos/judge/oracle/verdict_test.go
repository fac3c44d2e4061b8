package oracle

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestVerdictOfOneCell(t *testing.T) {
	var n answers
	tests := []struct {
		name    string
		history []Answer
		holds   bool
		proven  bool
		max     int64
		over    int
		first   string
	}{
		{
			name: "full to the last unit",
			history: []Answer{n.at("eu", sec(1), 6, Admitted), n.at("us", sec(2), 4, Admitted),
				n.at("us", sec(3), 5, Denied)},
			holds: true, max: 10,
		},
		{
			name:    "one unit above, over two regions",
			history: []Answer{n.at("us", sec(1), 5, Admitted), n.at("eu", sec(2), 6, Admitted)},
			proven:  true, max: 11, over: 1,
			first: `bucket "orders/42", cell 30000000: 11 units admitted on a limit of 10, 1 too many (eu 6, us 5)`,
		},
		{
			name: "the next cell has its own limit",
			history: []Answer{n.at("us", sec(59.9), 10, Admitted),
				n.at("eu", sec(60), 10, Admitted)},
			holds: true, max: 10,
		},
		{
			name:    "an unknown outcome counts as admitted, without certainty",
			history: []Answer{n.at("us", sec(30), 10, Admitted), n.at("eu", sec(31), 2, Unknown)},
			max:     12, over: 1,
			first: `bucket "orders/42", cell 30000000: 12 units admitted on a limit of 10, 2 too many, 2 of them of unknown outcome (eu 2, us 10)`,
		},
		{
			name: "an unknown outcome near the edge counts in both cells",
			history: []Answer{
				n.at("us", sec(10), 10, Admitted), n.at("us", sec(70), 10, Admitted),
				n.at("eu", sec(59.95), 1, Unknown),
			},
			max: 11, over: 2,
		},
		{name: "nothing at all", holds: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := New(fixed(10))
			for _, a := range tt.history {
				j.Record(a)
			}
			v := j.Verdict()
			if v.Holds() != tt.holds || v.Proven() != tt.proven || v.MaxAdmitted != tt.max ||
				v.CellsOver != tt.over {
				t.Errorf("holds %v, proven %v, verdict %+v", v.Holds(), v.Proven(), v)
			}
			if tt.first != "" && v.Violations[0].String() != tt.first {
				t.Errorf("sentence\n got %s\nwant %s", v.Violations[0], tt.first)
			}
		})
	}
}

func TestDishonestAnswersFailTheVerdict(t *testing.T) {
	tests := []struct {
		name string
		bend func(a *Answer)
		says string // "" if the answer is honest
	}{
		{"as it is", func(*Answer) {}, ""},
		{"a clock ahead within the slack", func(a *Answer) { a.At = sec(30.1).UnixMicro() }, ""},
		{"a clock behind within the slack", func(a *Answer) { a.At = sec(29.9).UnixMicro() }, ""},
		{"decided any time while waiting", func(a *Answer) {
			a.Seen = sec(40)
			a.At = sec(39).UnixMicro()
		}, ""},
		{"a clock ahead", func(a *Answer) { a.At = sec(30.2).UnixMicro() },
			"100000 µs after it can have been decided"},
		{"a clock behind", func(a *Answer) { a.At = sec(29.8).UnixMicro() },
			"100000 µs before it can have been decided"},
		{"the next cell's label", func(a *Answer) { a.Cell++ }, "claims cell 30000001"},
		{"label and time agree on a lie", func(a *Answer) {
			a.Cell++
			a.At += 60_000_000
		}, "after it can have been decided"},
		{"time as small as can be", func(a *Answer) {
			a.At = math.MinInt64
			a.Cell = windowOf(fixed(1), a.At)
		}, "9223372036854775807 µs before"},
		{"a denial may not lie either", func(a *Answer) {
			a.Outcome = Denied
			a.Cell--
		}, "claims cell 29999999"},
		{"a negative cost", func(a *Answer) { a.Cost = -5 }, "cost of -5"},
		{"a cost beyond all numbers", func(a *Answer) { a.Cost = math.MaxInt64 },
			"outside 0 to 4503599627370496"},
		{"seen before sent", func(a *Answer) { a.Seen = sec(29) }, "seen 1s before it was sent"},
		{"never seen", func(a *Answer) { a.Seen = time.Time{} }, "does not say when"},
		{"no such outcome", func(a *Answer) { a.Outcome = 7 }, "outcome(7)"},
		{"unknown for ever", func(a *Answer) {
			a.Outcome = Unknown
			a.Seen = sec(1e7)
		}, "more than 65536 windows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var n answers
			a := n.at("eu", sec(30), 1, Admitted)
			tt.bend(&a)
			j := New(fixed(10))
			j.Record(a)
			v := j.Verdict()
			if tt.says == "" {
				if !v.Holds() {
					t.Fatalf("an honest answer was accused: %v", v.Violations)
				}
				return
			}
			if v.Misplaced != 1 || v.Holds() || !v.Proven() || len(v.Violations) != 1 {
				t.Fatalf("not found: %+v", v)
			}
			if !strings.Contains(v.Violations[0].Text, tt.says) {
				t.Errorf("%q does not say %q", v.Violations[0].Text, tt.says)
			}
			j.Summary() // must not fail
		})
	}
}

func TestWindowOf(t *testing.T) {
	tests := []struct{ at, want int64 }{
		{0, 0}, {59_999_999, 0}, {60_000_000, 1}, {-1, -1}, {-60_000_000, -1}, {-60_000_001, -2},
	}
	for _, tt := range tests {
		if got := windowOf(fixed(1), tt.at); got != tt.want {
			t.Errorf("%d µs lies in window %d, want %d", tt.at, got, tt.want)
		}
	}
}

func TestDuplicateSequenceNumbers(t *testing.T) {
	var n answers
	j := New(fixed(10))
	first := n.at("eu", sec(1), 1, Admitted)
	again := first
	again.Outcome, again.Bucket = Denied, "orders/43" // the number is the node's, not the bucket's
	mate := first
	mate.Node = "eu-2"
	unknown := first
	unknown.Outcome = Unknown // carries no number
	for _, a := range []Answer{first, mate, unknown} {
		j.Record(a)
	}
	if v := j.Verdict(); !v.Holds() {
		t.Fatalf("accused without cause: %v", v.Violations)
	}
	j.Record(again)
	if v := j.Verdict(); v.Duplicates != 1 || !v.Proven() {
		t.Fatalf("duplicate not found: %+v", v)
	}
}

func TestViolationsAreBoundedAndWorstFirst(t *testing.T) {
	var n answers
	j := New(fixed(10))
	for i := range 100 {
		a := n.at("eu", sec(float64(60*i)), int64(11+i), Admitted)
		j.Record(a)
		a.Cell += 1000
		j.Record(a) // a duplicate, and misplaced
	}
	v := j.Verdict()
	if v.CellsOver != 200 || v.Misplaced != 100 || v.Duplicates != 100 {
		t.Errorf("counts: %+v", v)
	}
	if len(v.Violations) != 2*maxKept || v.Violations[0].Excess != 100 || v.MaxExcess != 100 {
		t.Errorf("%d violations, first %+v", len(v.Violations), v.Violations[0])
	}
}

// The verdict must not depend on the order of recording, nor on who records.
func TestVerdictUnderConcurrentRecording(t *testing.T) {
	var n answers
	j := New(fixed(1000))
	var wg sync.WaitGroup
	for _, region := range []string{"ap", "eu", "us"} {
		batch := make([]Answer, 400)
		for i := range batch {
			batch[i] = n.at(region, sec(float64(i)/10), 1, Admitted)
		}
		wg.Go(func() {
			for _, a := range batch {
				j.Record(a)
				if a.Sequence%100 == 0 {
					j.Verdict()
					j.Summary()
				}
			}
		})
	}
	wg.Wait()
	v := j.Verdict()
	if v.MaxAdmitted != 1200 || v.MaxExcess != 200 || v.CellsChecked != 1 {
		t.Errorf("verdict %+v", v)
	}
	if s := j.Summary(); s[0].Total.Admitted != 1200 || s[0].Total.PooledAdmits != 1000 {
		t.Errorf("summary %+v", s[0].Total)
	}
}

// Compared with a twin that keeps every answer and adds up with two loops.
func TestVerdictAgainstTwin(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		limit := fixed(rapid.Int64Range(1, 20).Draw(t, "limit"))
		history := drawHistory(t)
		j := New(limit)
		for _, a := range history {
			j.Record(a)
		}
		type place struct {
			bucket string
			cell   int64
		}
		all, known := map[place]int64{}, map[place]int64{}
		for _, a := range history {
			if a.Outcome != Unknown {
				all[place{a.Bucket, a.Cell}] += admitted(a)
				known[place{a.Bucket, a.Cell}] += admitted(a)
				continue
			}
			cells := map[int64]bool{}
			for at := a.Sent.Add(-limit.ClockSlack); !at.After(a.Seen.Add(limit.ClockSlack)); at = at.Add(time.Millisecond) {
				cells[at.Unix()/60] = true
			}
			for cell := range cells {
				all[place{a.Bucket, cell}] += a.Cost
			}
		}
		var most, maxKnown int64
		over, proven := 0, 0
		for p, n := range all {
			most, maxKnown = max(most, n), max(maxKnown, known[p])
			if n > limit.Limit {
				over++
			}
			if known[p] > limit.Limit {
				proven++
			}
		}
		v := j.Verdict()
		if v.CellsChecked != len(all) || v.MaxAdmitted != most || v.MaxKnown != maxKnown ||
			v.CellsOver != over || v.CellsProvenOver != proven {
			t.Fatalf("verdict %+v\ntwin: %d cells, most %d, known %d, %d over, %d proven", v,
				len(all), most, maxKnown, over, proven)
		}
		if v.MaxExcess != max(0, most-limit.Limit) || v.Misplaced != 0 || v.Duplicates != 0 ||
			v.Holds() != (over == 0) {
			t.Fatalf("verdict %+v", v)
		}
	})
}

func TestVerdictInOneLine(t *testing.T) {
	tests := []struct {
		v    Verdict
		want string
	}{
		{Verdict{}, "nothing to judge"},
		{Verdict{CellsChecked: 1}, "ceiling held"},
		{Verdict{CellsChecked: 1, CellsOver: 1}, "ceiling in doubt (unknown outcomes)"},
		{Verdict{CellsChecked: 1, CellsOver: 1, CellsProvenOver: 1, Misplaced: 1},
			"CEILING BROKEN"},
		{Verdict{CellsChecked: 1, Duplicates: 1}, "ANSWERS NOT BELIEVABLE"},
	}
	for _, tt := range tests {
		if word, _, _ := strings.Cut(tt.v.String(), ":"); word != tt.want {
			t.Errorf("%+v: %q, want %q", tt.v, word, tt.want)
		}
	}
	bucket := New(ofKind("token_bucket", 10, 3)).Verdict().String()
	if want := "nothing to judge: 0 checks, 0 above the limit, at most 0 tokens missing from a bucket of 3; 0 misplaced, 0 duplicate"; bucket != want {
		t.Errorf("got  %s\nwant %s", bucket, want)
	}
}

func TestLimitsThatCannotBeJudged(t *testing.T) {
	tests := []struct {
		name string
		bend func(l *Limit)
		says string
	}{
		{"none", func(l *Limit) { l.Limit = 0 }, "limit of 0 units"},
		{"beyond 2^52", func(l *Limit) { l.Limit = MaxCost + 1 }, "give 1 to"},
		{"no window", func(l *Limit) { l.Window = 0 }, "window of 0s"},
		{"part of a microsecond", func(l *Limit) { l.Window = 1500 }, "multiple of 1µs"},
		{"negative slack", func(l *Limit) { l.ClockSlack = -1 }, "slack"},
		{"negative settle time", func(l *Limit) { l.Settle = -1 }, "settle"},
		{"a burst of no bucket", func(l *Limit) { l.Burst = 1 },
			"a burst of 1 units means nothing to a fixed_window"},
		{"a bucket without burst", func(l *Limit) { l.Algorithm = "token_bucket" },
			"a token_bucket with a burst of 0 units"},
		{"a queue beyond 2^52", func(l *Limit) { l.Algorithm, l.Burst = "leaky_bucket", MaxCost+1 },
			"give 1 to 4503599627370496"},
		{"algorithm", func(l *Limit) { l.Algorithm = "guess" },
			`no check for algorithm "guess": it judges fixed_window, leaky_bucket, sliding`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := fixed(10)
			tt.bend(&l)
			err := l.Validate()
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want something about %q", err, tt.says)
			}
			defer func() {
				if recover() == nil {
					t.Error("New accepted it")
				}
			}()
			New(l)
		})
	}
}
