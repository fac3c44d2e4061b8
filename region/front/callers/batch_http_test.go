package callers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
)

// batchHTTP sends a batch to the handler, and returns the answer as a person would read it.
func batchHTTP(s *Server, body string) string {
	return fronts.Exchange(s.http.Handler, http.MethodPost, "/v1/check-batch", "application/json", body)
}

// TestBatchHTTP: the decisions come in the order of the requests, with status 200. A request that
// is wrong in any way is answered alone.
func TestBatchHTTP(t *testing.T) {
	node := &fronts.Node{Decide: func(q admit.Request) (admit.Decision, error) {
		receipt := map[bool]string{true: fronts.Receipt}[q.Receipt]
		return admit.Decision{Allowed: q.Cost == 1, Reason: admit.OverLimit, Node: "n1",
			Region: "us-east", Sequence: uint64(q.Cost), Receipt: receipt}, nil
	}}
	s := newServer(t, node, fronts.Quiet())
	const about = `"node":"n1","region":"us-east","degraded":false,"sequence":`
	wrong := func(problem string) string {
		return `{"allowed":false,"reason":"invalid_request",` + about + `0,"problem":` + problem + `},`
	}
	fronts.Compare(t, batchHTTP(s, `{"requests":[
		{"domain":"api","cost":2},
		{"domain":"api","cost":1.5},
		{"domain":"api","hits":1},
		{"domain":"api","domain":"api"},
		null,
		[{"domain":"api"}],
		{},
		{"domain":"api","descriptors":{"account":"`+"\xff"+`"}},
		{"domain":"api","descriptors":{"a\nb":"\ud800"}},
		{"domain":"api","receipt":true,"request_id":"r1"}]}`),
		"200\n"+fronts.JSONType+`{"decisions":[`+
			`{"allowed":false,"reason":"over_limit",`+about+`2},`+
			wrong(`"cost: `+costWords+`"`)+
			wrong(`"request: has the unknown field \"hits\"; there are domain, descriptors, cost, request_id, receipt and question"`)+
			wrong(`"request: has \"domain\" twice"`)+
			wrong(`"request: must be a JSON object"`)+
			wrong(`"request: must be a JSON object"`)+
			wrong(`"domain: is missing; name the domain of the limits to check"`)+
			wrong(`"descriptors.account: is not valid UTF-8"`)+
			wrong(`"descriptors[\"a\\nb\"]: has half a character (a \\u escape of a lone surrogate)"`)+
			`{"allowed":true,"reason":"over_limit",`+about+`1,"receipt":"-Rc_9"}]}`)
	ids := 0
	for _, q := range node.Checked {
		if q.Caller != "192.0.2.1" {
			t.Errorf("%+v is of no caller", q)
		}
		if q.ID == "r1" {
			ids++
		}
	}
	if ids != 1 {
		t.Errorf("%d requests came with their id", ids)
	}
}

// TestBatchHTTPRefused: a body that is no batch is a problem, and reaches no node.
func TestBatchHTTPRefused(t *testing.T) {
	node := &fronts.Node{}
	s := newServer(t, node, fronts.Quiet())
	of := func(n int) string {
		return `{"requests":[` + strings.TrimSuffix(strings.Repeat(`{"domain":"api"},`, n), ",") + `]}`
	}
	bad := func(field, detail string) string {
		return fmt.Sprintf(`400
%s{"type":"about:blank","title":"Bad Request","status":400,"detail":%q,"field":%q}`, fronts.ProblemType,
			field+": "+detail, field)
	}
	for _, c := range []struct{ name, body, want string }{
		{"no requests", `{}`, bad("requests", "has no requests; send 1 to 1000")},
		{"an empty list", of(0), bad("requests", "has no requests; send 1 to 1000")},
		{"too many", of(maxInBatch + 1), bad("requests",
			"has more than 1000 requests; send at most as many in a call")},
		{"no list", `{"requests":{"domain":"api"}}`, bad("requests", "must be a JSON list")},
		{"null", `{"requests":null}`, bad("requests", "must be a JSON list")},
		{"a bare list", `[{"domain":"api"}]`, bad("body", "must be a JSON object")},
		{"twice", `{"requests":[{}],"requests":[{}]}`, bad("body", `has "requests" twice`)},
		{"another field", `{"decisions":[]}`, bad("body",
			`has the unknown field "decisions"; there is only requests`)},
		{"cut short", `{"requests":[{}`, bad("body",
			"is not one JSON value: unexpected end of JSON input, at byte 15")},
		{"too long", `{"requests":[{"domain":"` + strings.Repeat("a", maxBatchBytes) + `"}]}`,
			"413\n" + fronts.ProblemType + `{"type":"about:blank","title":"Request Entity Too Large","status":413,"detail":"the body is larger than 1048576 bytes"}`},
	} {
		t.Run(c.name, func(t *testing.T) { fronts.Compare(t, batchHTTP(s, c.body), c.want) })
	}
	if got := fronts.Exchange(s.http.Handler, http.MethodGet, "/v1/check-batch", "", ""); !strings.HasPrefix(got,
		"405\nAllow: POST\n") {
		t.Error(got)
	}
	if checked, _ := node.Asked(); checked != 0 {
		t.Errorf("%d requests of refused batches reached the node", checked)
	}
	node.Err = errors.New("the node was closed")
	if got := batchHTTP(s, of(maxInBatch)); !strings.HasPrefix(got, "503\n"+fronts.ProblemType) {
		t.Errorf("a node that fails: %s", got)
	}
}

// TestBatchesHTTPAreShed: over HTTP, too, batches of a caller with much work waiting are refused
// unread, and so are those for which no place is left.
func TestBatchesHTTPAreShed(t *testing.T) {
	shed := "503\n" + fronts.ProblemType + `Retry-After: 1
{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"` + overloaded +
		`","undecided":true,"reason":"queue_full","retry_after_ms":50}`
	large := `{"requests":[{"domain":"api"}` + strings.Repeat(" ", largeCall) + `]}`
	node := &fronts.Node{Decision: fronts.Allowed(), BusyCallers: map[string]bool{"192.0.2.1": true}}
	s := newServer(t, node, fronts.Quiet())
	fronts.Compare(t, batchHTTP(s, large), shed)
	node.BusyCallers = nil
	var all []func()
	for range maxBatches {
		if leave := s.batches.take("192.0.2.1"); leave != nil {
			all = append(all, leave)
		}
	}
	fronts.Compare(t, batchHTTP(s, large), shed)
	if checked, _ := node.Asked(); checked != 0 {
		t.Errorf("%d requests of refused batches reached the node", checked)
	}
	if leave := s.batches.take("another"); leave == nil {
		t.Error("a caller finds no place beside one that takes all it can")
	} else {
		leave()
	}
	for _, leave := range all {
		leave()
	}
	if got := batchHTTP(s, large); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	if s.batches.taken != 0 || len(s.batches.callers) != 0 {
		t.Errorf("what was answered still has a place: %v", s.batches.callers)
	}
	page := metricsOf(t, s)
	if want := "quotad_calls_shed_total{port=\"http\"} 2\n"; !strings.Contains(page, want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// TestBatchPlacesAreBounded: however many callers there are, there are no more than maxBatches.
func TestBatchPlacesAreBounded(t *testing.T) {
	var p places
	var callers sync.WaitGroup
	for i := range 4 * maxBatches {
		callers.Go(func() { p.take(fmt.Sprint(i)) })
	}
	callers.Wait()
	if p.taken != maxBatches {
		t.Errorf("%d places were taken, want %d", p.taken, maxBatches)
	}
}

// FuzzDecodeBatch: each request of a batch is read, or refused, as decodeCheck does it with the
// text that encoding/json finds there.
func FuzzDecodeBatch(f *testing.F) {
	for _, seed := range []string{fronts.Request, `{"domain":"api","cost":1e3}`, `{"domain":"\ud800"}`,
		`{"domain":"api","domain":"b"}`, "null", "{\"\xff\":1}"} {
		f.Add([]byte(`{"requests":[` + seed + `]}`))
		f.Add([]byte(`{"requests":[{"domain":"api"}, ` + seed + "\n]}"))
	}
	f.Add([]byte(`{"requests":{}}`))
	f.Add([]byte(`{"requests":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := decodeBatch(body)
		if err != nil {
			if _, ok := errors.AsType[*invalid.Field](err); !ok {
				t.Fatalf("%q is refused with %T: %v", body, err, err)
			}
			return
		}
		var lenient struct{ Requests []json.RawMessage }
		if err := json.Unmarshal(body, &lenient); err != nil || len(lenient.Requests) != len(all) {
			t.Fatalf("%q has %d requests here, %d for encoding/json: %v", body, len(all),
				len(lenient.Requests), err)
		}
		for i, q := range all {
			alone, err := decodeCheck(lenient.Requests[i])
			if wrong := q.Validate(); (err == nil) != (wrong == nil) || err == nil && !same(q, alone) {
				t.Fatalf("request %d of %q is %+v, %v; alone %+v, %v", i, body, q, wrong, alone, err)
			}
		}
	})
}
