package callers

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
)

// items parses a header that is a list of items, by their names.
func items(t *testing.T, h http.Header, name string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	list, err := httpsfv.UnmarshalList(h.Values(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		text, isText := item.Value.(string)
		if !ok || !isText || all[text] != nil {
			t.Fatalf("%s: %v", name, h.Values(name))
		}
		all[text] = map[string]any{}
		for _, p := range item.Params.Names() {
			all[text][p], _ = item.Params.Get(p)
		}
	}
	return all
}

func TestHeaders(t *testing.T) {
	several := fronts.Denied()
	several.Degraded = true
	several.Limits = []admit.LimitState{
		{Limit: "account-minute", LimitUnits: 1000, Unit: "tokens", Window: time.Minute, Counted: true, Share: 425,
			RetryAfter: 10*time.Second + 1, ResetAfter: time.Minute, Degraded: true},
		{Limit: "short", LimitUnits: 5, Window: 500 * time.Millisecond, Counted: true, Admits: true,
			Remaining: 9, Share: 3},
		{Limit: "unknown", LimitUnits: 5, Window: time.Hour, Admits: true},
	}
	const legacy = "X-RateLimit-Limit: 1000\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 11\n"
	const one = "RateLimit: \"account-minute\";r=0;t=11;quotad-share=425\nRateLimit-Policy: \"account-minute\";q=1000;w=60\n"
	for _, c := range []struct {
		style    Headers
		decision admit.Decision
		want     string
	}{
		{LegacyHeaders, fronts.Denied(), legacy},
		{IETFHeaders, fronts.Denied(), one},
		{BothHeaders, fronts.Denied(), one + legacy},
		{"", fronts.Denied(), one + legacy},
		{NoHeaders, fronts.Denied(), ""},
		{BothHeaders, admit.Decision{Allowed: true, Reason: admit.NoLimit}, ""},
		{IETFHeaders, fronts.Undecided(admit.QueueFull),
			"RateLimit-Policy: \"account-minute\";q=1000;w=60\n"},
		{IETFHeaders, several,
			"RateLimit: \"account-minute\";r=0;t=11;quotad-share=425;quotad-degraded, \"short\";r=5;quotad-share=3\n" +
				"RateLimit-Policy: \"account-minute\";q=1000;qu=\"tokens\";w=60, \"short\";q=5, \"unknown\";q=5;w=3600\n"},
	} {
		c.decision.Window = time.Minute
		w := httptest.NewRecorder()
		c.style.set(w.Header(), c.decision, 0)
		var got strings.Builder
		for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit",
			"X-RateLimit-Remaining", "X-RateLimit-Reset"} {
			if text := w.Header().Get(name); text != "" {
				fmt.Fprintf(&got, "%s: %s\n", name, text)
			}
		}
		if got.String() != c.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.style, got.String(), c.want)
		}
	}
}

// TestHeadersAgree spends limits of all algorithms on both kinds of store. Whoever comes again when
// one header says is not sent away by another.
func TestHeadersAgree(t *testing.T) {
	var limits strings.Builder
	for _, kind := range algorithms.Kinds {
		fmt.Fprintf(&limits, "  - {name: %s, domain: %s, key: [account], algorithm: %s, limit: 4, window: 60m, unit: tokens}\n",
			kind, kind, kind)
	}
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, fronts.Start(t, start(t), limits.String()), fronts.Quiet())
			at := fronts.Listen(t, s.ServeHTTP, s.Close)
			for _, kind := range algorithms.Kinds {
				codes := ""
				for range 6 {
					codes += headersOf(t, at, kind)
				}
				if !strings.HasPrefix(codes, "allowed allowed allowed allowed denied") {
					t.Errorf("%s: %s", kind, codes)
				}
			}
		})
	}
}

// headersOf makes a check and says what came of it.
func headersOf(t *testing.T, at string, kind algorithms.Kind) string {
	t.Helper()
	r, err := http.Post(at+"/v1/check", "application/json", strings.NewReader(
		fmt.Sprintf(`{"domain":%q,"descriptors":{"account":"42"}}`, kind)))
	suite.Must(t, err)
	_ = r.Body.Close()
	policy, limit := items(t, r.Header, "RateLimit-Policy")[string(kind)],
		items(t, r.Header, "RateLimit")[string(kind)]
	if policy["q"] != int64(4) || policy["w"] != int64(3600) || limit["quotad-share"] != int64(4) ||
		policy["qu"] != "tokens" {
		t.Errorf("%s: policy %v, limit %v", kind, policy, limit)
	}
	for name, want := range map[string]any{"X-RateLimit-Limit": policy["q"],
		"X-RateLimit-Remaining": limit["r"], "X-RateLimit-Reset": limit["t"]} {
		if got := r.Header.Get(name); got != fmt.Sprint(want) {
			t.Errorf("%s: %s is %s, of RateLimit %v", kind, name, got, limit)
		}
	}
	wait, _ := limit["t"].(int64)
	if wait < 1 || wait > 2*3600 {
		t.Errorf("%s: reset after %v", kind, limit["t"])
	}
	if r.StatusCode == http.StatusOK {
		if r.Header.Get("Retry-After") != "" {
			t.Errorf("%s: allowed, and Retry-After %s", kind, r.Header.Get("Retry-After"))
		}
		return "allowed "
	}
	if retry, err := strconv.ParseInt(r.Header.Get("Retry-After"), 10, 64); err != nil || retry != wait {
		t.Errorf("%s: Retry-After %s, RateLimit %v", kind, r.Header.Get("Retry-After"), limit)
	}
	return "denied "
}

// TestMaxRate: of a day's limit RateLimit suggests no more than the bound, and X-RateLimit-Remaining
// is what it is.
func TestMaxRate(t *testing.T) {
	d := fronts.Denied()
	d.Allowed, d.RetryAfter, d.ResetAfter = true, 0, time.Minute
	d.LimitUnits, d.Window, d.Remaining = 86400, 24*time.Hour, 50000
	for bound, left := range map[int]string{0: "50000", 10: "600"} {
		h := http.Header{}
		BothHeaders.set(h, d, bound)
		if got := h.Get("RateLimit"); !strings.Contains(got, ";r="+left+";t=60;") ||
			h.Get("X-RateLimit-Remaining") != "50000" {
			t.Errorf("bound %d: %v", bound, h)
		}
	}
}

// TestStatusesAreDocumented compares the table of docs/reference/headers.md with what denials are
// answered.
func TestStatusesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "headers.md"))
	suite.Must(t, err)
	row := regexp.MustCompile("(?m)^\\| (`[^|]+) \\| ([0-9]{3}) \\| (.+) \\|$")
	said := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		kind, _, _ := strings.Cut(strings.Trim(m[3], "`"), ",")
		for _, reason := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(m[1], -1) {
			cut := strings.Contains(m[1], "cannot be reached")
			said[fmt.Sprintf("%s %v", reason[1], cut)] = m[2] + " " + kind
		}
	}
	for reason := range denials {
		for _, cut := range []bool{false, true} {
			p := denial(admit.Decision{Limit: "a", Reason: reason, Degraded: cut})
			_, kind, _ := strings.Cut(p.Type, "types")
			want := fmt.Sprintf("%d %s", p.Status, cmp.Or(kind, "none"))
			name := fmt.Sprintf("%s %v", reason, cut)
			if got := cmp.Or(said[name], said[string(reason)+" false"]); got != want {
				t.Errorf("%s is answered %q, and documented as %q", name, want, got)
			}
		}
	}
}
