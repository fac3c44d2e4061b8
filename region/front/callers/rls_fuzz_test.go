package callers

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
)

// FuzzRLS: whatever a request of Envoy's protocol says, it is answered with a status for each of
// its descriptors, or with an error that tells what is wrong, and a document finds its limits.
func FuzzRLS(f *testing.F) {
	for _, seed := range []string{
		`{"domain":"api","descriptors":[{"entries":[{"key":"account","value":"7"}]}],"hitsAddend":5}`,
		`{"domain":"api","descriptors":[{"entries":[{"key":"a","value":"x"},{"key":"a","value":""}],"hitsAddend":"18446744073709551615","isNegativeHits":true,"limit":{"requestsPerUnit":1,"unit":"DAY"}},{"entries":[{"key":"b"}],"hitsAddend":"0"}]}`,
		`{"descriptors":[{}]}`, `{}`, `[]`, `nonsense`, "",
	} {
		f.Add([]byte(seed))
	}
	d, err := policy.Parse("limits.yaml", []byte("version: 1\nregions: {here: {weight: 1}}\nlimits:\n"+
		"  - {name: a, domain: api, key: [account, a/2], algorithm: fixed_window, limit: 100, window: 1m}\n"+
		"  - {name: b, domain: api, entries: [{key: a, value: x*, shared: true}, {key: a}], algorithm: fixed_window, limit: 100, window: 1m}\n"))
	suite.Must(f, err)
	matcher := d.Compile()
	node := &fronts.Node{Decide: func(q admit.Request) (admit.Decision, error) {
		decision := admit.Decision{Allowed: true, Met: make([]admit.Met, len(q.Lists))}
		for i, list := range q.Lists {
			all, _ := matcher.AppendList(nil, q.Domain, list.Entries)
			for _, l := range all {
				if _, err := policy.ParseBucketID(policy.BucketID(l.AppendBucketOf(nil, list.Entries))); err != nil {
					return decision, err
				}
				decision.Met[i].Limits = append(decision.Met[i].Limits, len(decision.Limits))
				decision.Limits = append(decision.Limits, admit.LimitState{Limit: l.Name, LimitUnits: l.Limit,
					Window: l.Window, Counted: true, Admits: true})
			}
		}
		return decision, nil
	}}
	s := startServer(node, fronts.Quiet(), Options{EnvoyHeaders: BothHeaders})
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := decodeRLS(body)
		if err != nil {
			return
		}
		r, err := s.rls.limit(t.Context(), m, "caller", 0)
		if (err == nil) == (r == nil) || err == nil && len(r.GetStatuses()) != len(m.GetDescriptors()) {
			t.Fatalf("%v: %v, %v", m, r, err)
		}
		if _, wrong := err.(*invalid.Field); err != nil && !wrong {
			t.Fatalf("%v: %v", m, err)
		}
	})
}
