package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quotad/quotad/cmd/quotad/exit"
)

// answering is a node's API that gives the same answer to everything.
func answering(t *testing.T, code int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestExitCodesByAnswer(t *testing.T) {
	cut := []string{"cut", "eu", "--for", "5s"}
	check := []string{"check", "--domain", "api", "account=42"}
	status := []string{"status"}
	settle := []string{"settle", "a-receipt", "3"}
	reset := []string{"reset", "a", "--domain", "api", "--yes"}
	show := []string{"explain", "--ledger", "a", "--domain", "api", "account=42"}
	explain := []string{"explain", "a"}
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		body   string
		want   int
		stdout string
		stderr string
	}{
		{"allowed", check, 200,
			`{"allowed":true,"reason":"within_limit","limit":"a","limit_units":1,"remaining":0,"region":"us","node":"n1"}`,
			exit.OK, "limit       a: 1 unit over all regions\n", ""},
		{"denied", check, 429,
			`{"allowed":false,"reason":"over_limit","limit":"a","limit_units":2,"retry_after_ms":1500.25,"region":"us","node":"n1"}`,
			exit.Denied, "retry in    1.5s\n", ""},
		{"degraded", check, 200,
			`{"allowed":true,"reason":"within_limit","degraded":true,"shadowed":["a","b"]}`,
			exit.OK, "shadow      a, b would have denied\n", ""},
		{"denied without a store", check, 503,
			`{"status":503,"detail":"no store","allowed":false,"reason":"store_failure"}`,
			exit.Denied, "denied (store_failure)", ""},
		{"denied peek", append(check, "--peek"), 200, `{"allowed":false,"reason":"never"}`,
			exit.Denied, "denied (never)", ""},
		{"denied as JSON", append(check, "-o", "json"), 429,
			`{"allowed":false,"reason":"over_limit"}`,
			exit.Denied, "{\n  \"allowed\": false,\n  \"reason\": \"over_limit\"\n}\n", ""},
		{"undecided", check, 503, `{"detail":"it ended"}`, exit.NotAnswered, "",
			"the node answered 503: it ended; try again"},
		{"refused", check, 400, `{"detail":"cost: is odd"}`, exit.BadUsage, "",
			"cost: is odd; correct the request"},
		{"fault", check, 500, `{"detail":"a fault"}`, exit.Failed, "",
			"the node answered 500: a fault"},
		{"something else", check, 404, `<html>`, exit.Failed, "",
			"answered 404 Not Found, which no quotad node answers: check that --addr"},
		{"its turn comes", check, 200,
			`{"allowed":true,"reason":"within_limit","limit":"q","limit_units":9,"algorithm":"leaky_bucket","delay_ms":1500.4}`,
			exit.OK, "delay       serve it in 1.5s, when its turn has come\n", ""},
		{"with a receipt", append(check, "--receipt"), 200,
			`{"allowed":true,"reason":"within_limit","receipt":"-Rc_9"}`, exit.OK,
			"receipt     -Rc_9\n", ""},
		{"without a receipt", append(check, "--receipt"), 200,
			`{"allowed":true,"reason":"store_failure_allowed"}`,
			exit.OK, "receipt     none: no store charged anything\n", ""},
		{"repeated", append(check, "--request-id", "r1"), 200,
			`{"allowed":true,"reason":"within_limit","repeated":true}`,
			exit.OK, "repeated    yes: it was charged before under its request id, and not again\n",
			""},
		{"given back", settle, 200,
			`{"settled":[{"limit":"a","back":0,"reason":"turn promised","charged":0,"owed":0},{"limit":"b","back":1,"charged":0,"owed":0}],"repeated":false,"used":3}`,
			exit.OK, "LIMIT  USED  GIVEN BACK  CHARGED  OWED     NOTE\na      3     0 units     0 units  0 units  turn promised\nb      3     1 unit      0 units  0 units  -\n", ""},
		{"charged beyond", settle, 200,
			`{"settled":[{"limit":"a","back":0,"charged":9,"owed":4}],"repeated":false,"used":12}`,
			exit.OK, "a      12    0 units     9 units  4 units  -\n", ""},
		{"settled before", settle, 200,
			`{"settled":[{"limit":"a","back":2,"charged":0,"owed":0},{"limit":"b","back":0,"reason":"no longer weighs","charged":0,"owed":0}],"repeated":true,"used":1}`,
			exit.OK, "a      1     2 units     0 units  0 units  before, not again\nb      1     0 units     0 units  0 units  before: no longer weighs\n", ""},
		{"nothing settled", settle, 200,
			`{"settled":[{"limit":"a","back":0,"reason":"no longer weighs","charged":0,"owed":0}],"repeated":false,"used":3}`,
			exit.Failed, "no longer weighs\n",
			"nothing was settled (a: no longer weighs)"},
		{"nothing charged", settle, 200, `{"settled":[],"repeated":false,"used":3}`, exit.Failed, "LIMIT",
			"nothing was settled: the receipt has no charges"},
		{"settle refused", settle, 409,
			`{"status":409,"detail":"it is of region eu; send it there"}`,
			exit.Failed, "", "quotad: the node answered 409: it is of region eu; send it there\n"},
		{"no receipt", settle, 400, `{"detail":"receipt: is none"}`, exit.BadUsage, "",
			"receipt: is none; correct the request"},
		{"no settlement", settle, 200, `{}`, exit.Failed, "", "which no quotad node answers"},
		{"reset", reset, 200, `{"cleared":1}`, exit.OK,
			"cleared 1 unit of a, in this region alone\n", ""},
		{"no reset", reset, 200, `{}`, exit.Failed, "", "which no quotad node answers"},
		{"reset of nothing", reset, 404, `{"detail":"no limit"}`, exit.Failed, "",
			"the node answered 404: no limit; compare limit, --domain and descriptors with quotad limits list"},
		{"reset without a store", reset, 503, `{"detail":"unknown store"}`, exit.NotAnswered, "",
			"unknown store; try again"},
		{"cut off", cut, 200,
			`{"region":"eu","direction":"both","for_ms":5000,"addresses":["127.0.1.11","127.0.1.12"]}`,
			exit.OK, "cut off from eu for 5s (127.0.1.11, 127.0.1.12)\n", ""},
		{"cut off, and told what was lost", cut, 200,
			`{"region":"eu","direction":"both","for_ms":5000,"addresses":["127.0.1.11"],"packets_lost":7}`,
			exit.OK, "cut off from eu for 5s (127.0.1.11); cuts have lost 7 packets since the node started\n", ""},
		{"not to be cut", cut, 403, `{"detail":"this node makes no cuts"}`, exit.Failed, "",
			"quotad: the node answered 403: this node makes no cuts\n"},
		{"no cut", cut, 200, `{}`, exit.Failed, "", "which no quotad node answers"},
		{"a bucket", show, 200,
			`{"limit":"a","limit_units":100,"algorithm":"token_bucket","entitlement":40,"burst":8,"share":41,"next_share":40,"cell":5,"used":3,"fading":2,"free":5,
			"rights":[{"cell":4,"region":"eu","lent":1,"returned":2,"borrowed":3,"regained":4,"burst_lent":5,"burst_borrowed":6}]}`, exit.OK,
			"limit        a: 100 units over all regions\nalgorithm    token_bucket\ncell         5\nfixed split  40\nshare        41\nnext share   40\n" +
				"used         3, of which 2 stop counting before the cell ends\nfree         5\nburst        8, this region's part\n\n" +
				"REGION  CELL  LENT  RETURNED  BORROWED  REGAINED  BURST LENT  BURST BORROWED\neu      4     1     2         3         4         5           6\n", ""},
		{"a bucket that owes", show, 200,
			`{"limit":"a","limit_units":100,"algorithm":"fixed_window","entitlement":40,"share":41,"next_share":40,"cell":5,"used":48,"fading":0,"free":0,"rights":[],"owed":7}`, exit.OK,
			"free         0\nowes         7; the limit is charged always\n", ""},
		{"regions that owe", explain, 200,
			`{"sentence":"No.","limit":"a","domain":"api","descriptors":{},"algorithm":"fixed_window","limit_units":100,"window_ms":60000,"used":48,"owed":7,"silent":["ap"],
			"regions":[{"region":"us","epoch":"1-a","entitlement":40,"share":41,"used":48,"free":0,"owed":7},{"region":"eu","epoch":"1-a","entitlement":40,"share":40,"used":0,"free":40,"owed":0},
			{"region":"af","epoch":"1-a","problem":"no answer"}]}`, exit.OK,
			"a (api): 48 of 100 units used, window 1m, fixed_window, charged always: owes 7\n\n" +
				"REGION  FIXED SPLIT  SHARE  USED  FREE  OWES  LENT  BORROWED  STATE           LAST REQUEST  DOCUMENT\n" +
				"us      40           41     48    0     7     0     0         ok              none known    1-a\n" +
				"eu      40           40     0     40    0     0     0         ok              none known    1-a\n" +
				"af      -            -      -     -     -     -     -         no answer       none known    1-a\n" +
				"ap      -            -      -     -     -     -     -         DID NOT ANSWER", ""},
		{"regions that cannot owe", explain, 200,
			`{"sentence":"No.","limit":"a","domain":"api","descriptors":{},"algorithm":"fixed_window","limit_units":100,"window_ms":60000,"used":48,"silent":[],
			"regions":[{"region":"us","epoch":"1-a","entitlement":40,"share":41,"used":48,"free":0}]}`, exit.OK,
			"window 1m, fixed_window\n\nREGION  FIXED SPLIT  SHARE  USED  FREE  LENT", ""},
		{"no text", append(show, "plan=\xff"), 200, ``, exit.BadUsage, "",
			`descriptor "plan=\xff" is not valid UTF-8`},
		{"no bucket", show, 200, `{"region":"us"}`, exit.Failed, "", "which no quotad node answers"},
		{"ready", status, 200,
			`{"region":"us","node":"n1","ready":true,"peers":[{"region":"eu","heard":true,"age_ms":12.7,"round_trip_ms":3}]}`,
			exit.OK, "eu      ok     13ms ago     3ms         -\n", ""},
		{"unheard", status, 200,
			`{"region":"us","node":"n1","ready":true,"peers":[{"region":"eu","degraded":true}]}`,
			exit.OK, "eu      degraded  never        -           -\n", ""},
		{"not ready", status, 200,
			`{"region":"us","node":"n1","ready":false,"not_ready":"no store"}`,
			exit.Failed, "ready        no: no store\n",
			"node us/n1 is not ready: no store; see its log"},
		{"no status", status, 200, `[]`, exit.Failed, "", "which no quotad node answers"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{}, test.args...)
		got := run(t.Context(), append(args, "--addr", answering(t, test.code, test.body)), &stdout,
			&stderr)
		if got != test.want {
			t.Errorf("%s: exit code %d, want %d", test.name, got, test.want)
		}
		if !strings.Contains(stdout.String(), test.stdout) ||
			(test.stdout == "" && stdout.Len() > 0) {
			t.Errorf("%s: stdout %q, want %q", test.name, &stdout, test.stdout)
		}
		if !strings.Contains(stderr.String(), test.stderr) ||
			(test.stderr == "" && stderr.Len() > 0) {
			t.Errorf("%s: stderr %q, want %q", test.name, &stderr, test.stderr)
		}
	}
}
