package admit

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
)

// TestALimitOfZeroOfAMap: what denies is replaced by its alias, and denies as an alternative only if no
// alternative limit applies, also for a request that has no lists.
func TestALimitOfZeroOfAMap(t *testing.T) {
	d, err := policy.Parse("limits.yaml", []byte(`
version: 1
regions: {us: {weight: 1}}
limits:
  - {name: pardon, domain: api, entries: [{key: pardon}, {key: banned}], replaces: [ban], algorithm: fixed_window, limit: 9, window: 1m}
  - {name: spare, domain: api, entries: [{key: shut}, {key: spare}], alternative: true, algorithm: fixed_window, limit: 9, window: 1m}
  - {name: each, domain: api, key: [account], algorithm: fixed_window, limit: 9, window: 1m}
exempt:
  - {domain: api, entries: [{key: banned}], deny: true, window: 1m, alias: ban}
  - {domain: api, entries: [{key: shut}], deny: true, window: 1m, alternative: true}
`))
	suite.Must(t, err)
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		for _, step := range []struct {
			names   []string
			allowed bool
		}{{[]string{"banned"}, false}, {[]string{"banned", "pardon"}, true},
			{[]string{"shut"}, false}, {[]string{"shut", "spare"}, true}, {[]string{"account"}, true}} {
			q := Request{Domain: "api", Cost: 1, Descriptors: map[string]string{}}
			for _, name := range step.names {
				q.Descriptors[name] = "x"
			}
			got, err := c.running["us/n1"].Check(t.Context(), q)
			if err != nil || got.Allowed != step.allowed {
				t.Errorf("%v: %+v, %v", step.names, got, err)
			}
		}
	})
}
