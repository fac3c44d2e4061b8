package region_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestPlans: a request that has the descriptors of an exemption is not counted, whatever else it
// has, or it is denied. One whose plan no limit knows gets what on_no_limit says beside its other
// limits, which count nothing of what is denied so.
func TestPlans(t *testing.T) {
	const text = `
version: 1
regions: {us: {weight: 1}}
on_no_limit: deny
limits:
  - {name: each, domain: api, key: [account], algorithm: fixed_window, limit: 5, window: 1h, consistency: prefetch}
  - {name: pro, domain: api, key: [account], match: {plan: pro}, algorithm: fixed_window, limit: 5, window: 1h, consistency: prefetch}
exempt:
  - {domain: api, entries: [{key: account, value: probe}]}
  - {domain: api, entries: [{key: account, value: banned}], deny: true}
`
	for _, on := range []string{"deny", "warn", "allow"} {
		d, err := policy.Parse("limits.yaml", []byte(strings.Replace(text, "on_no_limit: deny", "on_no_limit: "+on, 1)))
		suite.Must(t, err)
		t.Run(on, func(t *testing.T) {
			oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
				ask := func(account, plan string, listed bool) admit.Decision {
					q := admit.Request{Domain: "api", Cost: 1}
					if listed {
						q.Lists = []admit.List{{Cost: 1, Entries: []policy.KeyValue{{Name: "account", Value: account},
							{Name: "plan", Value: plan}}}}
					} else {
						q.Descriptors = map[string]string{"account": account, "plan": plan}
					}
					return n.check(t, q)
				}
				for _, listed := range []bool{false, true} {
					for range 20 {
						if got := ask("probe", "pro", listed); !got.Allowed || got.Reason != admit.NoLimit {
							t.Fatalf("exempt, in a list %v: %+v", listed, got)
						}
					}
					if got := ask("banned", "pro", listed); got.Allowed || got.Reason != admit.Denied {
						t.Errorf("denied by an exemption, in a list %v: %+v", listed, got)
					}
					got := ask("1", "gold", listed)
					if stray := on == "deny"; got.Allowed == stray || (got.Reason == admit.NoLimit) != stray {
						t.Errorf("a plan that no limit knows, in a list %v: %+v", listed, got)
					}
				}
				got := ask("1", "pro", false)
				if left := map[string]int{"deny": 4, "warn": 2, "allow": 2}[on]; !got.Allowed || int(got.Remaining) != left {
					t.Errorf("%d are left: %+v", left, got)
				}
				_, err := n.Take(t.Context(), admit.Take{Domain: "api", Units: 100,
					Descriptors: map[string]string{"account": "1", "plan": "gold"}})
				if errors.Is(err, admit.ErrExact) != (on != "allow") {
					t.Errorf("units for a plan that no limit knows: %v", err)
				}
			})
		})
	}
}
