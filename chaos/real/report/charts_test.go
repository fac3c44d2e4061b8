package report

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestThinningKeepsTheMaximum(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.Int64Range(0, 100), 1, 3000).Draw(t, "amounts")
		p := plot{layout: narrow, height: 100, length: time.Duration(len(amounts)) * time.Second,
			max: 100}
		var cells []Cell
		for i, n := range amounts {
			cells = append(cells, Cell{From: time.Duration(i) * time.Second, Length: time.Second,
				Admitted: []int64{n}})
		}
		list, thinned := p.columns(cells, false)
		if room := int(p.inner() / narrowest); thinned != (len(cells) > room) || len(list) > room {
			t.Fatalf("%d cells made %d columns, thinned %v, with room for %d", len(cells),
				len(list), thinned, room)
		}
		most := int64(0)
		for i, c := range list {
			most = max(most, c.most)
			if c.x < p.left || c.x+c.width > p.end()+1 || i > 0 && c.x < list[i-1].x {
				t.Fatalf("column %d is at %.1f, %.1f wide", i, c.x, c.width)
			}
		}
		if most != slices.Max(amounts) {
			t.Fatalf("the tallest column is %d, the fullest cell %d", most, slices.Max(amounts))
		}
	})
}

func TestMergedSlotsKeepEveryUnit(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.Int64Range(0, 100), 1, 2000).Draw(t, "amounts")
		p := plot{layout: narrow, length: time.Duration(len(amounts)) * time.Second}
		var all []Slot
		for i, n := range amounts {
			all = append(all, Slot{At: time.Duration(i) * time.Second, Length: time.Second,
				Offered: []int64{n, 1}, Admitted: []int64{n / 2}})
		}
		list, merged := p.slots(all)
		var offered, admitted, want, half int64
		var end time.Duration
		for _, s := range list {
			if s.At != end || s.Length > time.Duration(merged)*time.Second {
				t.Fatalf("a slot begins at %v and is %v long, %v was expected of %d merged", s.At,
					s.Length, end, merged)
			}
			end = s.At + s.Length
			offered, admitted = offered+total(s.Offered...), admitted+total(s.Admitted...)
		}
		for _, n := range amounts {
			want, half = want+n+1, half+n/2
		}
		if offered != want || admitted != half || end != p.length {
			t.Fatalf("offered %d of %d, admitted %d of %d, end %v", offered, want, admitted, half,
				end)
		}
	})
}

func TestThinnedSharesKeepTheirExtremes(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.Int64Range(0, 1000), 1, 3000).Draw(t, "amounts")
		d := drawing{plot: plot{layout: narrow, height: 60,
			length: time.Duration(len(amounts)) * time.Millisecond, max: 1000}}
		var list []Share
		for i, n := range amounts {
			list = append(list, Share{At: time.Duration(i) * time.Millisecond, Share: n})
		}
		kept := d.thin(list)
		if len(kept) > 4*int(d.inner()+2) {
			t.Fatalf("%d of %d claims are left", len(kept), len(list))
		}
		compare := func(a, b Share) int { return int(a.Share - b.Share) }
		if slices.MinFunc(kept, compare).Share != slices.Min(amounts) ||
			slices.MaxFunc(kept, compare).Share != slices.Max(amounts) {
			t.Fatal("the lowest or the highest share is lost")
		}
		if kept[0] != list[0] || kept[len(kept)-1] != list[len(list)-1] {
			t.Fatal("the line does not begin or end where the shares do")
		}
	})
}

func TestDegradedStretches(t *testing.T) {
	share := func(at int, degraded bool) Share {
		return Share{At: time.Duration(at) * time.Second, Degraded: degraded}
	}
	for _, c := range []struct {
		name string
		list []Share
		want []Band
	}{
		{"never", []Share{share(0, false), share(5, false)}, nil},
		{"once", []Share{share(0, false), share(2, true), share(3, true), share(5, false)},
			[]Band{{From: 2e9, To: 5e9}}},
		{"to the end", []Share{share(0, false), share(7, true)}, []Band{{From: 7e9, To: 10e9}}},
		{"twice", []Share{share(1, true), share(2, false), share(3, true), share(4, false)},
			[]Band{{From: 1e9, To: 2e9}, {From: 3e9, To: 4e9}}},
	} {
		if got := (claims{list: c.list}).degraded(10 * time.Second); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWindowLongerThanTheRun(t *testing.T) {
	r := monthRun()
	p := plot{layout: wide, length: r.Length}
	list, _ := p.columns(r.Limits[0].Cells, false)
	if len(list) != 1 || math.Abs(list[0].width-p.inner()) > 1.1 {
		t.Fatalf("one window around the run does not fill the chart: %+v", list)
	}
	if got, want := r.Limits[0].outside(r.Length),
		"The first began 14 d before the run, the last ends 17 d after it."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMarksAreRound(t *testing.T) {
	for _, c := range []struct {
		most  float64
		n     int
		whole bool
		want  []float64
	}{
		{0, 5, true, []float64{0}},
		{1, 5, true, []float64{0, 1}},
		{3, 5, true, []float64{0, 1, 2, 3}},
		{1080, 5, true, []float64{0, 500, 1000}},
		{118, 5, false, []float64{0, 50, 100}},
		{0.8, 4, false, []float64{0, 0.2, 0.4, 0.6000000000000001, 0.8}},
		{math.NaN(), 5, true, []float64{0}},
		{math.Inf(1), 5, true, []float64{0}},
	} {
		if got := marks(c.most, c.n, c.whole); !slices.Equal(got, c.want) {
			t.Errorf("marks(%v, %d, %v) = %v, want %v", c.most, c.n, c.whole, got, c.want)
		}
	}
}

func TestClockStepsFit(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		length := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "length"))
		n := rapid.IntRange(2, 13).Draw(t, "n")
		step := clockStep(length, n)
		if step <= 0 || length/step > time.Duration(n) {
			t.Fatalf("%v in steps of %v are more than %d", length, step, n)
		}
	})
}

// TestPaceOnlyWhereItBounds: the chart by second has a line for the limit only where no second may
// be above it.
func TestPaceOnlyWhereItBounds(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		window    time.Duration
		want      bool
	}{{"fixed_window", time.Second, true}, {"fixed_window", time.Minute, false},
		{"token_bucket", time.Second, false}, {"sliding_window_counter", time.Second, false}} {
		if _, got := (Limit{Units: 100, Algorithm: c.algorithm, Window: c.window}).pace(); got != c.want {
			t.Errorf("%s of %s: %v", c.algorithm, c.window, got)
		}
	}
}
