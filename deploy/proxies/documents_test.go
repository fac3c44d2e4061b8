// Package proxies tests the recipes for proxies, each with the configuration that users copy. What
// needs the proxies themselves has the build tag proxies: see make proxies.
package proxies

import (
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/authz"
)

// TestMappingLeadsToLimits shows which limits apply to what clients ask the proxies for.
func TestMappingLeadsToLimits(t *testing.T) {
	mapping, err := authz.Load("authz.yaml")
	if err != nil {
		t.Fatal(err)
	}
	limits, err := policy.Load("limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if all := limits.Warnings(); len(all) > 0 {
		t.Errorf("the limits have warnings: %v", all)
	}
	matcher := limits.Compile()
	for name, c := range map[string]struct {
		method, uri, account string
		limits               []string
	}{
		"a page":            {"GET", "/a?b=c", "", []string{"address"}},
		"an account's page": {"GET", "/a", "acme", []string{"address", "account"}},
		"sign-in":           {"POST", "/login", "", []string{"login"}},
		"sign-in, hidden":   {"POST", "//a/../%6cogin", "acme", []string{"login"}},
		"page of sign-in":   {"GET", "/login", "", []string{"address"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/v1/authz", nil)
			r.RemoteAddr = "127.0.0.1:1234"
			r.Header.Set("X-Forwarded-Method", c.method)
			r.Header.Set("X-Forwarded-Uri", c.uri)
			r.Header.Set("X-Forwarded-For", "192.0.2.7")
			r.Header.Set("X-Account", c.account)
			made, err := mapping.Map(r)
			if err != nil || !made.Ruled || made.Ignored {
				t.Fatalf("%+v, %v", made, err)
			}
			var names []string
			for _, l := range matcher.Append(nil, made.Request.Domain, made.Request.Descriptors) {
				names = append(names, l.Name)
			}
			if !slices.Equal(names, c.limits) {
				t.Errorf("%v lead to %v and not to %v", made.Request.Descriptors, names, c.limits)
			}
		})
	}
}
