package callers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
)

// tellingNode returns a node of whose limits Envoy is told metadata.
func tellingNode(t *testing.T, server *servers.Server) *fronts.Real {
	t.Helper()
	return fronts.Start(t, server, strings.ReplaceAll(`
  - {name: user, domain: apart, entries: [{key: user}], algorithm: fixed_window, limit: 2, window: Wm, metadata: {tier: gold, route: {to: fast, weight: 1}, tags: [a]}}
  - {name: path, domain: apart, entries: [{key: path}], algorithm: fixed_window, limit: 9, window: Wm, metadata: {tier: silver, owner: null, route: {to: slow, retry: true}, tags: [b]}}
  - {name: flat, domain: apart, entries: [{key: flat}], algorithm: fixed_window, limit: 9, window: Wm, metadata: {route: none}}
  - {name: trial, domain: apart, entries: [{key: trial}], algorithm: fixed_window, limit: 1, window: Wm, shadow: true, metadata: {trial: true}}
  - {name: vip, domain: apart, entries: [{key: vip}], replaces: [user], algorithm: fixed_window, limit: 9, window: Wm}
  - {name: one, domain: apart, entries: [{key: one}], algorithm: fixed_window, limit: 1, window: Wm, alternative: true, metadata: {quota: one}}
  - {name: two, domain: apart, entries: [{key: two}], algorithm: fixed_window, limit: 9, window: Wm, alternative: true, metadata: {quota: two}}
  - {name: plain, domain: apart, entries: [{key: plain}], algorithm: fixed_window, limit: 9, window: Wm}
  - {name: first, domain: keys, key: [user], algorithm: fixed_window, limit: 9, window: Wm, metadata: {a: 1}}
  - {name: second, domain: keys, key: [user, path], algorithm: fixed_window, limit: 9, window: Wm, metadata: {a: 2, b: 2}}
  - {name: user, domain: together, entries: [{key: user}], algorithm: fixed_window, limit: 1, window: Wm, metadata: {user: x}}
  - {name: path, domain: together, entries: [{key: path}], algorithm: fixed_window, limit: 9, window: Wm, metadata: {path: x}}
  - {name: user, domain: silent, entries: [{key: user}], algorithm: fixed_window, limit: 1, window: Wm}
domains:
  - {name: apart, descriptors: apart, negative_hits: give_back}
exempt:
  - {domain: apart, entries: [{key: watched}], window: 1h, metadata: {watched: true}}
  - {domain: apart, entries: [{key: free}], unlimited: true}
  - {domain: exempt, entries: [{key: watched}], window: 1h, metadata: {watched: true}}
`, "Wm", fmt.Sprintf("%vm", fronts.RoomyWindow().Minutes())))
}

// TestEnvoyIsToldMetadata plays requests of Envoy in order. What envoyproxy/ratelimit would answer to
// them is written down by hand.
func TestEnvoyIsToldMetadata(t *testing.T) {
	steps := []struct{ ask, code, metadata string }{
		{"apart: user=1", "OK", `{"tier":"gold","route":{"to":"fast","weight":1},"tags":["a"]}`},
		// The first descriptor counts, mappings are merged, lists are not.
		{"apart: user=1 | path=/x", "OK",
			`{"tier":"gold","route":{"to":"fast","weight":1,"retry":true},"tags":["a"],"owner":null}`},
		{"apart: path=/x | user=2", "OK",
			`{"tier":"silver","route":{"to":"slow","weight":1,"retry":true},"tags":["b"],"owner":null}`},
		{"apart: flat=1 | user=2", "OK", `{"tier":"gold","route":"none","tags":["a"]}`},
		{"apart: user=5 1 | flat=1", "OK", `{"tier":"gold","route":{"to":"fast","weight":1},"tags":["a"]}`},
		// Merging changed none of them.
		{"apart: user=3", "OK", `{"tier":"gold","route":{"to":"fast","weight":1},"tags":["a"]}`},
		// Of what is denied nothing is told, of the others all the same.
		{"apart: user=1", "OVER_LIMIT", ``},
		{"apart: user=1 | flat=1", "OVER_LIMIT", `{"route":"none"}`},
		{"apart: user=1 -1", "OK", `{"tier":"gold","route":{"to":"fast","weight":1},"tags":["a"]}`},
		{"apart: user=1 0", "OK", `{"tier":"gold","route":{"to":"fast","weight":1},"tags":["a"]}`},
		{"apart: trial=1", "OK", `{"trial":true}`},
		{"apart: trial=1", "OK", `{"trial":true}`},
		{"apart: user=4 | vip=1", "OK", ``},
		{"apart: one=1 | two=1", "OK", `{"quota":"one"}`},
		{"apart: one=1 | two=1", "OK", `{"quota":"two"}`},
		{"apart: one=1", "OVER_LIMIT", ``},
		{"apart: watched=1 | free=1 | plain=1 | nothing=1", "OK", `{"watched":true}`},
		{"apart: plain=1", "OK", ``},
		{"apart: nothing=1", "OK", ``},
		{"exempt: watched=1", "OK", `{"watched":true}`},
		{"keys: user=1", "OK", `{"a":1}`},
		{"keys: user=1 path=/x", "OK", `{"a":1,"b":2}`},
		{"together: user=1 | path=/x", "OK", `{"user":"x","path":"x"}`},
		{"together: user=1 | path=/x", "OVER_LIMIT", `{"path":"x"}`},
		{"silent: user=1", "OK", `nil`},
		{"silent: user=1", "OVER_LIMIT", `nil`},
		{"nowhere: user=1", "OK", `nil`},
		{"apart: " + strings.Repeat("plain=1 | ", 16) + "plain=1", "OVER_LIMIT", `nil`},
	}
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			client := envoy.NewRateLimitServiceClient(dialed(t, newServer(t, tellingNode(t, start(t)), fronts.Quiet())))
			for i, step := range steps {
				r, err := client.ShouldRateLimit(t.Context(), asking(step.ask))
				suite.Must(t, err)
				if r.GetOverallCode().String() != step.code {
					t.Errorf("step %d, %s: %s, want %s", i, step.ask, r.GetOverallCode(), step.code)
				}
				told := r.GetDynamicMetadata()
				if (told == nil) != (step.metadata == "nil") {
					t.Errorf("step %d, %s: told %v", i, step.ask, told)
				}
				if told != nil {
					wantTold(t, fmt.Sprintf("step %d, %s", i, step.ask), told.AsMap()["metadata"], step.metadata)
				}
			}
		})
	}
}

// wantTold compares a value with its JSON; the empty text is nil.
func wantTold(t *testing.T, what string, got any, text string) {
	t.Helper()
	var want any
	if text != "" {
		suite.Must(t, json.Unmarshal([]byte(text), &want))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// TestEnvoyIsToldWhatItAsked: the answer has the form of envoyproxy/ratelimit, over gRPC and as JSON.
func TestEnvoyIsToldWhatItAsked(t *testing.T) {
	s := newServer(t, tellingNode(t, fixtures.Kinds["embedded"](t)), fronts.Quiet())
	m := asking("apart: user=1 | path=/x a=b 0")
	m.HitsAddend = 2
	m.Descriptors[0].HitsAddend = nil
	m.Descriptors[1].Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 7, Unit: typev3.RateLimitUnit_HOUR}
	r, err := envoy.NewRateLimitServiceClient(dialed(t, s)).ShouldRateLimit(t.Context(), m)
	suite.Must(t, err)
	wantTold(t, "the answer", r.GetDynamicMetadata().AsMap(), fmt.Sprintf(`{
		"domain": "apart",
		"hitsAddend": 2,
		"descriptors": [{"entries": ["user=1"]}, {"entries": ["path=/x", "a=b"], "hitsAddend": 0, "limit": %q}],
		"metadata": {"tier": "gold", "route": {"to": "fast", "weight": 1}, "tags": ["a"]}}`, m.Descriptors[1].Limit))

	body := fronts.Exchange(s.http.Handler, http.MethodPost, "/json", "",
		`{"domain":"apart","descriptors":[{"entries":[{"key":"flat","value":"1"}]}]}`)
	var answer struct{ DynamicMetadata any }
	_, text, _ := strings.Cut(body, "{")
	suite.Must(t, json.Unmarshal([]byte("{"+text), &answer))
	wantTold(t, body, answer.DynamicMetadata,
		`{"domain": "apart", "descriptors": [{"entries": ["flat=1"]}], "metadata": {"route": "none"}}`)
}

// TestMetadataOfAnotherDocument: a document that came since tells its own.
func TestMetadataOfAnotherDocument(t *testing.T) {
	var sent sentMetadata
	for _, tier := range []string{"gold", "silver", "gold"} {
		d, err := policy.Parse("limits.yaml", []byte(fmt.Sprintf(`version: 1
regions: {us-east: {weight: 1}}
limits:
  - {name: a, domain: d, key: [k], algorithm: fixed_window, limit: 9, window: 1m, metadata: {tier: %s}}
  - {name: b, domain: d, key: [k], algorithm: fixed_window, limit: 9, window: 1m}
`, tier)))
		suite.Must(t, err)
		all := sent.all(d)
		if got := all[d.Limits[0].Metadata].AsMap()["tier"]; got != tier || len(all) != 1 {
			t.Errorf("%v of %v, want %s", got, all, tier)
		}
		if again := sent.all(d)[d.Limits[0].Metadata]; again != all[d.Limits[0].Metadata] {
			t.Error("it was made twice for one document")
		}
	}
}

// TestMerged compares what is merged with a twin that knows only maps, and sees that it changes nothing.
func TestMerged(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		first, second := drawFields(t, 1), drawFields(t, 1)
		a, err := structpb.NewStruct(first)
		suite.Must(t, err)
		b, err := structpb.NewStruct(second)
		suite.Must(t, err)
		got := merged(a, b).AsMap()
		if want := mergedMaps(first, second); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v and %v: %v, want %v", first, second, got, want)
		}
		if !reflect.DeepEqual(a.AsMap(), first) || !reflect.DeepEqual(b.AsMap(), second) {
			t.Fatalf("%v and %v became %v and %v", first, second, a, b)
		}
	})
}

func mergedMaps(first, second map[string]any) map[string]any {
	all := map[string]any{}
	for name := range second {
		all[name] = second[name]
	}
	for name := range first {
		all[name] = first[name]
		f, isMap := first[name].(map[string]any)
		s, too := second[name].(map[string]any)
		if isMap && too {
			all[name] = mergedMaps(f, s)
		}
	}
	return all
}

func drawFields(t *rapid.T, depth int) map[string]any {
	all := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case kind == 0:
			all[name] = nil
		case kind == 1 || depth > 3:
			all[name] = float64(rapid.IntRange(0, 9).Draw(t, "number"))
		case kind == 2:
			all[name] = []any{rapid.StringN(0, 3, 9).Draw(t, "text")}
		default:
			all[name] = drawFields(t, depth+1)
		}
	}
	return all
}
