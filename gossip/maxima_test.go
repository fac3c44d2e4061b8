package gossip

import (
	"encoding/json"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestMergeLaws states what Merge of a State must obey, for the one used here.
func TestMergeLaws(t *testing.T) {
	states := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.IntRange(-3, 3))
	merged := func(t *rapid.T, parts ...map[string]int) map[string]int {
		s := newMaxima()
		for _, p := range parts {
			b, _ := json.Marshal(p)
			before := s.clone()
			news, err := s.Merge(b)
			if err != nil || news == maps.Equal(before, s.clone()) {
				t.Fatalf("Merge says news=%v, %v; state was %v, is %v", news, err, before,
					s.clone())
			}
		}
		return s.clone()
	}
	suite.Check(t, func(t *rapid.T) {
		x, y, z := states.Draw(t, "x"), states.Draw(t, "y"), states.Draw(t, "z")
		if l, r := merged(t, x, y), merged(t, y, x); !maps.Equal(l, r) {
			t.Errorf("not commutative: %v and %v", l, r)
		}
		if l, r := merged(t, x, x), merged(t, x); !maps.Equal(l, r) {
			t.Errorf("not idempotent: %v and %v", l, r)
		}
		if l, r := merged(t, merged(t, x, y), z), merged(t, x, merged(t, y, z)); !maps.Equal(l, r) {
			t.Errorf("not associative: %v and %v", l, r)
		}
	})
}
