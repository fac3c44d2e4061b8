package envoyconfig

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
)

// request is what a client asks Envoy for. The headers are in lower case, and have those of HTTP/2.
type request struct {
	address string
	headers map[string]string
}

// limitsOf returns the rate_limits of the local bound of a configuration, which are also those of its
// virtual host.
func limitsOf(t suite.T, text string) (all []*route.RateLimit) {
	var whole any
	suite.Must(t, yaml.Unmarshal([]byte(text), &whole))
	for _, step := range []any{"static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config",
		"http_filters", 0, "typed_config", "rate_limits"} {
		if i, ok := step.(int); ok {
			whole = whole.([]any)[i]
		} else {
			whole = whole.(map[string]any)[step.(string)]
		}
	}
	plain := whole.([]any)
	for _, one := range plain {
		asJSON, err := json.Marshal(one)
		suite.Must(t, err)
		l := &route.RateLimit{}
		suite.Must(t, protojson.Unmarshal(asJSON, l))
		suite.Must(t, l.ValidateAll())
		all = append(all, l)
	}
	return all
}

// sent returns the lists that Envoy sends for a request.
func sent(t suite.T, limits []*route.RateLimit, r request) (all [][]policy.KeyValue) {
	for _, l := range limits {
		var list []policy.KeyValue
		for _, a := range l.GetActions() {
			if kv, fits := entryOf(t, a, r); fits {
				list = append(list, kv)
			}
		}
		if len(list) == len(l.GetActions()) {
			all = append(all, list)
		}
	}
	return all
}

func entryOf(t suite.T, a *route.RateLimit_Action, r request) (kv policy.KeyValue, fits bool) {
	switch {
	case a.GetMaskedRemoteAddress() != nil:
		m, address := a.GetMaskedRemoteAddress(), netip.MustParseAddr(r.address)
		bits := address.BitLen()
		if given := m.GetV4PrefixMaskLen(); given != nil && address.Is4() {
			bits = int(given.GetValue())
		}
		if given := m.GetV6PrefixMaskLen(); given != nil && address.Is6() {
			bits = int(given.GetValue())
		}
		return policy.KeyValue{Name: maskedAddress, Value: netip.PrefixFrom(address, bits).Masked().String()}, true
	case a.GetRemoteAddress() != nil:
		return policy.KeyValue{Name: wholeAddress, Value: r.address}, true
	case a.GetGenericKey() != nil:
		return policy.KeyValue{Name: a.GetGenericKey().GetDescriptorKey(), Value: a.GetGenericKey().GetDescriptorValue()}, true
	case a.GetRequestHeaders() != nil:
		m := a.GetRequestHeaders()
		value, given := r.headers[strings.ToLower(m.GetHeaderName())]
		return policy.KeyValue{Name: m.GetDescriptorKey(), Value: value}, given
	case a.GetHeaderValueMatch() != nil:
		m := a.GetHeaderValueMatch()
		for _, h := range m.GetHeaders() {
			if !meets(h, r) {
				return kv, false
			}
		}
		return policy.KeyValue{Name: m.GetDescriptorKey(), Value: m.GetDescriptorValue()}, true
	}
	t.Fatal("an action that this test does not know: ", a)
	return kv, false
}

// meets reports whether a request meets a condition as Envoy's API says.
func meets(h *route.HeaderMatcher, r request) bool {
	value, given := r.headers[strings.ToLower(h.GetName())]
	if _, present := h.GetHeaderMatchSpecifier().(*route.HeaderMatcher_PresentMatch); present {
		return (given == h.GetPresentMatch()) != h.GetInvertMatch()
	}
	if !given && !h.GetTreatMissingHeaderAsEmpty() {
		return false
	}
	s := h.GetStringMatch()
	fits := value == s.GetExact()
	if re := s.GetSafeRegex(); re != nil {
		fits = regexp.MustCompile("^(?:" + re.GetRegex() + ")$").MatchString(value)
	}
	return fits != h.GetInvertMatch()
}
