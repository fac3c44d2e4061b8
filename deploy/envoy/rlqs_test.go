package envoy

import (
	"strings"
	"testing"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rate_limit_quota/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// TestRLQSRecipeIsValid: the recipe is what Envoy's API takes, its bucket ids meet a limit of which
// Envoys are assigned parts, and without an assignment an Envoy admits what the limit leaves for
// that.
func TestRLQSRecipeIsValid(t *testing.T) {
	_, c := load(t, "rlqs.yaml")
	filter := part[*quota.RateLimitQuotaFilterConfig](t, c)
	bucket := part[*quota.RateLimitQuotaBucketSettings](t, c)
	cluster := filter.GetRlqsServer().GetEnvoyGrpc().GetClusterName()
	found := false
	for _, one := range c.bootstrap.GetStaticResources().GetClusters() {
		found = found || one.GetName() == cluster
	}
	if !found {
		t.Errorf("there is no cluster %q", cluster)
	}
	limits, err := policy.Load("rlqs-limits.yaml")
	suite.Must(t, err)
	if all := limits.Warnings(); len(all) > 0 {
		t.Errorf("the limits have warnings: %v", all)
	}
	id := map[string]string{}
	for name := range bucket.GetBucketIdBuilder().GetBucketIdBuilder() {
		id[name] = "acme"
	}
	met := limits.Compile().Append(nil, filter.GetDomain(), id)
	if len(met) != 1 || met[0].Assign == nil {
		t.Fatalf("the bucket id %v meets %v", id, met)
	}
	none := bucket.GetNoAssignmentBehavior().GetFallbackRateLimit()
	if none.GetBlanketRule() != types.RateLimitStrategy_DENY_ALL {
		t.Errorf("an Envoy that was never assigned anything: %v", none)
	}
	// The limits say that there are four Envoys.
	expired := bucket.GetExpiredAssignmentBehavior().GetFallbackRateLimit().GetTokenBucket()
	all := quantity.Units(4 * (expired.GetMaxTokens() + expired.GetTokensPerFill().GetValue()))
	if kept := met[0].Assign.NoAssignment; all == 0 || all > kept || met[0].Window != time.Second ||
		expired.GetFillInterval().AsDuration() != time.Second {
		t.Errorf("four Envoys without an assignment admit %d a second, and %d are kept for them", all, kept)
	}
}

// TestRLQSMistakesAreFound shows what the test of the recipe would find, in each part of it.
func TestRLQSMistakesAreFound(t *testing.T) {
	text, _ := load(t, "rlqs.yaml")
	for _, c := range []struct{ right, wrong string }{
		{"rlqs_server:", "rlqs_servers:"},
		{"domain: web", `domain: ""`},
		{"header_name: x-account # change", "header: x-account # change"},
		{"reporting_interval: 5s", "report_interval: 5s"},
		{"bucket_id_builder:\n                                        account:", "bucket_id_builders:\n                                        account:"},
		{"expired_assignment_behavior_timeout: 60s", "expired_assignment_behavior_timeout: 0s"},
		{"connection_keepalive: {interval: 15s, timeout: 5s}", "connection_keepalive: {timeout: 15}"},
	} {
		if strings.Count(text, c.right) != 1 {
			t.Errorf("%q does not stand there once", c.right)
		}
		if _, err := read([]byte(strings.Replace(text, c.right, c.wrong, 1))); err == nil {
			t.Errorf("%q passes", c.wrong)
		}
	}
}
