//go:build !race

package workload

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// fingerprint is a hash of all fields of a workload.
func fingerprint(w *Workload) uint64 {
	h := fnv.New64a()
	h.Write([]byte(w.Name))
	var all []byte
	for _, a := range w.Arrivals {
		all = binary.LittleEndian.AppendUint64(all, uint64(a.At))
		all = binary.LittleEndian.AppendUint64(all, uint64(a.Region))
		all = binary.LittleEndian.AppendUint64(all, uint64(a.Cost))
	}
	h.Write(all)
	return h.Sum64()
}

// The whole suite is pinned: a run that is replayed from its seed on another machine, or by a later
// version, must be offered the same requests.
func TestTheSuiteIsTheSameEverywhere(t *testing.T) {
	const want = uint64(0xb6052f318c55986)
	h := fnv.New64a()
	names := map[string]bool{}
	for _, w := range Suite(1) {
		suite.Must(t, w.Validate())
		if names[w.Name] {
			t.Errorf("two workloads are named %q", w.Name)
		}
		names[w.Name] = true
		if n := len(w.Arrivals); n < 20 || n > 300_000 {
			t.Errorf("%s has %d arrivals", w.Name, n)
		}
		binary.Write(h, binary.LittleEndian, fingerprint(w))
	}
	if got := h.Sum64(); got != want {
		t.Errorf("the suite of seed 1 has the fingerprint %#x, not %#x: if it was changed on purpose, pin the new one", got, want)
	}
}

func TestEveryDemandOffersWhatItSays(t *testing.T) {
	tests := []struct {
		name    string
		parts   int64 // of the limit, in thousandths, over the whole run
		regions []int64
	}{
		{"even-80", 800, []int64{267, 267, 267}},
		{"even-90", 900, []int64{300, 300, 300}},
		{"even-95", 950, []int64{317, 317, 317}},
		{"even-100", 1000, []int64{334, 333, 333}},
		{"one-region", 950, []int64{950, 0, 0}},
		{"zipf", 950, []int64{518, 259, 173}},
		{"contention", 1500, []int64{818, 409, 273}},
		{"follow-the-sun", 900, []int64{300, 300, 300}},
		{"step", (160 + 2*950) / 3, []int64{(60 + 2*900) / 3, 33, 33}},
		{"under-threshold", 1900, []int64{633, 633, 633}},
		{"anti-phase-0.5", 950, []int64{237, 475, 237}},
		{"anti-phase-1", 950, nil},
		{"anti-phase-2", 950, nil},
		{"anti-phase-4", 950, nil},
		{"cell-end", 950, []int64{317, 317, 317}},
		{"surge", (2*500 + 3000) / 3, nil},
		{"heavy-tail", 900, nil},
	}
	if len(tests) != len(Names()) {
		t.Fatalf("%d demands of %d are tested", len(tests), len(Names()))
	}
	for _, c := range tests {
		s := Usual()
		w, err := Make(c.name, s, 7)
		suite.Must(t, err)
		got := w.Demand(0, w.Length)
		var sum int64
		for _, n := range got {
			sum += n
		}
		if c.regions == nil && c.name != "heavy-tail" {
			c.regions = got
		}
		// 30,000 requests have a standard deviation of 170, which is six
		// thousandths of the limit; costs with a tail three times that.
		if away := sum - c.parts; away < -30 || away > 30 {
			t.Errorf("%s: %d units a window, want %d", c.name, sum, c.parts)
		}
		for i, want := range c.regions {
			if away := got[i] - want; away < -30 || away > 30 {
				t.Errorf("%s: region %d asks for %d units a window, want %d", c.name, i, got[i],
					want)
			}
		}
		if About(c.name) == "" {
			t.Errorf("%s is not described", c.name)
		}
	}
}

func TestDemandsMoveWhenTheySay(t *testing.T) {
	s := Usual()
	made := func(name string) *Workload {
		w, err := Make(name, s, 3)
		suite.Must(t, err)
		return w
	}
	step := made("step")
	before, after := step.Demand(0, step.Step.At), step.Demand(step.Step.At, step.Length)
	if ratio := float64(after[0]) / float64(before[0]); ratio < 14 || ratio > 16 {
		t.Errorf("the step is one of %.1f times", ratio)
	}
	turn := 2 * s.RoundTrip
	waves := made("anti-phase-2")
	for k := range int64(4) {
		got := waves.Offered(k*turn, (k+1)*turn)
		if even := k%2 == 0; (got[0] > 0) != even || (got[1] > 0) == even || (got[2] > 0) != even {
			t.Errorf("turn %d of the anti-phase wave is offered %v", k, got)
		}
	}
	edges := made("cell-end")
	for k := range int64(6) {
		got := edges.Offered((k+1)*Second-Second/20, (k+1)*Second)
		if busy := slices.Index(got, slices.Max(got)); busy != int(k)%3 || got[busy] < 550 {
			t.Errorf("the end of window %d is offered %v", k, got)
		}
	}
	sun := made("follow-the-sun")
	for region := range 3 {
		noon := int64(region) * sun.Length / 3
		if got := sun.Offered(max(noon-Second, 0), noon+Second); got[region] != slices.Max(got) {
			t.Errorf("around noon in region %d the regions are offered %v", region, got)
		}
	}
}

func TestMixIsValidAndReplays(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		s := Usual()
		s.Regions = rapid.IntRange(2, 10).Draw(t, "regions")
		s.Limit = rapid.SampledFrom([]int64{3, 10, 100, 1000, 5000}).Draw(t, "limit")
		s.Window = rapid.SampledFrom([]int64{Second / 10, Second, 10 * Second}).Draw(t, "window")
		s.Length = 3 * s.Window
		if rapid.Bool().Draw(t, "bucket") {
			s.Algorithm, s.Burst = "token_bucket", max(1, s.Limit/5)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		w, err := Mix(s, seed)
		suite.Must(t, err)
		suite.Must(t, w.Validate())
		again, _ := Mix(s, seed)
		if fingerprint(w) != fingerprint(again) {
			t.Fatal("the same seed drew two mixes")
		}
	})
}

func TestMixIsHard(t *testing.T) {
	s := Usual()
	s.Limit, s.Length = 200, 6*Second
	var contended, skewed, heavy int
	for seed := range uint64(100) {
		w, err := Mix(s, seed)
		suite.Must(t, err)
		over, beyond := false, false
		for k := int64(0); k*s.Window < w.Length; k++ {
			units := w.Offered(k*s.Window, (k+1)*s.Window)
			var sum int64
			for i, u := range units {
				sum += u
				beyond = beyond || u > w.Entitlements[i]
			}
			over = over || sum > s.Limit
		}
		for _, yes := range []struct {
			is    bool
			count *int
		}{
			{over, &contended}, {beyond, &skewed},
			{slices.ContainsFunc(w.Arrivals, func(a Arrival) bool { return a.Cost > 1 }), &heavy},
		} {
			if yes.is {
				*yes.count++
			}
		}
	}
	if contended < 60 || skewed < 90 || heavy < 25 {
		t.Errorf("of 100 mixes %d exceed the limit in some window, %d exceed a region's part, %d have costs above 1", contended, skewed, heavy)
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	tests := []struct {
		change func(*Setting)
		says   string
	}{
		{func(s *Setting) { s.Regions = 1 }, "give 2 to 10"},
		{func(s *Setting) { s.Regions = -1 }, "give 2 to 10"},
		{func(s *Setting) { s.Weights = []int64{1, 2} }, "weights [1 2]"},
		{func(s *Setting) { s.Weights = []int64{0, 0, 0} }, "not all 0"},
		{func(s *Setting) { s.Limit = 0 }, "limit of 0"},
		{func(s *Setting) { s.Window = 0 }, "window of 0"},
		{func(s *Setting) { s.Algorithm = "gcra" }, `"gcra" is unknown`},
		{func(s *Setting) { s.Algorithm = "token_bucket" }, "burst of 0"},
		{func(s *Setting) { s.Burst = 5 }, "burst of 5"},
		{func(s *Setting) { s.Limit, s.Window = 1_000_000_000, 10*Second }, "below 2^51"},
		{func(s *Setting) { s.Length = -1 }, "run of -1"},
		{func(s *Setting) { s.RoundTrip = 0 }, "round trip of 0"},
	}
	for _, c := range tests {
		s := Usual()
		c.change(&s)
		for _, err := range []error{second(Make("step", s, 1)), second(Mix(s, 1))} {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: want %q, got %v", s, c.says, err)
			}
		}
	}
	if _, err := Make("nothing", Usual(), 1); err == nil {
		t.Error("a demand that is not known was made")
	}
}

func second(_ *Workload, err error) error { return err }

func TestBadWorkloadsAreRefused(t *testing.T) {
	good := func() *Workload {
		return &Workload{Name: "made by hand", Regions: 2, Limit: 3, Window: Second,
			Algorithm:    "fixed_window",
			Entitlements: []int64{2, 1}, Length: Second, Step: &Step{At: 5, Region: 1},
			Arrivals: []Arrival{{1, 0, 1}, {1, 1, 2}}}
	}
	suite.Must(t, good().Validate())
	for _, bad := range []func(*Workload){
		func(w *Workload) { w.Limit = 0 },
		func(w *Workload) { w.Entitlements[0]++ },
		func(w *Workload) { w.Entitlements = []int64{4, -1} },
		func(w *Workload) { w.Step.Region = 2 },
		func(w *Workload) { w.Arrivals[0].At = 2 },
		func(w *Workload) { w.Arrivals[1].At = Second },
		func(w *Workload) { w.Arrivals[1].Region = 2 },
		func(w *Workload) { w.Arrivals[1].Cost = 0 },
	} {
		w := good()
		bad(w)
		if w.Validate() == nil {
			t.Errorf("%+v passed", w)
		}
	}
}

func TestSplit(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		units := rapid.Int64Range(0, 1_000_000_000_000).Draw(t, "units")
		weights := rapid.SliceOfN(rapid.Int64Range(0, 1_000_000), 1, 10).Draw(t, "weights")
		weights[0]++
		var sum, all int64
		for _, w := range weights {
			all += w
		}
		for i, part := range Split(units, weights) {
			sum += part
			if exact := mulDiv(units, weights[i], all); part < exact || part > exact+1 {
				t.Fatalf("part %d of %d by %v is %d, exactly it is %d and a bit", i, units, weights,
					part, exact)
			}
		}
		if sum != units {
			t.Fatalf("%d units by %v became %d", units, weights, sum)
		}
	})
}
