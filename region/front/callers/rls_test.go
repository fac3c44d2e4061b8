package callers

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
)

// envoysNode returns a node with limits for Envoy.
func envoysNode(t *testing.T, server *servers.Server) *fronts.Real {
	t.Helper()
	return fronts.Start(t, server, strings.ReplaceAll(`
  - {name: account, alias: per account, domain: envoy, entries: [{key: account}], algorithm: fixed_window, limit: 5, window: Wm}
  - {name: path, domain: envoy, entries: [{key: account}, {key: path, value: /login*, shared: true}], algorithm: fixed_window, limit: 3, window: Wm}
  - {name: big, domain: envoy, entries: [{key: big}], algorithm: fixed_window, limit: 5000000000, window: Wm}
  - {name: shadow, domain: envoy, entries: [{key: shadow}], algorithm: fixed_window, limit: 1, window: Wm, shadow: true}
  - {name: one, domain: envoy, entries: [{key: one}], algorithm: fixed_window, limit: 1, window: Wm, alternative: true}
  - {name: two, domain: envoy, entries: [{key: two}], algorithm: fixed_window, limit: 2, window: Wm, alternative: true}
  - {name: general, domain: envoy, entries: [{key: general}], algorithm: fixed_window, limit: 1, window: Wm}
  - {name: special, domain: envoy, entries: [{key: special}], replaces: [general], algorithm: fixed_window, limit: 9, window: Wm}
  - {name: queue, domain: envoy, entries: [{key: queue}], algorithm: leaky_bucket, limit: 100, burst: 100, window: Wm}
  - {name: log, domain: envoy, entries: [{key: log}], algorithm: sliding_window_log, limit: 4, window: Wm}
  - {name: tokens, domain: envoy, entries: [{key: tokens}], algorithm: fixed_window, limit: 1000, window: Wm, charge: always}
  - {name: bytes, domain: envoy, entries: [{key: bytes}], algorithm: token_bucket, limit: 100, window: Wm, charge: always}
  - {name: account, domain: apart, entries: [{key: account}], algorithm: fixed_window, limit: 2, window: Wm}
  - {name: path, domain: apart, entries: [{key: path}], algorithm: fixed_window, limit: 4, window: Wm}
  - {name: first, domain: quota, entries: [{key: first}], algorithm: fixed_window, limit: 1, window: Wm, alternative: true}
  - {name: second, domain: quota, entries: [{key: second}], algorithm: fixed_window, limit: 9, window: Wm, alternative: true}
  - {name: pardon, domain: apart, alias: "", entries: [{key: pardon}], replaces: [ban, shut], algorithm: fixed_window, limit: 9, window: Wm}
  - {name: third, domain: envoy, entries: [{key: third}], algorithm: fixed_window, limit: 9, window: Wm, alternative: true}
  - {name: known, domain: strict, key: [account], algorithm: fixed_window, limit: 2, window: Wm}
domains:
  - {name: envoy, negative_hits: give_back}
  - {name: apart, descriptors: apart}
  - {name: strict, on_no_limit: deny}
  - {name: quota, descriptors: apart}
exempt:
  - {domain: envoy, entries: [{key: account, value: internal}], unlimited: true}
  - {domain: envoy, entries: [{key: account, value: none}]}
  - {domain: envoy, entries: [{key: account, value: bad}], deny: true}
  - {domain: apart, entries: [{key: banned}], deny: true, window: 24h, alias: ban}
  - {domain: apart, entries: [{key: watched}], window: 1h, alias: watched}
  - {domain: quota, entries: [{key: shut}], deny: true, window: 1h, alias: shut, alternative: true}
`, "Wm", fmt.Sprintf("%vm", fronts.RoomyWindow().Minutes())))
}

// described makes "account=7 path=/login 3" a descriptor with hits of its own; the words before the
// number are its entries.
func described(text string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for word := range strings.FieldsSeq(text) {
		name, value, pair := strings.Cut(word, "=")
		if pair {
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: name, Value: value})
			continue
		}
		var hits int64
		if _, err := fmt.Sscan(word, &hits); err != nil {
			panic(err)
		}
		d.IsNegativeHits = hits < 0
		d.HitsAddend = wrapperspb.UInt64(uint64(max(hits, -hits)))
	}
	return d
}

// asking makes "envoy: account=7 | path=/x 3" a request of the domain.
func asking(text string) *envoy.RateLimitRequest {
	domain, rest, _ := strings.Cut(text, ":")
	m := &envoy.RateLimitRequest{Domain: domain}
	for part := range strings.SplitSeq(rest, "|") {
		m.Descriptors = append(m.Descriptors, described(part))
	}
	return m
}

// words writes an answer as "OVER_LIMIT: per account 5/60m 0 over | -".
func words(r *envoy.RateLimitResponse) string {
	var parts []string
	for _, s := range r.GetStatuses() {
		text := "-"
		if l := s.GetCurrentLimit(); l != nil {
			text = fmt.Sprintf("%s %d left %d", l.GetName(), l.GetRequestsPerUnit(), s.GetLimitRemaining())
			if s.GetDurationUntilReset().AsDuration() <= 0 && s.GetLimitRemaining() < l.GetRequestsPerUnit() {
				text += " without a reset"
			}
		} else if s.GetLimitRemaining() == math.MaxUint32 {
			text = "unlimited"
		}
		if s.GetCode() == overLimit {
			text += " over"
		}
		parts = append(parts, text)
	}
	return r.GetOverallCode().String() + ": " + strings.Join(parts, " | ")
}

// TestEnvoyIsAnswered plays requests of Envoy in order, on both kinds of store.
func TestEnvoyIsAnswered(t *testing.T) {
	type step struct{ ask, want string }
	steps := []step{
		{"envoy: account=7", "OK: per account 5 left 4"},
		{"envoy: account=7 | account=7 path=/login/a", "OK: per account 5 left 3 | path 3 left 2"},
		{"envoy: account=7 1 | account=7 path=/login/b 2", "OK: per account 5 left 2 | path 3 left 0"},
		// All or nothing: the first has room, and is not charged.
		{"envoy: account=7 | account=7 path=/login", "OVER_LIMIT: per account 5 left 2 | path 3 left 0 over"},
		{"envoy: account=7 0 | account=7 path=/login 0", "OVER_LIMIT: per account 5 left 2 | path 3 left 0 over"},
		{"envoy: account=7 3", "OVER_LIMIT: per account 5 left 0 over"},
		{"envoy: account=7 99999999999999999", "OVER_LIMIT: per account 5 left 0 over"},
		// One bucket twice is charged once, the most that it is charged.
		{"envoy: account=8 | account=8 2", "OK: per account 5 left 3 | per account 5 left 3"},
		{"envoy: account=7 -1", "OK: per account 5 left 3"},
		{"envoy: account=7 -100", "OK: per account 5 left 5"},
		{"envoy: log=1 | log=1 2", "OK: log 4 left 2 | log 4 left 2"},
		{"envoy: log=1 -1", "OK: log 4 left 3"},
		{"envoy: queue=1 -1", "OK: queue 100 left 100"},
		// The document does not let callers of this domain give back.
		{"apart: account=70 2", "OK: account 2 left 0"},
		{"apart: account=70 -2", "OVER_LIMIT: account 2 left 0 over"},
		{"envoy: other=7", "OK: -"},
		{"envoy: account=7 other=1", "OK: -"},
		{"envoy: account=internal | account=none | account=9", "OK: unlimited | - | per account 5 left 4"},
		{"envoy: account=bad", "OVER_LIMIT:  0 left 0 over"},
		{"envoy: account=9 | account=bad", "OVER_LIMIT: - |  0 left 0 over"},
		{"envoy: account=9", "OK: per account 5 left 3"},
		{"envoy: big=1", "OK: big 4294967295 left 4294967295"},
		{"envoy: shadow=1", "OK: shadow 1 left 0"},
		{"envoy: shadow=1", "OK: shadow 1 left 0"},
		{"envoy: one=1 | two=1", "OK: one 1 left 0 | two 2 left 1"},
		{"envoy: one=1 | two=1", "OK: one 1 left 0 over | two 2 left 0"},
		{"envoy: one=1 | two=1", "OVER_LIMIT: one 1 left 0 over | two 2 left 0 over"},
		{"envoy: special=1 | general=1", "OK: special 9 left 8 | -"},
		{"envoy: general=1", "OK: general 1 left 0"},
		{"envoy: special=1 | general=1", "OK: special 9 left 7 | -"},
		{"apart: account=1 | path=/x", "OK: account 2 left 1 | path 4 left 3"},
		{"apart: account=1 | path=/x", "OK: account 2 left 0 | path 4 left 2"},
		// Each is charged for itself, the denied one is not.
		{"apart: account=1 | path=/x", "OVER_LIMIT: account 2 left 0 over | path 4 left 1"},
		{"apart: account=1 | path=/x", "OVER_LIMIT: account 2 left 0 over | path 4 left 0"},
		// Costs that are known only afterwards: none asks, and others are charged whatever is left.
		{"envoy: tokens=1 0 | account=10", "OK: tokens 1000 left 1000 | per account 5 left 4"},
		{"envoy: tokens=1 990", "OK: tokens 1000 left 10"},
		{"envoy: tokens=1 0 | bytes=1 0", "OK: tokens 1000 left 10 | bytes 100 left 100"},
		{"envoy: tokens=1 37 | bytes=1 60", "OVER_LIMIT: tokens 1000 left 0 over | bytes 100 left 40"},
		{"envoy: tokens=1 0 | bytes=1 0", "OVER_LIMIT: tokens 1000 left 0 over | bytes 100 left 40"},
		{"envoy: tokens=1 0 | account=10", "OVER_LIMIT: tokens 1000 left 0 over | per account 5 left 4"},
		{"envoy: account=10", "OK: per account 5 left 3"},
		{"envoy: bytes=1 9000 | account=10 4", "OVER_LIMIT: bytes 100 left 0 over | per account 5 left 0 over"},
		{"envoy: tokens=1 0 | bytes=1 20 | account=10", "OVER_LIMIT: tokens 1000 left 0 over | bytes 100 left 0 over | per account 5 left 3"},
		{"envoy: account=10", "OK: per account 5 left 2"},
		// Alternative limits, whatever each of them costs.
		{"quota: first=1", "OK: first 1 left 0"},
		{"quota: first=1 0 | second=1 0", "OK: first 1 left 0 over | second 9 left 9"},
		{"quota: first=1 0 | second=1", "OK: first 1 left 0 over | second 9 left 8"},
		{"quota: first=1 | second=1 0", "OK: first 1 left 0 over | second 9 left 8"},
		{"quota: first=1 0", "OVER_LIMIT: first 1 left 0 over"},
		{"quota: shut=1 | second=1", "OK: shut 0 left 0 over | second 9 left 7"},
		{"quota: shut=1", "OVER_LIMIT: shut 0 left 0 over"},
		{"envoy: one=2 | third=2 3", "OK: one 1 left 0 | third 9 left 6"},
		{"envoy: one=2 0 | third=2 0", "OK: one 1 left 0 over | third 9 left 6"},
		{"envoy: one=2 0 | third=2 2", "OK: one 1 left 0 over | third 9 left 4"},
		{"envoy: one=2 2 | third=2 0", "OK: one 1 left 0 over | third 9 left 4"},
		// What asks and has none left takes nothing from the others.
		{"apart: account=1 0 | path=/y", "OVER_LIMIT: account 2 left 0 over | path 4 left 3"},
		{"envoy: account=8 0 | account=10 0", "OK: per account 5 left 3 | per account 5 left 2"},
		// A limit of 0 is told, and replaced.
		{"apart: banned=1", "OVER_LIMIT: ban 0 left 0 over"},
		{"apart: watched=1", "OK: watched 0 left 0"},
		{"apart: banned=1 | pardon=1", "OK: - |  9 left 8"},
		{"apart: banned=1 | pardon=1 0", "OK: - |  9 left 8"},
		{"apart: banned=1 0 | pardon=1 -1", "OK: - |  9 left 8"},
		{"strict: account=1 user=7", "OK: known 2 left 1"},
		{"strict: user=7 account=1", "OK: known 2 left 0"},
		{"strict: acount=1", "OVER_LIMIT: - over"},
		{"nowhere: account=1", "OK: -"},
	}
	// More limits than can be decided at once are denied, and not charged.
	var many, refused []string
	for i := range 12 {
		many, refused = append(many, fmt.Sprintf("account=%d", 100+i)), append(refused, " 0 left 0 over")
	}
	steps = append(steps, step{"envoy: " + strings.Join(many, " | "),
		"OVER_LIMIT: " + strings.Join(refused, " | ")},
		step{"envoy: account=100", "OK: per account 5 left 4"})
	steps = append(steps, step{"envoy: " + strings.Repeat("a=1 | ", 16) + "a=1",
		"OVER_LIMIT: " + strings.Repeat(" 0 left 0 over | ", 16) + " 0 left 0 over"},
		step{"envoy: " + strings.Repeat("a=1 ", 17), "OVER_LIMIT:  0 left 0 over"})
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			node := envoysNode(t, start(t))
			client := envoy.NewRateLimitServiceClient(dialed(t, newServer(t, node, fronts.Quiet())))
			for i, step := range steps {
				r, err := client.ShouldRateLimit(t.Context(), asking(step.ask))
				if err != nil {
					t.Fatalf("step %d, %s: %v", i, step.ask, err)
				}
				if got := words(r); got != step.want {
					t.Errorf("step %d, %s:\ngot  %s\nwant %s", i, step.ask, got, step.want)
				}
			}
		})
	}
}

func TestEnvoyIsToldWhatIsWrong(t *testing.T) {
	s := newServer(t, &fronts.Node{}, fronts.Quiet())
	client := envoy.NewRateLimitServiceClient(dialed(t, s))
	for text, want := range map[string]*envoy.RateLimitRequest{
		"domain: is missing":                asking(": account=1"),
		"domain: is longer than 63 bytes":   asking(strings.Repeat("d", 64) + ": account=1"),
		"descriptors: is empty":             {Domain: "envoy"},
		"descriptors[1]: has no entries":    {Domain: "envoy", Descriptors: []*commonv3.RateLimitDescriptor{described("a=1"), {}}},
		"descriptors[0].entries[0].key: is": asking("envoy: =1"),
		"entries[0].value: is longer":       asking("envoy: a=" + strings.Repeat("v", 64<<10+1)),
	} {
		_, err := client.ShouldRateLimit(t.Context(), want)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("want %q: %v", text, err)
		}
	}
}

// A limit that comes with a descriptor is none, and a long value is one like any other.
func TestEnvoyCannotBringALimit(t *testing.T) {
	node := envoysNode(t, fixtures.Kinds["embedded"](t))
	s := newServer(t, node, fronts.Quiet())
	client := envoy.NewRateLimitServiceClient(dialed(t, s))
	for i := range 7 {
		m := asking("envoy: account=" + strings.Repeat("v", 5000))
		m.Descriptors[0].Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1000,
			Unit: typev3.RateLimitUnit_HOUR}
		r, err := client.ShouldRateLimit(t.Context(), m)
		if err != nil || (r.GetOverallCode() == overLimit) != (i >= 5) {
			t.Errorf("request %d: %v, %v", i, r, err)
		}
	}
	if page := metricsOf(t, s); !strings.Contains(page, "quotad_rls_ignored_limits_total 7\n") {
		t.Errorf("the limits that came are not counted: %s", page)
	}
}

func TestEnvoysRequestsAsJSON(t *testing.T) {
	node := envoysNode(t, fixtures.Kinds["embedded"](t))
	s := newServer(t, node, fronts.Quiet())
	for _, step := range []struct {
		body string
		code int
		want string
	}{
		{`{"domain":"envoy","descriptors":[{"entries":[{"key":"account","value":"7"}]}],"hitsAddend":5}`, 200, `"overallCode":"OK"`},
		{`{"domain":"envoy","descriptors":[{"entries":[{"key":"account","value":"7"}]}]}`, 429, `"overallCode":"OVER_LIMIT"`},
		{`{"domain":"envoy","descriptors":[{"entries":[{"key":"account","value":"7\",\"x\":\"8"}]}]}`, 200, `"name":"per account"`},
		{`{"domain":"envoy","descriptors":[]}`, 400, "descriptors: is empty"},
		{`{"domain":"envoy","descripters":[]}`, 400, "descripters"},
		{`nonsense`, 400, "RateLimitRequest"},
		{``, 400, "RateLimitRequest"},
		{strings.Repeat("x", wire.MaxBodyBytes+1), 413, ""},
	} {
		got := fronts.Exchange(s.http.Handler, http.MethodPost, "/json", "application/x-www-form-urlencoded", step.body)
		if plain := strings.ReplaceAll(got, ": ", ":"); !strings.HasPrefix(got, fmt.Sprintln(step.code)) ||
			!strings.Contains(plain, strings.ReplaceAll(step.want, ": ", ":")) {
			t.Errorf("%.60s: %s; want %d %s", step.body, got, step.code, step.want)
		}
	}
}

// TestEnvoyAddsHeaders: with the setting, Envoy is told the headers of the decision that denies, or
// of the one with least left.
func TestEnvoyAddsHeaders(t *testing.T) {
	node := envoysNode(t, fixtures.Kinds["embedded"](t))
	s := startServer(node, fronts.Quiet(), Options{EnvoyHeaders: BothHeaders})
	defer func() { _ = s.Close() }() // it served nothing
	for i, step := range []struct{ ask, has string }{
		{"apart: account=1 | path=/x", "x-ratelimit-remaining: 1"},
		{"apart: account=1 | path=/x 3", "x-ratelimit-remaining: 0"},
		{"apart: account=1 | path=/y", "retry-after: "},
		{"envoy: account=1 | account=1 path=/login", `ratelimit: "account";r=4;t=`},
		{"envoy: other=1", ""},
	} {
		r, err := s.rls.limit(t.Context(), asking(step.ask), "envoy", 0)
		suite.Must(t, err)
		var lines []string
		for _, h := range r.GetResponseHeadersToAdd() {
			lines = append(lines, h.GetKey()+": "+h.GetValue())
		}
		if text := strings.Join(lines, "\n"); !strings.Contains(text, step.has) || (step.has == "") != (text == "") {
			t.Errorf("step %d, %s: want %q in\n%s", i, step.ask, step.has, text)
		}
	}
}

// TestEnvoysMalformedRequests: a message that is none is blamed on the caller.
func TestEnvoysMalformedRequests(t *testing.T) {
	node := &fronts.Node{Decision: fronts.Allowed()}
	conn := dialed(t, newServer(t, node, fronts.Quiet()))
	err := conn.Invoke(t.Context(), "/"+envoy.RateLimitService_ServiceDesc.ServiceName+"/ShouldRateLimit",
		text(1, "edge")[:3], nil, grpc.ForceCodecV2(fronts.RawCodec{}))
	wantViolations(t, err, "message")
	if checked, peeked := node.Asked(); checked+peeked != 0 {
		t.Error("the node was asked")
	}
}

// TestEnvoysBytesThatAreNoText: what a client wrote in a header is decided whatever it is, since Envoy
// lets pass what is answered with an error.
func TestEnvoysBytesThatAreNoText(t *testing.T) {
	for sent, want := range map[string]string{"v": "v", "v\xff": "v\x1a", "\xc3\xa9\xc3": "\u00e9\x1a",
		"\xed\xa0\x80w": "\x1a\x1a\x1aw", "\xff\xfe": "\x1a\x1a"} {
		node := &fronts.Node{Decision: fronts.Allowed()}
		conn := dialed(t, newServer(t, node, fronts.Quiet()))
		entry := string(text(1, string(append(text(1, "tenant"), text(2, sent)...))))
		answer := []byte{}
		err := conn.Invoke(t.Context(), "/"+envoy.RateLimitService_ServiceDesc.ServiceName+"/ShouldRateLimit",
			append(text(1, "edge"), text(2, entry)...), &answer, grpc.ForceCodecV2(fronts.RawCodec{}))
		if err != nil || len(node.Checked) != 1 || node.Checked[0].Lists[0].Entries[0].Value != want {
			t.Errorf("%q: %v, asked %+v", sent, err, node.Checked)
		}
	}
}

// TestWhoGaveBackIsWrittenDown: what is given back by negative hits is in the audit log with its
// caller, over HTTP too, and where the domain does not allow it nothing is.
func TestWhoGaveBackIsWrittenDown(t *testing.T) {
	var written bytes.Buffer
	node := &fronts.Node{Settled: receipts.Settled{Charges: []receipts.SettledCharge{{Back: 3}}}}
	var err error
	if node.Open, err = policy.Parse("limits.yaml", []byte(fronts.Document+
		"domains: [{name: back, negative_hits: give_back}]\n")); err != nil {
		t.Fatal(err)
	}
	s := startServer(node, fronts.Quiet(), Options{Port: wire.Port{Audit: audit.New(&written, "us-east/n1", fronts.Quiet())}})
	defer s.Close()
	ask := func(domain string) {
		r := httptest.NewRequest("POST", "/json", strings.NewReader(`{"domain": "`+domain+
			`", "descriptors": [{"entries": [{"key": "account", "value": "42"}], "is_negative_hits": true}]}`))
		s.http.Handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	ask("forward")
	if written.Len() > 0 {
		t.Errorf("written down: %s", &written)
	}
	ask("back")
	if got := written.String(); !strings.Contains(got, `"from":"192.0.2.1:1234"`) ||
		!strings.Contains(got, `"units":3`) {
		t.Errorf("written down: %s", got)
	}
}
