// Package envoy tests the recipes for Envoy: they must be what quotad writes and what Envoy's API takes, and their
// requests those that their limits are for. What needs a real Envoy has the build tag envoy: see make envoy.
package envoy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	// The types that typed_config names.
	local "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// config is the recipe, with the parts that typed_config holds.
type config struct {
	bootstrap *bootstrap.Bootstrap
	all       []proto.Message
}

// part returns the one part of a type.
func part[T proto.Message](t *testing.T, c config) (one T) {
	t.Helper()
	found := 0
	for _, m := range c.all {
		if typed, ok := m.(T); ok {
			one = typed
			found++
		}
	}
	if found != 1 {
		t.Fatalf("the recipe has %d parts of type %T", found, one)
	}
	return one
}

// read reads a configuration as Envoy does: it takes no unknown field, and no value that the API's
// rules forbid.
func read(text []byte) (c config, err error) {
	var plain any
	if err := yaml.UnmarshalWithOptions(text, &plain, yaml.Strict()); err != nil {
		return c, err
	}
	asJSON, err := json.Marshal(plain)
	if err != nil {
		return c, err
	}
	c.bootstrap = &bootstrap.Bootstrap{}
	if err := protojson.Unmarshal(asJSON, c.bootstrap); err != nil {
		return c, err
	}
	return c, c.add(c.bootstrap)
}

// add validates a message and all messages that it holds as Any, whatever the depth.
func (c *config) add(m proto.Message) error {
	c.all = append(c.all, m)
	v, ok := m.(interface{ ValidateAll() error })
	if !ok {
		return fmt.Errorf("%T cannot be validated", m)
	}
	return errors.Join(v.ValidateAll(), c.addParts(m.ProtoReflect()))
}

func (c *config) addParts(m protoreflect.Message) (err error) {
	if packed, ok := m.Interface().(*anypb.Any); ok {
		inner, err := packed.UnmarshalNew()
		if err != nil {
			return err
		}
		return c.add(inner)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				err = errors.Join(err, c.addParts(v.Message()))
				return true
			})
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				err = errors.Join(err, c.addParts(v.List().Get(i).Message()))
			}
		case !f.IsMap() && !f.IsList() && f.Message() != nil:
			err = errors.Join(err, c.addParts(v.Message()))
		}
		return true
	})
	return err
}

// recipe returns the text of envoy.yaml, and what it says.
func recipe(t *testing.T) (string, config) {
	t.Helper()
	return load(t, "envoy.yaml")
}

// load returns a recipe's text, and what it says.
func load(t *testing.T, file string) (string, config) {
	t.Helper()
	text, err := os.ReadFile(file)
	suite.Must(t, err)
	c, err := read(text)
	suite.Must(t, err)
	return string(text), c
}

// TestRecipeIsValid: the recipe is what Envoy's API takes, and requests pass without quotad, unless
// the one line is changed that says so.
func TestRecipeIsValid(t *testing.T) {
	text, c := recipe(t)
	filter := part[*ratelimit.RateLimit](t, c)
	if filter.GetFailureModeDeny() || filter.GetTimeout().AsDuration() != time.Second {
		t.Errorf("the filter: %v", filter)
	}
	service := filter.GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName()
	clusters := map[string]bool{}
	for _, cluster := range c.bootstrap.GetStaticResources().GetClusters() {
		clusters[cluster.GetName()] = true
	}
	if !clusters[service] {
		t.Errorf("the filter asks %q, and there are %v", service, clusters)
	}
	if !part[*manager.HttpConnectionManager](t, c).GetUseRemoteAddress().GetValue() {
		t.Error("clients can make their addresses up")
	}
	const open, closed = "failure_mode_deny: false", "failure_mode_deny: true"
	if strings.Count(text, open) != 1 {
		t.Fatalf("%q does not stand there once", open)
	}
	changed, err := read([]byte(strings.Replace(text, open, closed, 1)))
	if err != nil || !part[*ratelimit.RateLimit](t, changed).GetFailureModeDeny() {
		t.Errorf("fail-closed: %v", err)
	}
}

// TestBoundsOfTheRecipe: the recipe has the bound of each of its limits, for the lists that the
// limit is for, and none of the defaults with which nothing is bounded.
func TestBoundsOfTheRecipe(t *testing.T) {
	_, c := recipe(t)
	filter, wait := part[*local.LocalRateLimit](t, c), part[*ratelimit.RateLimit](t, c).GetTimeout().AsDuration()
	limits, err := policy.Load("limits.yaml")
	suite.Must(t, err)
	bounds := map[string]policy.LocalBound{}
	for _, d := range filter.GetDescriptors() {
		var list []string
		for _, e := range d.GetEntries() {
			list = append(list, e.GetKey()+"="+e.GetValue())
		}
		b := d.GetTokenBucket()
		bounds[strings.Join(list, " ")] = policy.LocalBound{Tokens: b.GetMaxTokens(),
			TokensPerFill: b.GetTokensPerFill().GetValue(), FillInterval: b.GetFillInterval().AsDuration()}
	}
	for _, l := range limits.Limits {
		var list []string
		for _, e := range l.Entries {
			list = append(list, e.Name+"="+e.Value)
		}
		is, want := bounds[strings.Join(list, " ")], policy.LocalBound{}
		if want, _ = l.LocalBound(wait); is != want {
			t.Errorf("the bound of %s is %+v, and not %+v", l.Name, is, want)
		}
	}
	whole := filter.GetFilterEnabled().GetDefaultValue().GetNumerator() == 100 &&
		filter.GetFilterEnforced().GetDefaultValue().GetNumerator() == 100
	route := part[*manager.HttpConnectionManager](t, c).GetRouteConfig().GetVirtualHosts()[0]
	if !whole || filter.GetMaxDynamicDescriptors().GetValue() < 10_000 || !filter.GetEnableRetryAfterHeader() ||
		filter.GetAlwaysConsumeDefaultTokenBucket().GetValue() || len(bounds) != len(limits.Limits) ||
		!slices.EqualFunc(filter.GetRateLimits(), route.GetRateLimits(), func(a, b *routev3.RateLimit) bool { return proto.Equal(a, b) }) {
		t.Errorf("the bounds do not hold: %v", filter)
	}
}

// TestMistakesAreFound shows what the test of the recipe would find, in each part of it.
func TestMistakesAreFound(t *testing.T) {
	text, _ := recipe(t)
	for _, c := range []struct{ right, wrong string }{
		{"static_resources:", "static_resource:"},
		{"use_remote_address:", "use_remote_adress:"},
		{"failure_mode_deny:", "failure_mode_denied:"},
		{"domain: web", `domain: ""`},
		{"masked_remote_address:", "masked_address:"},
		{"v6_prefix_mask_len: 64", "v6_prefix_mask_len: 129"},
		{"v3.Router", "v3.Routers"},
		{"op: EQ", "op: EQUAL"},
		{"filter_enforced:", "filter_enforce:"},
		{"tokens_per_fill:", "tokens_a_fill:"},
		{"http2_protocol_options", "http2_options"},
		{"timeout: 1s", "timeout: 1000ms"},
		{"max_dynamic_descriptors: 100000", "max_descriptors: 100000"},
		{"healthy_panic_threshold: {value: 0}", "healthy_panic_threshold: {value: 101}"},
		{"connect_timeout: 1s", "connect_timeout: 1000ms"},
		{"port_value: 8081", "port_value: 80810"},
		{"stat_prefix: clients", "stat_prefix: clients\n                stat_prefix: twice"},
	} {
		if !strings.Contains(text, c.right) {
			t.Errorf("%q is not in the recipe", c.right)
		}
		if _, err := read([]byte(strings.Replace(text, c.right, c.wrong, 1))); err == nil {
			t.Errorf("%q in place of %q is taken", c.wrong, c.right)
		}
	}
}
