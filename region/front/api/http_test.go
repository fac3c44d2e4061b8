package api

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
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
)

// shown are the headers by which tests compare answers.
var shown = []string{"Allow", "Content-Type", "Retry-After", "X-RateLimit-Limit",
	"X-RateLimit-Remaining", "X-RateLimit-Reset"}

// handlerOf returns the handler of the port that serves a path.
func handlerOf(s *Server, path string) http.Handler {
	for _, prefix := range []string{"/v1/status", "/v1/buckets/", "/v1/reset", "/v1/cut", "/metrics",
		"/debug/"} {
		if strings.HasPrefix(path, prefix) {
			return s.admin.Handler
		}
	}
	return s.http.Handler
}

// exchangeHTTP sends one request to the handler, and writes the answer as a person would read it.
func exchangeHTTP(s *Server, method, target, contentType, body string) string {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	handlerOf(s, r.URL.Path).ServeHTTP(w, r)
	var out strings.Builder
	fmt.Fprintln(&out, w.Code)
	for _, name := range shown {
		for _, value := range w.Header().Values(name) {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	out.WriteString(strings.TrimSuffix(w.Body.String(), "\n"))
	return out.String()
}

const (
	aRequest = `{"domain":"api","descriptors":{"account":"42"},"cost":2}`
	isProb   = "Content-Type: application/problem+json\n"
	isJSONed = "Content-Type: application/json\n"
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
		{"allowed", allowed(), "200\n" + isJSONed + counts57 + allowedJSON, ""},
		{"denied", denied(),
			"429\n" + isProb + "Retry-After: 11\n" + counts0 + exceeded(admit.OverLimit, deniedJSON),
			"200\n" + isJSONed + counts0 + deniedJSON},
		{"denied for less than a second",
			with(denied(), func(d *admit.Decision) {
				d.RetryAfter, d.ResetAfter = time.Microsecond, time.Microsecond
			}),
			"429\n" + isProb + "Retry-After: 1\n" + limit +
				"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\n" + exceeded(admit.OverLimit,
				strings.ReplaceAll(deniedJSON, "10000.25", "0.001")),
			"200\n" + isJSONed + limit + "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\n" +
				strings.ReplaceAll(deniedJSON, "10000.25", "0.001")},
		{"never", with(denied(),
			func(d *admit.Decision) { d.Reason, d.RetryAfter = admit.Never, -1 }),
			"429\n" + isProb + counts0 + exceeded(admit.Never, strings.NewReplacer("over_limit", "never",
				`"retry_after_ms":10000.25,`, "").Replace(deniedJSON)),
			"200\n" + isJSONed + counts0 + strings.NewReplacer("over_limit", "never",
				`"retry_after_ms":10000.25,`, "").Replace(deniedJSON)},
		{"beyond the region",
			with(denied(), func(d *admit.Decision) {
				d.Reason, d.RetryAfter = admit.ExceedsRegionCapacity, -1
			}),
			"429\n" + isProb + counts0 + exceeded(admit.ExceedsRegionCapacity, strings.NewReplacer("over_limit",
				"exceeds_region_capacity", `"retry_after_ms":10000.25,`, "").Replace(deniedJSON)),
			"200\n" + isJSONed + counts0 + strings.NewReplacer("over_limit",
				"exceeds_region_capacity", `"retry_after_ms":10000.25,`, "").Replace(deniedJSON)},
		{"no limit", admit.Decision{Allowed: true, Reason: admit.NoLimit, Node: "n1",
			Region: "us-east", Sequence: 9},
			"200\n" + isJSONed +
				`{"allowed":true,"reason":"no_limit","node":"n1","region":"us-east","degraded":false,"sequence":9}`, ""},
		{"shadow limits", with(allowed(),
			func(d *admit.Decision) { d.Shadowed = []string{"new-limit"} }),
			"200\n" + isJSONed + counts57 + strings.TrimSuffix(allowedJSON, "}") +
				`,"shadowed":["new-limit"]}`, ""},
		{"a turn in a queue",
			with(allowed(), func(d *admit.Decision) {
				d.Algorithm, d.Delay = algorithms.LeakyBucket, 1500*time.Microsecond
			}),
			"200\n" + isJSONed + counts57 + strings.NewReplacer("fixed_window", "leaky_bucket",
				`"cell"`, `"delay_ms":1.5,"cell"`).Replace(allowedJSON), ""},
		{"repeated, with a receipt",
			with(allowed(), func(d *admit.Decision) { d.Repeated, d.Receipt = true, aReceipt }),
			"200\n" + isJSONed + counts57 + strings.TrimSuffix(allowedJSON, "}") +
				`,"repeated":true,"receipt":"-Rc_9"}`, ""},
		{"from memory", with(allowed(), func(d *admit.Decision) { d.FromMemory = true }),
			"200\n" + isJSONed + counts57 + strings.TrimSuffix(allowedJSON, "}") +
				`,"from_memory":true}`, ""},
		{"denied, while a region cannot be reached",
			with(denied(), func(d *admit.Decision) { d.Degraded = true }),
			"429\n" + isProb + "Retry-After: 11\n" + counts0 + problem("temporary-reduced-capacity", "Temporary Reduced Capacity", "429",
				"what this region has of the limit is used up, and another region of the limit cannot be reached, so that this one has its fixed split alone",
				strings.Replace(deniedJSON, `"degraded":false`, `"degraded":true`, 1)),
			"200\n" + isJSONed + counts0 + strings.Replace(deniedJSON, `"degraded":false`, `"degraded":true`, 1)},
		{"store failure, deny", undecided(admit.StoreFailure),
			"503\n" + isProb + limit +
				problem("temporary-reduced-capacity", "Temporary Reduced Capacity", "503", denials[admit.StoreFailure], uncounted(false, "store_failure")),
			"200\n" + isJSONed + limit + "{" + uncounted(false, "store_failure")},
		{"store failure, allow", undecided(admit.StoreFailureAllowed),
			"200\n" + isJSONed + limit + "{" + uncounted(true, "store_failure_allowed"), ""},
		{"store failure, local", with(undecided(admit.StoreFailureLocal), func(d *admit.Decision) {
			d.Allowed, d.Remaining, d.ResetAfter = true, 0, 2*time.Second
		}),
			"200\n" + isJSONed + limit + "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2\n" +
				`{"allowed":true,"reason":"store_failure_local","limit":"account-minute","algorithm":"fixed_window","limit_units":1000,"entitlement":400,"remaining":0,"reset_after_ms":2000,"node":"n1","region":"us-east","degraded":true,"sequence":8}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := &fakeNode{decision: c.decision}
			s := newServer(t, node, quiet())
			compare(t, exchangeHTTP(s, "POST", "/v1/check", "application/json", aRequest), c.check)
			if checked, peeked := node.asked(); checked != 1 || peeked != 0 {
				t.Errorf("check asked for %d checks and %d peeks", checked, peeked)
			}
			if c.peek == "" {
				c.peek = c.check
			}
			compare(t, exchangeHTTP(s, "POST", "/v1/peek", "application/json", aRequest), c.peek)
			if checked, peeked := node.asked(); checked != 1 || peeked != 1 {
				t.Errorf("after a peek: %d checks and %d peeks", checked, peeked)
			}
		})
	}
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// prob is a problem as exchangeHTTP shows it. header stands before its content type, members after
// its detail.
func prob(code int, header, detail, members string) string {
	return fmt.Sprintf(`%d
%s%s{"type":"about:blank","title":%q,"status":%d,"detail":"%s"%s}`, code, header, isProb, http.StatusText(code), code, detail, members)
}

// TestRefusals shows the requests that HTTP itself refuses.
func TestRefusals(t *testing.T) {
	large := `{"domain":"` + strings.Repeat("a", maxBodyBytes) + `"}`
	exact := `{"domain":"api"` + strings.Repeat(" ", maxBodyBytes-len(`{"domain":"api"}`)) + `}`
	const json415 = wantJSON
	for _, c := range []struct{ name, method, target, contentType, body, want string }{
		{"another method", "GET", "/v1/check", "", "", prob(405, "Allow: POST\n", "use POST", "")},
		{"another method of peek", "PUT", "/v1/peek", "", aRequest,
			prob(405, "Allow: POST\n", "use POST", "")},
		{"another method of status", "POST", "/v1/status", "", "", prob(405, "Allow: GET, HEAD\n",
			"use GET, HEAD", "")},
		{"another method of buckets", "DELETE", "/v1/buckets/account-minute", "", "",
			prob(405, "Allow: GET, HEAD\n", "use GET, HEAD", "")},
		{"another method of refund", "GET", "/v1/refund", "", "",
			prob(405, "Allow: POST\n", "use POST", "")},
		{"another method of reset", "DELETE", "/v1/reset", "", "",
			prob(405, "Allow: POST\n", "use POST", "")},
		{"another path", "GET", "/v2/check%0a", "", "", prob(404, "", noSuchPath, "")},
		{"another content type", "POST", "/v1/check", "text/plain", aRequest,
			prob(415, "", json415, "")},
		{"a form", "POST", "/v1/check", "application/x-www-form-urlencoded", aRequest,
			prob(415, "", json415, "")},
		{"another charset", "POST", "/v1/check", "application/json; charset=latin1", aRequest,
			prob(415, "", json415, "")},
		{"a malformed content type", "POST", "/v1/check", "application/json; charset", aRequest,
			prob(415, "", json415, "")},
		{"too large", "POST", "/v1/check", "application/json", large,
			prob(413, "", "the body is larger than 65536 bytes", "")},
		{"just as large as may be", "POST", "/v1/check", "application/json", exact, allowedAs200},
		{"no content type", "POST", "/v1/check", "", aRequest, prob(415, "", json415, "")},
		{"with a charset", "POST", "/v1/check", `Application/JSON; charset="UTF-8"`, aRequest,
			allowedAs200},
		{"no cost", "POST", "/v1/check", "application/json", `{"domain":"api"}`, allowedAs200},
		{"bad input of check", "POST", "/v1/check", "application/json", `{"domain":"api","cost":0}`,
			prob(400, "", "cost: must be a whole number of units from 1 to 2251799813685248",
				`,"field":"cost"`)},
		{"a name of the request", "POST", "/v1/check", "application/json",
			`{"domain":"api","request_id":"r1","receipt":true}`, allowedAs200},
		{"a long name of the request", "POST", "/v1/check", "application/json",
			`{"domain":"api","request_id":"` + strings.Repeat("x", 129) + `"}`,
			prob(400, "", "request_id: is longer than 128 bytes; send a hash of it",
				`,"field":"request_id"`)},
		{"peek with a name of the request", "POST", "/v1/peek", "application/json",
			`{"domain":"api","request_id":"r1"}`,
			prob(400, "", `body: has the unknown field \"request_id\"; there are domain, descriptors and cost`, `,"field":"body"`)},
		{"peek with a receipt", "POST", "/v1/peek", "application/json",
			`{"domain":"api","receipt":false}`,
			prob(400, "", `body: has the unknown field \"receipt\"; there are domain, descriptors and cost`, `,"field":"body"`)},
		{"bad input of peek", "POST", "/v1/peek", "application/json", `{}`,
			prob(400, "", "domain: is missing; name the domain of the limits to check",
				`,"field":"domain"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, &fakeNode{decision: admit.Decision{Allowed: true,
				Reason: admit.NoLimit}}, quiet())
			compare(t, exchangeHTTP(s, c.method, c.target, c.contentType, c.body), c.want)
		})
	}
}

const allowedAs200 = "200\n" + isJSONed +
	`{"allowed":true,"reason":"no_limit","node":"","region":"","degraded":false,"sequence":0}`

// TestNodeErrors shows the answers to errors of the node.
func TestNodeErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"the caller gave up", context.Canceled,
			prob(503, "", "the request ended before it was answered; a check, refund or reset may have been carried out", "")},
		{"out of time", context.DeadlineExceeded,
			prob(503, "", "the request ended before it was answered; a check, refund or reset may have been carried out", "")},
		{"anything else", errors.New("script decide: dial: refused"),
			prob(503, "", "script decide: dial: refused", "")},
		{"a field that needs quotes", &admit.FieldError{Field: "descriptors.a\nb\u202e",
			Problem: "is longer than 256 bytes"},
			prob(400, "", `descriptors[\"a\\nb\\u202e\"]: is longer than 256 bytes`,
				`,"field":"descriptors[\"a\\nb\\u202e\"]"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, &fakeNode{err: c.err}, quiet())
			compare(t, exchangeHTTP(s, "POST", "/v1/check", "application/json", aRequest), c.want)
		})
	}
}

func TestBuckets(t *testing.T) {
	const ledger = `{"limit":"account-minute","limit_units":1000,"algorithm":"fixed_window","entitlement":400,"share":425,"next_share":400,"cell":5,"used":31,"fading":31,"free":394,"rights":[{"cell":5,"region":"ap-south","lent":1,"returned":2,"borrowed":3,"regained":4},{"cell":5,"region":"eu-west","lent":0,"returned":0,"borrowed":23,"regained":0}]}`
	const ok = "200\n" + isJSONed + ledger
	long := strings.Repeat("x", 70)
	for _, c := range []struct{ name, target, want string }{
		{"found", "account-minute?domain=api&account=42", ok},
		{"escaped", "account%2Dminute?domain=api&account=%7D%7B%00", ok},
		{"unknown", "other?domain=api&account=42",
			prob(404, "", "no limit of this name and domain applies to these descriptors", "")},
		{"no domain", "account-minute?account=42",
			prob(400, "", "domain: is missing; name the domain of the limits to check",
				`,"field":"domain"`)},
		{"a descriptor twice", "account-minute?domain=api&account=42&account=42",
			prob(400, "", "descriptors.account: is given more than once",
				`,"field":"descriptors.account"`)},
		{"domain twice", "account-minute?domain=api&domain=api",
			prob(400, "", "domain: is given more than once", `,"field":"domain"`)},
		{"a semicolon", "account-minute?domain=api;account=42",
			prob(400, "", "query: is malformed; write it as ?domain=api\\u0026account=42, percent-encoded", `,"field":"query"`)},
		{"a bad escape", "account-minute?domain=%zz",
			prob(400, "", "query: is malformed; write it as ?domain=api\\u0026account=42, percent-encoded", `,"field":"query"`)},
		{"not UTF-8", "account-minute?domain=api&account=%ff",
			prob(400, "", "descriptors.account: is not valid UTF-8",
				`,"field":"descriptors.account"`)},
		{"a long name twice", "account-minute?domain=api&" + long + "=1&" + long + "=1",
			prob(400, "", `descriptors[\"`+long[:64]+`\"...]: is given more than once`, `,"field":"descriptors[\"`+long[:64]+`\"...]"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			compare(t, exchangeHTTP(newServer(t, &fakeNode{}, quiet()), "GET", "/v1/buckets/"+c.target, "", ""), c.want)
		})
	}
	t.Run("no rights", func(t *testing.T) {
		node := &fakeNode{bucket: func(map[string]string) (region.Bucket, error) {
			b := aBucket()
			b.Inspected.Rows = nil
			return b, nil
		}}
		if got := exchangeHTTP(newServer(t, node, quiet()), "GET", "/v1/buckets/account-minute?domain=api", "", ""); !strings.Contains(got, `"rights":[]`) {
			t.Errorf("got %s, want an empty list of rights", got)
		}
	})
	t.Run("a burst", func(t *testing.T) {
		node := &fakeNode{bucket: func(map[string]string) (region.Bucket, error) { return aTokenBucket(), nil }}
		compare(t, exchangeHTTP(newServer(t, node, quiet()), "GET", "/v1/buckets/account-minute?domain=api", "", ""),
			"200\n"+isJSONed+`{"limit":"account-minute","limit_units":1000,"algorithm":"token_bucket","entitlement":400,"burst":80,"share":425,"next_share":400,"cell":5,"used":31,"fading":0,"free":394,"rights":[{"cell":5,"region":"eu-west","lent":0,"returned":0,"borrowed":0,"regained":0,"burst_lent":6,"burst_borrowed":7}]}`)
	})
	t.Run("store failure", func(t *testing.T) {
		s := newServer(t, &fakeNode{err: errors.New("read bucket: unknown store")}, quiet())
		compare(t, exchangeHTTP(s, "GET", "/v1/buckets/account-minute?domain=api", "", ""), prob(503, "", "read bucket: unknown store", ""))
	})
}

func TestStatusPage(t *testing.T) {
	node := &fakeNode{status: aStatus()}
	s := newServer(t, node, quiet())
	want := "200\n" + isJSONed + `{"region":"us-east","node":"n1","version":"` + version() + `","epoch":"3:abc","generation":2,"ready":true,` +
		`"store":{"kind":"sentinel","address":"127.0.0.1:26379/main","data":["0123abcd"],"last_loss":"1970-01-01T01:00:00Z","losses":1,"out_of_reach":["quotad"],"maxmemory_policy":"noeviction",` +
		`"refusing":[{"kind":"OOM","calls":7,"advice":"raise its maxmemory"}],` +
		`"id":"ab12","stopped":"two stores: mend it","rivals":[{"node":"us-east/n2","id":"cd34",` +
		`"stopped":false,"hearsay":true}],"nodes":2},` +
		`"recovery":{"waiting":3,"partly_known":2,"recovered":8,"limits":[],"closed":[]},"journal":{"incarnation":2,"sequence":9,"rows":4,"checkpoints":3,"whole":true,"failed":false},` +
		`"local":{"buckets":1,"units":7,"unbooked":5},` +
		`"peers":[{"region":"eu-west","heard":true,"age_ms":120.5,"round_trip_ms":80,"degraded":true,"clock_apart_ms":-30}],` +
		`"members":["eu-west/n1","us-east/n1","us-east/n2"],"mates":["us-east/n2"],` +
		`"counters":{"asks":0,"asks_declined":0,"asks_dropped":0,"asks_refused":0,"calls_unanswered":0,"events_dropped":0,"hints_dropped":0,"hints_published":0,"messages_implausible":0,"units_borrowed":26,"units_lent":0,"units_regained":0,"units_returned":0},"documents":{"open":[],"regions":[],"limits":[],"held":0}}`
	compare(t, exchangeHTTP(s, "GET", "/v1/status", "", ""), want)
	node.setReady(errors.New("the store is not open"))
	got := exchangeHTTP(s, "GET", "/v1/status", "", "")
	if !strings.Contains(got, `"ready":false,"not_ready":"the store is not open",`) {
		t.Errorf("a node that is not ready says %s", got)
	}
}

func TestProbes(t *testing.T) {
	const text = "Content-Type: text/plain; charset=utf-8\n"
	node := &fakeNode{}
	s := newServer(t, node, quiet())
	compare(t, exchangeHTTP(s, "GET", "/readyz", "", ""), "200\n"+text+"ok")
	node.status.Recovering = []region.Recovering{{Limit: "account-month", Buckets: 2, Since: time.Unix(1_800_000_000, 0)}}
	compare(t, exchangeHTTP(s, "GET", "/readyz", "", ""), "200\n"+text+"ok\n2 keys of account-month are recovering since 2027-01-15T08:00:00Z")
	node.setReady(errors.New("the store is not open"))
	compare(t, exchangeHTTP(s, "GET", "/readyz", "", ""), "503\n"+text+"not ready: the store is not open")
	compare(t, exchangeHTTP(s, "GET", "/livez", "", ""), "200\n"+text+"ok")
	node.setReady(nil)
	s.Drain()
	compare(t, exchangeHTTP(s, "GET", "/readyz", "", ""), "503\n"+text+"not ready: the server is shutting down")
	compare(t, exchangeHTTP(s, "GET", "/livez", "", ""), "200\n"+text+"ok")
}

// TestMetricsPage: the page has the node's metrics and the process's, also with two servers in one
// process.
func TestMetricsPage(t *testing.T) {
	newServer(t, &fakeNode{}, quiet())
	got := exchangeHTTP(newServer(t, &fakeNode{}, quiet()), "GET", "/metrics", "", "")
	for _, want := range []string{"200\n", "\nquotad_fake_total 0", "\ngo_goroutines ", "\nprocess_open_fds "} {
		if !strings.Contains(got, want) {
			t.Errorf("metrics do not have %q", want)
		}
	}
}

// TestHTTPPanic: a panic is answered and logged, and the log quotes it.
func TestHTTPPanic(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, &fakeNode{fault: "boom\nlevel=ERROR forged"}, slog.New(slog.NewTextHandler(&log, nil)))
	for _, call := range [][3]string{{"POST", "/v1/check", aRequest}, {"POST", "/v1/refund", `{"receipt":"` + aReceipt + `"}`},
		{"POST", "/v1/reset", `{}`}, {"GET", "/v1/buckets/account-minute", ""}} {
		log.Reset()
		compare(t, exchangeHTTP(s, call[0], call[1], "application/json", call[2]), prob(500, "", "a fault of quotad, not of the request; its log has the details", ""))
		if !strings.Contains(log.String(), `panic="boom\nlevel=ERROR forged"`) || !strings.Contains(log.String(), "fake_test.go") {
			t.Errorf("after %s the log has no panic with its stack: %s", call[1], log.String())
		}
	}
}

// TestNothingLogged: neither good nor bad requests are logged.
func TestNothingLogged(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, &fakeNode{decision: denied()}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, body := range []string{aRequest, `{`, `{"x":1}`} {
		exchangeHTTP(s, "POST", "/v1/check", "application/json", body)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
}
