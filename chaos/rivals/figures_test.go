//go:build !race

package rivals

import (
	"encoding/json"
	"hash/fnv"
	"reflect"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/workload"
)

func TestJain(t *testing.T) {
	tests := []struct {
		given, due []int64
		want       Millionths
	}{
		{[]int64{5, 10}, []int64{5, 10}, million},
		{[]int64{1, 2}, []int64{10, 20}, million},
		{[]int64{10, 0}, []int64{10, 10}, million / 2},
		{[]int64{10, 0, 0, 0}, []int64{10, 10, 10, 10}, million / 4},
		{[]int64{3, 1}, []int64{4, 4}, 800_000}, // (3/4 + 1/4)^2 / (2 (9/16 + 1/16))
		{[]int64{0, 0}, []int64{1, 1}, million},
		{[]int64{9, 7}, []int64{0, 7}, million}, // nothing is due to the first
		{[]int64{9}, []int64{0}, None},
		{[]int64{1 << 40, 1}, []int64{1, 1 << 40}, million / 2},
	}
	for _, c := range tests {
		if got := jain(c.given, c.due); got != c.want {
			t.Errorf("jain(%v, %v) = %d, want %d", c.given, c.due, got, c.want)
		}
	}
}

func TestMillionthsString(t *testing.T) {
	for m, want := range map[Millionths]string{0: "0.00 %", 49: "0.00 %", 50: "0.01 %",
		12_345: "1.23 %", million: "100.00 %", 9_999_950: "1000.00 %"} {
		if got := m.String(); got != want {
			t.Errorf("%d millionths are %q, want %q", int64(m), got, want)
		}
	}
}

// stepped is a workload in which region 0 is asked for 90 units a second from 1 s on, of which 34
// are admitted until its share is larger.
func stepped() (*workload.Workload, Network) {
	w := evenly(100, second, 4*second, 3, flow{0, second, 4 * second, 90})
	w.Step = &workload.Step{At: second, Region: 0}
	return w, Uniform(3, 40_000)
}

func TestTimeToRebalance(t *testing.T) {
	denial := int64(second + 34*second/90)
	at := func(after, share int64) Sample {
		return Sample{At: denial + after, Share: []int64{share, 0, 0}}
	}
	start := Sample{At: 0, Share: []int64{34, 33, 33}}
	tests := []struct {
		name        string
		shares      []Sample
		first, full int64
	}{
		{"no shares", nil, None, None},
		{"never", []Sample{start}, None, None},
		{"one unit only", []Sample{start, at(90_000, 35)}, 90_000, None},
		{"in two steps", []Sample{start, at(90_000, 60), at(240_000, 85), at(250_000, 86)}, 90_000,
			250_000},
		{"at once", []Sample{start, at(80_000, 90)}, 80_000, 80_000},
		{"given back later", []Sample{start, at(80_000, 90), at(90_000, 10)}, 80_000, 80_000},
		{"before the first denial", []Sample{start, at(-1, 90)}, None, 0},
	}
	for _, c := range tests {
		w, n := stepped()
		r := StaticSplit{}.Run(w, n, 1)
		r.Shares = c.shares
		f := Measure(w, r, n)
		if f.FirstUnit != c.first || f.Rebalanced != c.full {
			t.Errorf("%s: first unit after %d µs, 95 %% after %d µs, want %d and %d", c.name,
				f.FirstUnit, f.Rebalanced, c.first, c.full)
		}
		if c.full == 250_000 && f.RoundTrips != 3125 {
			t.Errorf("250 ms are %d thousandths of a round trip of 80 ms", f.RoundTrips)
		}
	}
	w, n := stepped()
	r := PooledOracle{}.Run(w, n, 1)
	r.Shares = []Sample{start}
	if f := Measure(w, r, n); f.FirstUnit != 0 || f.Rebalanced != 0 || f.RoundTrips != 0 {
		t.Errorf("without a denial it took %d and %d", f.FirstUnit, f.Rebalanced)
	}
}

// A region that is denied in every window has one shortage, and Late is what it lost in the first
// round trip of that.
func TestLateAndSplit(t *testing.T) {
	w, n := stepped()
	f := Measure(w, StaticSplit{}.Run(w, n, 1), n)
	if f.FalseDenials != 3*(90-34) || f.Late != 8 || f.Split != f.FalseDenials-8 ||
		f.RightlyDenied != 0 {
		t.Errorf("%+v", f) // 90 a second are 8 in 80 ms, the first and the last included
	}
}

// made draws a named demand over the usual limit.
func made(t *testing.T, name string, length int64) *workload.Workload {
	t.Helper()
	s := workload.Usual()
	s.Length = length
	w, err := workload.Make(name, s, 11)
	suite.Must(t, err)
	return w
}

// few are figures of some systems on two workloads.
func few(t *testing.T) []Figures {
	t.Helper()
	suite := []*workload.Workload{made(t, "step", 3*second), made(t, "contention", 2*second)}
	suite[1].Name = `odd <name> | "& more`
	var rows []Figures
	for _, w := range suite {
		rows = append(rows, Compare(w, Systems(), Uniform(w.Regions, 40_000), 5)...)
	}
	return rows
}

func TestTableLinesUp(t *testing.T) {
	rows := few(t)
	table := Table(rows)
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	if len(lines) != len(rows)+2 {
		t.Fatalf("%d lines for %d rows", len(lines), len(rows))
	}
	for _, line := range lines {
		if len([]rune(line)) != len([]rune(lines[0])) || !strings.HasPrefix(line, "|") {
			t.Errorf("does not line up: %s", line)
		}
	}
	if !strings.Contains(table, `odd <name> \| "& more`) {
		t.Error("a bar in a name ends its cell")
	}
	if table != Table(few(t)) {
		t.Error("the same seed gave two tables")
	}
}

// A comparison that is run again on another machine, or by a later version, must give the same
// figures.
func TestFiguresAreTheSameEverywhere(t *testing.T) {
	const want = uint64(0xe033daf41a128387)
	h := fnv.New64a()
	e := json.NewEncoder(h)
	e.SetIndent("", "  ")
	if err := e.Encode(few(t)); err != nil {
		t.Fatal(err)
	}
	if got := h.Sum64(); got != want {
		t.Errorf("the figures have the fingerprint %#x, not %#x: if a system was changed on purpose, pin the new one", got, want)
	}
}

func TestTableIsFixed(t *testing.T) {
	got := Table([]Figures{{
		Workload: "step", System: "static split", OvershootMax: 0, FalseRate: 545_000, Late: 66,
		Split: 11_043, Utilisation: 455_000,
		FirstUnit: None, Rebalanced: 250_001, RoundTrips: 3_125, Fairness: 868_432,
		BytesPerSecond: 18, WaitP99: 80_000,
	}})
	const want = `| workload | system       | over, max | over, mean |   false | late | split |    used | first unit |   95 % | round trips |  fair | B/s | wait p50 | wait p99 |
|----------|--------------|----------:|-----------:|--------:|-----:|------:|--------:|-----------:|-------:|------------:|------:|----:|---------:|---------:|
| step     | static split |    0.00 % |     0.00 % | 54.50 % |   66 | 11043 | 45.50 % |          - | 251 ms |       3.125 | 0.868 |  18 |     0 ms |    80 ms |
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestOverview(t *testing.T) {
	all := Overview([]Figures{
		{Workload: "a", System: "x", OvershootMax: 100, FalseRate: 30, Utilisation: million,
			WaitP99: 7},
		{Workload: "a", System: "y"},
		{Workload: "b", System: "x", OvershootMax: 0, FalseRate: 50, Utilisation: million / 2,
			BytesPerSecond: 3},
	})
	want := []Overall{
		{System: "x", Workloads: 2, Worst: 100, WorstOn: "a", Exceeded: 1, Over: 50, False: 40,
			Used: 750_000, MostFalse: 50, MostFalseOn: "b", WaitP99: 7, BytesPerSecond: 3},
		{System: "y", Workloads: 1},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("got %+v\nwant %+v", all, want)
	}
	if table := OverviewTable(all); !strings.Contains(table, "| x      |") ||
		strings.Count(table, "\n") != 4 {
		t.Errorf("the table is\n%s", table)
	}
}
