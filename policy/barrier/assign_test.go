//go:build !race

package barrier_test

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
)

// TestWhatEnvoysHoldIsWaitedFor: where Envoys may hold fewer tokens, the regions wait for each
// other and for the Envoys. Else the stores would grow by tokens that Envoys still have.
func TestWhatEnvoysHoldIsWaitedFor(t *testing.T) {
	assigned := func(version, burst int, assign string) *policy.Document {
		return documents.Parse(t, version, abc, fmt.Sprintf("name: l, algorithm: token_bucket, "+
			"limit: 900, window: 1s, burst: %d, assign: {%s}", burst, assign))
	}
	const settled = "l [a b c] until 31000005" // AssignSettles, and a second to fill
	old := assigned(1, 900, "max_burst: 300")
	for name, c := range map[string]struct {
		newer *policy.Document
		want  string
	}{
		"nothing":      {assigned(2, 900, "max_burst: 300"), "l"},
		"another ttl":  {assigned(2, 900, "max_burst: 300, ttl: 6s"), "l"},
		"Envoys less":  {assigned(2, 900, "max_burst: 150"), settled},
		"a token less": {assigned(2, 900, "max_burst: 299"), settled},

		"Envoys less, stores the same": {assigned(2, 750, "max_burst: 150"), settled},
		"Envoys more":                  {assigned(2, 900, "max_burst: 450"), "l [a b c] until 21000000"},
		// What the stores share fills 900 tokens at 10 a second.
		"rate less": {assigned(2, 900, "max_burst: 300, no_assignment: 890"),
			"l [a b c] until 110000000"},
		"assigned no more": {documents.Parse(t, 2, abc,
			"name: l, algorithm: token_bucket, limit: 900, window: 1s, burst: 900"),
			"+l; -l [a b c] until 21000000"},
	} {
		if got := previewed(t, old, c.newer, 5); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestARemainderIsNothingLess: max_burst is the same, though some keys give a region more of it
// than others.
func TestARemainderIsNothingLess(t *testing.T) {
	assigned := func(version, limit int) *policy.Document {
		return documents.Parse(t, version, abc, fmt.Sprintf("name: l, algorithm: token_bucket, "+
			"limit: %d, window: 1s, burst: 900, assign: {max_burst: 301}", limit))
	}
	if got := previewed(t, assigned(1, 900), assigned(2, 600), 5); got != "l [a b c] until 21500000" {
		t.Error(got)
	}
}

// TestEnvoyPartsAddUp to max_burst for every rotation, whatever the weights are.
func TestEnvoyPartsAddUp(t *testing.T) {
	l := documents.Parse(t, 1, abc, "name: l, algorithm: token_bucket, limit: 900, window: 1s, "+
		"weights: {a: 0, b: 2, c: 5}, assign: {max_burst: 301}").Limits[0]
	for rotation := range uint64(3) {
		var sum quantity.Units
		for _, part := range barrier.EnvoyParts(&l, rotation) {
			sum += part
		}
		if parts := barrier.EnvoyParts(&l, rotation); sum != 301 || parts[0] != 0 {
			t.Errorf("parts %v", parts)
		}
	}
}
