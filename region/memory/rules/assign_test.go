package rules_test

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
)

// What Envoys may hold and admit comes out of the limit: the stores of all regions and all Envoys
// together have no more than its burst, and no more than its rate.
func TestEnvoysHaveAPartOfTheLimit(t *testing.T) {
	const limit, burst, most, without = 1001, 500, 101, 100
	d := documents.Parse(t, 1, threeRegions, fmt.Sprintf("name: assigned, algorithm: token_bucket, "+
		"limit: %d, window: 1s, burst: %d, assign: {max_burst: %d, no_assignment: %d}",
		limit, burst, most, without))
	var rate, tokens, envoys quantity.Units
	for _, region := range d.Regions {
		a := rulesOf(t, d, region.Name).Match(of("a"))[0]
		rate += a.Target.Terms.Entitlement
		tokens += a.Target.Terms.Burst
		envoys += a.EnvoyBurst
		if a.Bucket.Cell != 10_000_000 || !a.Bucket.Assigned || a.Bucket.Limit != limit-without {
			t.Errorf("%s: %+v", region.Name, a.Bucket)
		}
	}
	if rate != limit-without || tokens != burst-most || envoys != most {
		t.Errorf("the stores have a rate of %d and %d tokens, Envoys %d", rate, tokens, envoys)
	}
}
