// Package proxies tests the recipes for proxies, each with the configuration that users copy. What
// needs the proxies themselves has the build tag proxies: see make proxies.
package proxies

import (
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/front/authz"
)

// TestMappingLeadsToLimits shows which limits apply to what clients ask the proxies for.
func TestMappingLeadsToLimits(t *testing.T) {
	mapping, err := authz.Load("authz.yaml")
	suite.Must(t, err)
	limits, err := policy.Load("limits.yaml")
	suite.Must(t, err)
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

// TestPageLeadsToLimits: the page about proxies shows the mapping of this folder in another layout,
// and what it sends to /json meets a limit of this folder.
func TestPageLeadsToLimits(t *testing.T) {
	text, err := os.ReadFile("../../docs/how-to/behind-a-proxy.md")
	suite.Must(t, err)
	_, shown, found := strings.Cut(string(text), "```yaml authz file=authz.yaml\n")
	mapping, _, ended := strings.Cut(shown, "```\n")
	if !found || !ended {
		t.Fatal("the page has no mapping")
	}
	var here, there any
	file, err := os.ReadFile("authz.yaml")
	suite.Must(t, err)
	suite.Must(t, yaml.Unmarshal([]byte(mapping), &there))
	suite.Must(t, yaml.Unmarshal(file, &here))
	if !reflect.DeepEqual(here, there) {
		t.Errorf("the page shows %v, and the file has %v", there, here)
	}
	limits, err := policy.Load("limits.yaml")
	suite.Must(t, err)
	const asked = `{"domain":"web","descriptors":[{"entries":[{"key":"account","value":"acme"}]}]}`
	applies, _ := limits.Compile().AppendList(nil, "web",
		[]policy.KeyValue{{Name: "account", Value: "acme"}})
	if !strings.Contains(shown, asked) || len(applies) != 1 || applies[0].Name != "account" {
		t.Errorf("limits %v apply to what the page sends to /json", applies)
	}
}
