package httplimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
	"github.com/quotad/quotad/client/httplimit"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers decides every request alike, and remembers the last.
type answers struct {
	d     client.Decision
	err   error
	asked client.Request
	calls int
}

func (a *answers) Check(_ context.Context, q client.Request) (client.Decision, error) {
	a.asked = q
	a.calls++
	return a.d, a.err
}

var options = httplimit.Options{Domain: "api",
	Key: httplimit.By(httplimit.Values{"account": httplimit.Header("X-Account")})}

// get sends a request through the middleware. The body is "served" if the handler saw it.
func get(t *testing.T, c httplimit.Checker, o httplimit.Options) *httptest.ResponseRecorder {
	t.Helper()
	return getWithin(t.Context(), c, o)
}

func getWithin(ctx context.Context, c httplimit.Checker,
	o httplimit.Options) *httptest.ResponseRecorder {
	h := httplimit.New(c, o)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "served")
	}))
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil)
	r.Header.Set("X-Account", "42")
	h.ServeHTTP(w, r)
	return w
}

var decided = client.Decision{Allowed: true, Reason: quotadv1.Reason_REASON_WITHIN_LIMIT,
	Limit: "account", LimitUnits: 100, Remaining: 7, AtUs: 1, ResetAfter: 1500 * time.Millisecond,
	Share: 40, Window: time.Minute, Unit: "tokens"}

func over(d client.Decision, retry time.Duration) client.Decision {
	d.Allowed, d.Reason, d.RetryAfter = false, quotadv1.Reason_REASON_OVER_LIMIT, retry
	return d
}

func TestServed(t *testing.T) {
	a := &answers{d: decided}
	w := get(t, a, options)
	if w.Code != 200 || w.Body.String() != "served" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if a.asked.Domain != "api" || a.asked.Descriptors["account"] != "42" {
		t.Errorf("asked %+v", a.asked)
	}
	wantHeaders(t, w, map[string]string{"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "7",
		"X-RateLimit-Reset": "2", "RateLimit-Policy": `"account";q=100;qu="tokens";w=60`,
		"RateLimit": `"account";r=7;t=2;quotad-share=40`, "Retry-After": ""})
}

func TestDenied(t *testing.T) {
	w := get(t, &answers{d: over(decided, 2100*time.Millisecond)}, options)
	wantHeaders(t, w, map[string]string{"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "7",
		"X-RateLimit-Reset": "3", "RateLimit": `"account";r=7;t=3;quotad-share=40`, "Retry-After": "3",
		"Cache-Control": "no-store"})
	wantProblem(t, w, 429, "over a limit")
	var p struct {
		Limit string `json:"limit"`
		Retry int    `json:"retry_after_ms"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Limit != "account" ||
		p.Retry != 2100 {
		t.Errorf("%+v, %v", p, err)
	}
	// A request that never fits has no time to retry at.
	w = get(t, &answers{d: over(decided, 0)}, options)
	wantHeaders(t, w, map[string]string{"Retry-After": ""})
	wantProblem(t, w, 429, "over a limit")
}

// Every limit that applied has its place in the headers of the IETF.
func TestSeveralLimits(t *testing.T) {
	d := decided
	d.Limits = []client.LimitState{
		{Limit: `a"\b`, LimitUnits: 1 << 51, Window: time.Minute, Counted: true, Remaining: 5,
			Share: 9, Degraded: true},
		{Limit: "uncounted", LimitUnits: 3, Window: time.Hour},
		{Limit: "shadow", LimitUnits: 3, Shadow: true, Counted: true},
		{Limit: "höhe", LimitUnits: 3, Counted: true}}
	w := get(t, &answers{d: d}, options)
	wantHeaders(t, w, map[string]string{
		"RateLimit-Policy": `"a\"\\b";q=999999999999999;w=60, "uncounted";q=3;w=3600`,
		"RateLimit":        `"a\"\\b";r=5;quotad-share=9;quotad-degraded`})
}

// RateLimit suggests ten times the average rate of a limit of a day, unless another bound is said.
// X-RateLimit-Remaining is what it is.
func TestMaxRate(t *testing.T) {
	d := decided
	d.LimitUnits, d.Remaining, d.Window, d.ResetAfter = 86400, 50000, 24*time.Hour, time.Minute
	for bound, r := range map[int]string{0: "600", 2: "120", -1: "50000"} {
		o := options
		o.MaxRate = bound
		wantHeaders(t, get(t, &answers{d: d}, o), map[string]string{"X-RateLimit-Remaining": "50000",
			"RateLimit": `"account";r=` + r + `;t=60;quotad-share=40`})
	}
}

func TestNoHeaders(t *testing.T) {
	o := options
	o.NoHeaders = true
	w := get(t, &answers{d: over(decided, time.Second)}, o)
	wantHeaders(t, w, map[string]string{"X-RateLimit-Limit": "", "RateLimit": "",
		"RateLimit-Policy": "", "Retry-After": "1"})
	// What no limit decided has none either.
	w = get(t, &answers{d: client.Decision{Allowed: true}}, options)
	wantHeaders(t, w, map[string]string{"X-RateLimit-Limit": "", "RateLimit": ""})
}

// A request that could not be decided is 503, and the server's owner is told why, not the caller.
func TestUndecided(t *testing.T) {
	var told error
	o := options
	o.Report = func(_ *http.Request, err error) { told = err }
	w := get(t, &answers{err: errors.New("secret")}, o)
	wantProblem(t, w, 503, "could not be checked")
	if told == nil || told.Error() != "secret" || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("told %v; %s", told, w.Body)
	}
	deny := client.Decision{Unreachable: true, Reason: quotadv1.Reason_REASON_STORE_FAILURE}
	wantProblem(t, get(t, &answers{d: deny}, o), 503, "could not be checked")
	deny.Unreachable = false
	wantProblem(t, get(t, &answers{d: deny}, o), 503, "store of the limits")
	local := client.Decision{Unreachable: true, RetryAfter: time.Second,
		Reason: quotadv1.Reason_REASON_STORE_FAILURE_LOCAL}
	wantProblem(t, get(t, &answers{d: local}, o), 429, "over a limit")
	recovering := client.Decision{Reason: quotadv1.Reason_REASON_RECOVERING}
	wantProblem(t, get(t, &answers{d: recovering}, o), 429, "over a limit")
}

// Without a Report errors are logged, once a second at most.
func TestErrorsAreLogged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		h := httplimit.New(&answers{err: errors.New("no node")}, options)(nil)
		send := func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}
		for range 10 {
			send()
		}
		time.Sleep(time.Second)
		send()
		if n := strings.Count(log.String(), "no node"); n != 2 {
			t.Errorf("%d errors in the log, want 2:\n%s", n, &log)
		}
	})
}

// A request that a leaky bucket delays is held, as long as was said and its client waits.
func TestWaiting(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := &answers{d: decided}
		a.d.Delay = 300 * time.Millisecond
		begun := time.Now()
		if w := get(t, a, options); w.Body.String() != "served" || time.Since(begun) != 0 {
			t.Errorf("without MaxWait: %s after %v", w.Body, time.Since(begun))
		}
		o := options
		o.MaxWait = 300 * time.Millisecond
		if w := get(t, a, o); w.Body.String() != "served" || time.Since(begun) != a.d.Delay {
			t.Errorf("%s after %v", w.Body, time.Since(begun))
		}
		a.d.Delay = 2 * time.Second
		w := get(t, a, o)
		wantProblem(t, w, 429, "over a limit")
		wantHeaders(t, w, map[string]string{"Retry-After": "2"})

		a.d.Delay = o.MaxWait
		ctx, disconnect := context.WithCancel(t.Context())
		begun = time.Now()
		go func() {
			time.Sleep(time.Millisecond)
			disconnect()
		}()
		if w := getWithin(ctx, a, o); w.Body.Len() > 0 || time.Since(begun) != time.Millisecond {
			t.Errorf("a client that left: %q after %v", w.Body, time.Since(begun))
		}
		synctest.Wait()
	})
}

// A key may say that limits do not apply, and how much a request costs.
func TestKeys(t *testing.T) {
	a := &answers{d: over(decided, 0)}
	o := options
	o.Key = func(*http.Request) (httplimit.Charge, bool) { return httplimit.Charge{}, false }
	if w := get(t, a, o); w.Body.String() != "served" || a.calls != 0 {
		t.Errorf("%s, asked %d times", w.Body, a.calls)
	}
	o.Key = func(*http.Request) (httplimit.Charge, bool) { return httplimit.Charge{Cost: 7}, true }
	get(t, a, o)
	if a.asked.Cost != 7 {
		t.Errorf("asked %+v", a.asked)
	}
}

func TestBadOptions(t *testing.T) {
	for says, o := range map[string]httplimit.Options{
		"Options.Domain is empty":  {Key: options.Key},
		"Options.Key is nil":       {Domain: "api"},
		"Options.MaxWait is -1ns;": {Domain: "api", Key: options.Key, MaxWait: -1},
	} {
		func() {
			defer func() {
				if p := recover(); !strings.Contains(fmt.Sprint(p), says) {
					t.Errorf("%v, want %q", p, says)
				}
			}()
			httplimit.New(&answers{}, o)
		}()
	}
}

func wantHeaders(t *testing.T, w *httptest.ResponseRecorder, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s: %s, want %s", name, got, value)
		}
	}
}

func wantProblem(t *testing.T, w *httptest.ResponseRecorder, code int, detail string) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	suite.Must(t, json.Unmarshal(w.Body.Bytes(), &p))
	if w.Code != code || p.Status != code || p.Title != http.StatusText(code) ||
		p.Type != "about:blank" || !strings.Contains(p.Detail, detail) ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s, want %d and %q", w.Code, w.Body, code, detail)
	}
}
