package envoy

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
)

// asked is what a client asks for: its address, and headers, of which some are those of HTTP/2.
type asked struct {
	address string
	headers map[string]string
}

// listsOf makes of a request the lists of entries that Envoy makes. It knows the actions of the
// recipe alone.
func listsOf(t *testing.T, limits []*route.RateLimit, a asked) (all [][]policy.KeyValue) {
	t.Helper()
	for _, l := range limits {
		var list []policy.KeyValue
		for _, action := range l.GetActions() {
			kv, fits := entry(t, action, a)
			if !fits {
				list = nil
				break
			}
			list = append(list, kv)
		}
		if len(list) > 0 {
			all = append(all, list)
		}
	}
	return all
}

// entry returns the entry of one action, and whether it fits the request.
func entry(t *testing.T, action *route.RateLimit_Action, a asked) (kv policy.KeyValue, fits bool) {
	t.Helper()
	if m := action.GetMaskedRemoteAddress(); m != nil {
		address := netip.MustParseAddr(a.address)
		bits := address.BitLen()
		if given := m.GetV6PrefixMaskLen(); given != nil && address.Is6() {
			bits = int(given.GetValue())
		}
		return policy.KeyValue{Name: "masked_remote_address",
			Value: netip.PrefixFrom(address, bits).Masked().String()}, true
	}
	m := action.GetHeaderValueMatch()
	if m == nil {
		t.Fatalf("this test does not know the action %v", action)
	}
	for _, h := range m.GetHeaders() {
		value, given := a.headers[strings.ToLower(h.GetName())]
		want := h.GetStringMatch()
		if !given || want.GetExact() != "" && value != want.GetExact() ||
			!strings.HasPrefix(value, want.GetPrefix()) || !matches(want.GetSafeRegex().GetRegex(), value) ||
			h.GetInvertMatch() {
			return kv, false
		}
	}
	return policy.KeyValue{Name: m.GetDescriptorKey(), Value: m.GetDescriptorValue()}, true
}

// matches reports whether an expression is empty, or all of a value is as it says.
func matches(expression, value string) bool {
	return expression == "" || regexp.MustCompile("^(?:"+expression+")$").MatchString(value)
}

// TestLimitsFitTheRoute shows which limits apply to what clients ask for: each list of entries that
// the route makes has the limit that is for it.
func TestLimitsFitTheRoute(t *testing.T) {
	limits, err := policy.Load("limits.yaml")
	suite.Must(t, err)
	if all := limits.Warnings(); len(all) > 0 {
		t.Errorf("the limits have warnings: %v", all)
	}
	_, c := recipe(t)
	domain := part[*ratelimit.RateLimit](t, c).GetDomain()
	host := part[*manager.HttpConnectionManager](t, c).GetRouteConfig().GetVirtualHosts()[0]
	matcher, applied := limits.Compile(), map[string]bool{}
	for name, c := range map[string]struct {
		asked
		limits []string
		value  string // that one of the entries has
	}{
		"a page": {asked{"192.0.2.7", map[string]string{":method": "GET", ":path": "/a"}},
			[]string{"address"}, "192.0.2.7/32"},
		"a page over IPv6": {asked{"2001:db8::7", map[string]string{":method": "GET", ":path": "/a"}},
			[]string{"address"}, "2001:db8::/64"},
		"sign-in": {asked{"192.0.2.7", map[string]string{":method": "POST", ":path": "/login?next=/"}},
			[]string{"login", "address"}, "sign-in"},
		"sign-in of another name": {asked{"192.0.2.7", map[string]string{":method": "POST", ":path": "/loginx"}},
			[]string{"address"}, ""},
		"sign-in with more that services cut off": {asked{"192.0.2.7", map[string]string{":method": "POST", ":path": "/login;v=1"}},
			[]string{"login", "address"}, "sign-in"},
		"below sign-in": {asked{"192.0.2.7", map[string]string{":method": "POST", ":path": "/login/now"}},
			[]string{"login", "address"}, "sign-in"},
		"page of sign-in": {asked{"192.0.2.7", map[string]string{":method": "GET", ":path": "/login"}},
			[]string{"address"}, ""},
		"an account": {asked{"192.0.2.7", map[string]string{":method": "GET", ":path": "/",
			"x-api-key": "key-of-acme"}}, []string{"address", "account"}, "acme"},
		"another account": {asked{"192.0.2.7", map[string]string{":method": "GET", ":path": "/",
			"x-api-key": "key-of-globex"}}, []string{"address", "account"}, "globex"},
		"no account": {asked{"192.0.2.7", map[string]string{":method": "GET", ":path": "/",
			"x-api-key": "made up", "x-account": "acme"}}, []string{"address"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var names, values []string
			for _, list := range listsOf(t, host.GetRateLimits(), c.asked) {
				all, _ := matcher.AppendList(nil, domain, list)
				if len(all) != 1 {
					t.Fatalf("%d limits apply to %v", len(all), list)
				}
				names = append(names, all[0].Name)
				applied[all[0].Name] = true
				for _, kv := range list {
					values = append(values, kv.Value)
				}
			}
			if !slices.Equal(names, c.limits) {
				t.Errorf("limits %v apply, and not %v", names, c.limits)
			}
			if c.value != "" && !slices.Contains(values, c.value) {
				t.Errorf("entries have the values %v, and not %s", values, c.value)
			}
		})
	}
	if len(applied) != len(limits.Limits) {
		t.Errorf("of %d limits only these are used: %v", len(limits.Limits),
			slices.Sorted(maps.Keys(applied)))
	}
}
