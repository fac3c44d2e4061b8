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

// wrongWith says what is wrong with a workload.
func wrongWith(w *Workload) string {
	var sum int64
	for _, f := range w.Entitlements {
		sum += f
	}
	if len(w.Entitlements) != w.Regions || slices.Min(w.Entitlements) < 0 || sum != w.Limit {
		return "the entitlements do not split the limit"
	}
	last := int64(0)
	for _, a := range w.Arrivals {
		if a.At < last || a.At >= w.Length || a.Region < 0 || a.Region >= w.Regions || a.Cost < 1 {
			return "an arrival is out of order or range"
		}
		last = a.At
	}
	return ""
}

// The whole suite is pinned: a run that is replayed from its seed on another machine, or by a later
// version, must be offered the same requests.
func TestTheSuiteIsTheSameEverywhere(t *testing.T) {
	const want = uint64(0xdc9af2b9fa447d85)
	h := fnv.New64a()
	names := map[string]bool{}
	for _, w := range Suite(1) {
		if wrong := wrongWith(w); wrong != "" {
			t.Errorf("%s: %s", w.Name, wrong)
		}
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
		{"large-costs-80", 800, nil},
		{"large-costs-95", 950, nil},
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
		most := int64(30)
		if strings.HasPrefix(c.name, "large-costs") {
			most = 120 // some 5,000 requests, whose units vary a hundred times as much
		}
		// 30,000 requests have a standard deviation of 170, which is six
		// thousandths of the limit; costs with a tail three times that.
		if away := sum - c.parts; away < -most || away > most {
			t.Errorf("%s: %d units a window, want %d", c.name, sum, c.parts)
		}
		for i, want := range c.regions {
			if away := got[i] - want; away < -most || away > most {
				t.Errorf("%s: region %d asks for %d units a window, want %d", c.name, i, got[i],
					want)
			}
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

func TestUnknownDemandIsRefused(t *testing.T) {
	if _, err := Make("nothing", Usual(), 1); err == nil {
		t.Error("a demand that is not known was made")
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
			if exact := MulDiv(units, weights[i], all); part < exact || part > exact+1 {
				t.Fatalf("part %d of %d by %v is %d, exactly it is %d and a bit", i, units, weights,
					part, exact)
			}
		}
		if sum != units {
			t.Fatalf("%d units by %v became %d", units, weights, sum)
		}
	})
}
