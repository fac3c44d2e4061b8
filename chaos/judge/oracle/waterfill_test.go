package oracle

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestWaterFill(t *testing.T) {
	tests := []struct {
		name                      string
		limit                     int64
		demand, entitlement, want []int64
	}{
		{"nobody wants anything", 1000, []int64{0, 0}, []int64{500, 500}, []int64{0, 0}},
		{"all demand in one region", 1000, []int64{5000, 0, 0}, []int64{400, 400, 200},
			[]int64{1000, 0, 0}},
		{"everyone wants more", 1000, []int64{900, 900, 900}, []int64{400, 400, 200},
			[]int64{400, 400, 200}},
		{"spare in proportion to weight", 1000, []int64{900, 100, 900}, []int64{400, 400, 200},
			[]int64{600, 100, 300}},
		{"who is full steps aside", 1000, []int64{450, 100, 900}, []int64{400, 400, 200},
			[]int64{450, 100, 450}},
		{"the last unit to the poorest", 10, []int64{9, 0, 9}, []int64{3, 4, 3}, []int64{5, 0, 5}},
		{"odd units to the poorest", 10, []int64{9, 1, 9}, []int64{3, 4, 3}, []int64{5, 1, 4}},
		{"home mode: others take what home leaves", 3, []int64{1, 1, 5}, []int64{3, 0, 0},
			[]int64{1, 1, 1}},
		{"home mode: home comes first", 3, []int64{9, 9, 9}, []int64{3, 0, 0}, []int64{3, 0, 0}},
		{"numbers near the edge", 1 << 52, []int64{1 << 52, 1 << 52}, []int64{1 << 51, 1 << 50},
			[]int64{3002399751580331, 1501199875790165}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := WaterFill(tt.limit, tt.demand, tt.entitlement); !reflect.DeepEqual(got,
				tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// Compared with filling unit by unit, always for the region with the least share for its
// entitlement: equal to within a unit per region.
func TestWaterFillAgainstUnitByUnit(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "regions")
		entitlement := rapid.SliceOfN(rapid.Int64Range(0, 60), n, n).Draw(t, "entitlement")
		demand := rapid.SliceOfN(rapid.Int64Range(0, 200), n, n).Draw(t, "demand")
		var limit, wanted, given int64
		for i := range entitlement {
			limit += entitlement[i]
			wanted += demand[i]
		}
		twin := make([]int64, n)
		left := limit
		for i := range twin {
			twin[i] = min(entitlement[i], demand[i])
			left -= twin[i]
		}
		ones := make([]int64, n)
		for i := range ones {
			ones[i] = 1
		}
		left = fillByOne(twin, left, demand, entitlement)
		fillByOne(twin, left, demand, ones)

		for i, s := range WaterFill(limit, demand, entitlement) {
			if s < min(entitlement[i], demand[i]) || s > demand[i] {
				t.Fatalf("region %d has %d of a demand of %d with entitlement %d", i, s, demand[i],
					entitlement[i])
			}
			if d := s - twin[i]; d < -int64(n) || d > int64(n) {
				t.Fatalf("region %d has %d, unit by unit %d", i, s, twin[i])
			}
			given += s
		}
		if given != min(limit, wanted) {
			t.Fatalf("%d given of a limit of %d to a demand of %d", given, limit, wanted)
		}
	})
}
