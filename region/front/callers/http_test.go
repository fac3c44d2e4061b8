package callers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

// TestDecisions shows every kind of decision as check and peek answer it.
func TestDecisions(t *testing.T) {
	const limit = "X-RateLimit-Limit: 1000\n"
	const counts57 = limit + "X-RateLimit-Remaining: 57\nX-RateLimit-Reset: 11\n"
	const counts0 = limit + "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 11\n"
	const allowedJSON = `{"allowed":true,"reason":"within_limit","limit":"account-minute","algorithm":"fixed_window","limit_units":1000,"entitlement":400,"remaining":57,"reset_after_ms":10000.25,"cell":29394720,"share":425,"at":"2025-11-20T23:59:49.999750Z","node":"n1","region":"us-east","degraded":false,"sequence":7}`
	const deniedJSON = `{"allowed":false,"reason":"over_limit","limit":"account-minute","algorithm":"fixed_window","limit_units":1000,"entitlement":400,"remaining":0,"reset_after_ms":10000.25,"retry_after_ms":10000.25,"cell":29394720,"share":425,"at":"2025-11-20T23:59:49.999750Z","node":"n1","region":"us-east","degraded":false,"sequence":7}`
	uncounted := func(allowed bool, reason string) string {
		return fmt.Sprintf(`"allowed":%v,"reason":%q,"limit":"account-minute","algorithm":"fixed_window","limit_units":1000,"entitlement":400,"node":"n1","region":"us-east","degraded":true,"sequence":8}`, allowed, reason)
	}
	// problem is what a denial has before the members of the decision.
	problem := func(kind, title, code, detail, decision string) string {
		return fmt.Sprintf(`{"type":"https://iana.org/assignments/http-problem-types#%s","title":%q,"status":%s,"detail":%q,"violated-policies":["account-minute"],`,
			kind, title, code, detail) + strings.TrimPrefix(decision, "{")
	}
	exceeded := func(reason admit.Reason, decision string) string {
		return problem("quota-exceeded", "Quota Exceeded", "429", denials[reason], decision)
	}
	for _, c := range []struct {
		name        string
		decision    admit.Decision
		check, peek string // peek is as check if empty
	}{
		{"allowed", fronts.Allowed(), "200\n" + fronts.JSONType + counts57 + allowedJSON, ""},
		{"denied", fronts.Denied(),
			"429\n" + fronts.ProblemType + "Retry-After: 11\n" + counts0 + exceeded(admit.OverLimit, deniedJSON),
			"200\n" + fronts.JSONType + counts0 + deniedJSON},
		{"denied, with units free for other classes",
			fronts.With(fronts.Denied(), func(d *admit.Decision) { d.Class, d.Kept = "batch", 170 }),
			"429\n" + fronts.ProblemType + "Retry-After: 11\n" + counts0 + problem("quota-exceeded", "Quota Exceeded", "429",
				"class batch has used its part of what this region has of the limit; 170 units are left, kept for classes with a larger part",
				strings.Replace(deniedJSON, `"retry_after_ms"`, `"class":"batch","kept":170,"retry_after_ms"`, 1)),
			"200\n" + fronts.JSONType + counts0 + strings.Replace(deniedJSON, `"retry_after_ms"`, `"class":"batch","kept":170,"retry_after_ms"`, 1)},
		{"denied for less than a second",
			fronts.With(fronts.Denied(), func(d *admit.Decision) {
				d.RetryAfter, d.ResetAfter = time.Microsecond, time.Microsecond
			}),
			"429\n" + fronts.ProblemType + "Retry-After: 1\n" + limit +
				"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\n" + exceeded(admit.OverLimit,
				strings.ReplaceAll(deniedJSON, "10000.25", "0.001")),
			"200\n" + fronts.JSONType + limit + "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\n" +
				strings.ReplaceAll(deniedJSON, "10000.25", "0.001")},
		{"never", fronts.With(fronts.Denied(),
			func(d *admit.Decision) { d.Reason, d.RetryAfter = admit.Never, -1 }),
			"429\n" + fronts.ProblemType + counts0 + exceeded(admit.Never, strings.NewReplacer("over_limit", "never",
				`"retry_after_ms":10000.25,`, "").Replace(deniedJSON)),
			"200\n" + fronts.JSONType + counts0 + strings.NewReplacer("over_limit", "never",
				`"retry_after_ms":10000.25,`, "").Replace(deniedJSON)},
		{"beyond the region",
			fronts.With(fronts.Denied(), func(d *admit.Decision) {
				d.Reason, d.RetryAfter = admit.ExceedsRegionCapacity, -1
			}),
			"429\n" + fronts.ProblemType + counts0 + exceeded(admit.ExceedsRegionCapacity, strings.NewReplacer("over_limit",
				"exceeds_region_capacity", `"retry_after_ms":10000.25,`, "").Replace(deniedJSON)),
			"200\n" + fronts.JSONType + counts0 + strings.NewReplacer("over_limit",
				"exceeds_region_capacity", `"retry_after_ms":10000.25,`, "").Replace(deniedJSON)},
		{"no limit", admit.Decision{Allowed: true, Reason: admit.NoLimit, Node: "n1",
			Region: "us-east", Sequence: 9},
			"200\n" + fronts.JSONType +
				`{"allowed":true,"reason":"no_limit","node":"n1","region":"us-east","degraded":false,"sequence":9}`, ""},
		{"shadow limits", fronts.With(fronts.Allowed(),
			func(d *admit.Decision) { d.Shadowed = []string{"new-limit"} }),
			"200\n" + fronts.JSONType + counts57 + strings.TrimSuffix(allowedJSON, "}") +
				`,"shadowed":["new-limit"]}`, ""},
		{"a turn in a queue",
			fronts.With(fronts.Allowed(), func(d *admit.Decision) {
				d.Algorithm, d.Delay = algorithms.LeakyBucket, 1500*time.Microsecond
			}),
			"200\n" + fronts.JSONType + counts57 + strings.NewReplacer("fixed_window", "leaky_bucket",
				`"cell"`, `"delay_ms":1.5,"cell"`).Replace(allowedJSON), ""},
		{"repeated, with a receipt",
			fronts.With(fronts.Allowed(), func(d *admit.Decision) { d.Repeated, d.Receipt = true, fronts.Receipt }),
			"200\n" + fronts.JSONType + counts57 + strings.TrimSuffix(allowedJSON, "}") +
				`,"repeated":true,"receipt":"-Rc_9"}`, ""},
		{"from memory", fronts.With(fronts.Allowed(), func(d *admit.Decision) { d.FromMemory = true }),
			"200\n" + fronts.JSONType + counts57 + strings.TrimSuffix(allowedJSON, "}") +
				`,"from_memory":true}`, ""},
		{"denied, while a region cannot be reached",
			fronts.With(fronts.Denied(), func(d *admit.Decision) { d.Degraded = true }),
			"429\n" + fronts.ProblemType + "Retry-After: 11\n" + counts0 + problem("temporary-reduced-capacity", "Temporary Reduced Capacity", "429",
				"what this region has left of the limit is less than the cost, and another region of the limit cannot be reached, so that this one has its fixed split alone",
				strings.Replace(deniedJSON, `"degraded":false`, `"degraded":true`, 1)),
			"200\n" + fronts.JSONType + counts0 + strings.Replace(deniedJSON, `"degraded":false`, `"degraded":true`, 1)},
		{"store failure, deny", fronts.Undecided(admit.StoreFailure),
			"503\n" + fronts.ProblemType + limit +
				problem("temporary-reduced-capacity", "Temporary Reduced Capacity", "503", denials[admit.StoreFailure], uncounted(false, "store_failure")),
			"200\n" + fronts.JSONType + limit + "{" + uncounted(false, "store_failure")},
		{"store failure, allow", fronts.Undecided(admit.StoreFailureAllowed),
			"200\n" + fronts.JSONType + limit + "{" + uncounted(true, "store_failure_allowed"), ""},
		{"store failure, local", fronts.With(fronts.Undecided(admit.StoreFailureLocal), func(d *admit.Decision) {
			d.Allowed, d.Remaining, d.ResetAfter = true, 0, 2*time.Second
		}),
			"200\n" + fronts.JSONType + limit + "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2\n" +
				`{"allowed":true,"reason":"store_failure_local","limit":"account-minute","algorithm":"fixed_window","limit_units":1000,"entitlement":400,"remaining":0,"reset_after_ms":2000,"node":"n1","region":"us-east","degraded":true,"sequence":8}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := &fronts.Node{Decision: c.decision}
			s := newServer(t, node, fronts.Quiet())
			fronts.Compare(t, fronts.Exchange(s.http.Handler, "POST", "/v1/check", "application/json", fronts.Request), c.check)
			if checked, peeked := node.Asked(); checked != 1 || peeked != 0 {
				t.Errorf("check asked for %d checks and %d peeks", checked, peeked)
			}
			if c.peek == "" {
				c.peek = c.check
			}
			fronts.Compare(t, fronts.Exchange(s.http.Handler, "POST", "/v1/peek", "application/json", fronts.Request), c.peek)
			if checked, peeked := node.Asked(); checked != 1 || peeked != 1 {
				t.Errorf("after a peek: %d checks and %d peeks", checked, peeked)
			}
		})
	}
}

const wantJSON = "send the request with Content-Type: application/json, in UTF-8"

// TestRefusals shows the requests that HTTP itself refuses.
func TestRefusals(t *testing.T) {
	large := `{"domain":"` + strings.Repeat("a", wire.MaxBodyBytes) + `"}`
	exact := `{"domain":"api"` + strings.Repeat(" ", wire.MaxBodyBytes-len(`{"domain":"api"}`)) + `}`
	for _, c := range []struct{ name, method, target, contentType, body, want string }{
		{"another method", "GET", "/v1/check", "", "", fronts.Problem(405, "Allow: POST\n", "use POST", "")},
		{"another method of peek", "PUT", "/v1/peek", "", fronts.Request,
			fronts.Problem(405, "Allow: POST\n", "use POST", "")},
		{"another method of settle", "GET", "/v1/settle", "", "",
			fronts.Problem(405, "Allow: POST\n", "use POST", "")},
		{"another path", "GET", "/v2/check%0a", "", "", fronts.Problem(404, "", noSuchPath, "")},
		{"another content type", "POST", "/v1/check", "text/plain", fronts.Request,
			fronts.Problem(415, "", wantJSON, "")},
		{"a form", "POST", "/v1/check", "application/x-www-form-urlencoded", fronts.Request,
			fronts.Problem(415, "", wantJSON, "")},
		{"another charset", "POST", "/v1/check", "application/json; charset=latin1", fronts.Request,
			fronts.Problem(415, "", wantJSON, "")},
		{"a malformed content type", "POST", "/v1/check", "application/json; charset", fronts.Request,
			fronts.Problem(415, "", wantJSON, "")},
		{"too large", "POST", "/v1/check", "application/json", large,
			fronts.Problem(413, "", "the body is larger than 65536 bytes", "")},
		{"just as large as may be", "POST", "/v1/check", "application/json", exact, allowedAs200},
		{"no content type", "POST", "/v1/check", "", fronts.Request, fronts.Problem(415, "", wantJSON, "")},
		{"with a charset", "POST", "/v1/check", `Application/JSON; charset="UTF-8"`, fronts.Request,
			allowedAs200},
		{"no cost", "POST", "/v1/check", "application/json", `{"domain":"api"}`, allowedAs200},
		{"bad input of check", "POST", "/v1/check", "application/json", `{"domain":"api","cost":0}`,
			fronts.Problem(400, "", "cost: must be a whole number of units from 1 to 2251799813685248",
				`,"field":"cost"`)},
		{"a name of the request", "POST", "/v1/check", "application/json",
			`{"domain":"api","request_id":"r1","receipt":true}`, allowedAs200},
		{"a long name of the request", "POST", "/v1/check", "application/json",
			`{"domain":"api","request_id":"` + strings.Repeat("x", 129) + `"}`,
			fronts.Problem(400, "", "request_id: is longer than 128 bytes; send a hash of it",
				`,"field":"request_id"`)},
		{"peek with a name of the request", "POST", "/v1/peek", "application/json",
			`{"domain":"api","request_id":"r1"}`,
			fronts.Problem(400, "", `body: has the unknown field \"request_id\"; there are domain, descriptors and cost`, `,"field":"body"`)},
		{"peek with a receipt", "POST", "/v1/peek", "application/json",
			`{"domain":"api","receipt":false}`,
			fronts.Problem(400, "", `body: has the unknown field \"receipt\"; there are domain, descriptors and cost`, `,"field":"body"`)},
		{"bad input of peek", "POST", "/v1/peek", "application/json", `{}`,
			fronts.Problem(400, "", "domain: is missing; name the domain of the limits to check",
				`,"field":"domain"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, &fronts.Node{Decision: admit.Decision{Allowed: true,
				Reason: admit.NoLimit}}, fronts.Quiet())
			fronts.Compare(t, fronts.Exchange(s.http.Handler, c.method, c.target, c.contentType, c.body), c.want)
		})
	}
}

const allowedAs200 = "200\n" + fronts.JSONType +
	`{"allowed":true,"reason":"no_limit","node":"","region":"","degraded":false,"sequence":0}`

// TestNodeErrors shows the answers to errors of the node.
func TestNodeErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"the caller gave up", context.Canceled,
			fronts.Problem(503, "", "the request ended before it was answered; a check, settlement or reset may have been carried out", "")},
		{"out of time", context.DeadlineExceeded,
			fronts.Problem(503, "", "the request ended before it was answered; a check, settlement or reset may have been carried out", "")},
		{"anything else", errors.New("script decide: dial: refused"),
			fronts.Problem(503, "", "script decide: dial: refused", "")},
		{"a field that needs quotes", invalid.Fieldf("descriptors.a\nb\u202e", "is longer than 256 bytes"),
			fronts.Problem(400, "", `descriptors[\"a\\nb\\u202e\"]: is longer than 256 bytes`,
				`,"field":"descriptors[\"a\\nb\\u202e\"]"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, &fronts.Node{Err: c.err}, fronts.Quiet())
			fronts.Compare(t, fronts.Exchange(s.http.Handler, "POST", "/v1/check", "application/json", fronts.Request), c.want)
		})
	}
}

func TestProbes(t *testing.T) {
	const text = "Content-Type: text/plain; charset=utf-8\n"
	node := &fronts.Node{}
	s := newServer(t, node, fronts.Quiet())
	fronts.Compare(t, fronts.Exchange(s.http.Handler, "GET", "/readyz", "", ""), "200\n"+text+"ok")
	node.State.Recovering = []region.Recovering{{Limit: "account-month", Buckets: 2, Since: time.Unix(1_800_000_000, 0)}}
	fronts.Compare(t, fronts.Exchange(s.http.Handler, "GET", "/readyz", "", ""), "200\n"+text+"ok\n2 keys of account-month are recovering since 2027-01-15T08:00:00Z")
	node.SetReady(errors.New("the store is not open"))
	fronts.Compare(t, fronts.Exchange(s.http.Handler, "GET", "/readyz", "", ""), "503\n"+text+"not ready: the store is not open")
	fronts.Compare(t, fronts.Exchange(s.http.Handler, "GET", "/livez", "", ""), "200\n"+text+"ok")
	node.SetReady(nil)
	s.life.End()
	fronts.Compare(t, fronts.Exchange(s.http.Handler, "GET", "/readyz", "", ""), "503\n"+text+"not ready: the server is shutting down")
	fronts.Compare(t, fronts.Exchange(s.http.Handler, "GET", "/livez", "", ""), "200\n"+text+"ok")
}

// TestHealthcheckAnswersAsThePeer: the probe of envoyproxy/ratelimit has its statuses and its body, by
// the rule of /readyz.
func TestHealthcheckAnswersAsThePeer(t *testing.T) {
	node := &fronts.Node{}
	s := newServer(t, node, fronts.Quiet())
	for _, step := range []struct {
		change func()
		code   int
		body   string
	}{
		{func() {}, 200, "OK"},
		{func() { node.SetReady(errors.New("the store is not open")) }, 500, "not ready: the store is not open\n"},
		{func() { node.SetReady(nil) }, 200, "OK"},
		{s.life.End, 500, "not ready: the server is shutting down\n"},
	} {
		step.change()
		got := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/healthcheck", nil))
		if got.Code != step.code || got.Body.String() != step.body {
			t.Errorf("%d %q, want %d %q", got.Code, got.Body, step.code, step.body)
		}
	}
}

// TestHTTPPanic: a panic is answered and logged, and the log quotes it.
func TestHTTPPanic(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, &fronts.Node{Fault: "boom\nlevel=ERROR forged"}, slog.New(slog.NewTextHandler(&log, nil)))
	for _, call := range [][3]string{{"POST", "/v1/check", fronts.Request}, {"POST", "/v1/settle", `{"receipt":"` + fronts.Receipt + `","used":0}`}} {
		log.Reset()
		fronts.Compare(t, fronts.Exchange(s.http.Handler, call[0], call[1], "application/json", call[2]), fronts.Problem(500, "", "a fault of quotad, not of the request; its log has the details", ""))
		if !strings.Contains(log.String(), `panic="boom\nlevel=ERROR forged"`) || !strings.Contains(log.String(), "fronts/node.go") {
			t.Errorf("after %s the log has no panic with its stack: %s", call[1], log.String())
		}
	}
}

// TestNothingLogged: neither good nor bad requests are logged.
func TestNothingLogged(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, &fronts.Node{Decision: fronts.Denied()}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, body := range []string{fronts.Request, `{`, `{"x":1}`} {
		fronts.Exchange(s.http.Handler, "POST", "/v1/check", "application/json", body)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
}
