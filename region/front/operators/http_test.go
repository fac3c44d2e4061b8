package operators

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/wire"
)

func TestBuckets(t *testing.T) {
	const ledger = `{"limit":"account-minute","limit_units":1000,"algorithm":"fixed_window","entitlement":400,"share":425,"next_share":400,"cell":5,"used":31,"fading":31,"free":394,"rights":[{"cell":5,"region":"ap-south","lent":1,"returned":2,"borrowed":3,"regained":4},{"cell":5,"region":"eu-west","lent":0,"returned":0,"borrowed":23,"regained":0}]}`
	const ok = "200\n" + fronts.JSONType + ledger
	long := strings.Repeat("x", 70)
	for _, c := range []struct{ name, target, want string }{
		{"found", "account-minute?domain=api&account=42", ok},
		{"escaped", "account%2Dminute?domain=api&account=%7D%7B%00", ok},
		{"unknown", "other?domain=api&account=42",
			fronts.Problem(404, "", "no limit of this name and domain applies to these descriptors", "")},
		{"no domain", "account-minute?account=42",
			fronts.Problem(400, "", "domain: is missing; name the domain of the limits to check",
				`,"field":"domain"`)},
		{"a descriptor twice", "account-minute?domain=api&account=42&account=42",
			fronts.Problem(400, "", "descriptors.account: is given more than once",
				`,"field":"descriptors.account"`)},
		{"domain twice", "account-minute?domain=api&domain=api",
			fronts.Problem(400, "", "domain: is given more than once", `,"field":"domain"`)},
		{"a semicolon", "account-minute?domain=api;account=42",
			fronts.Problem(400, "", "query: is malformed; write it as ?domain=api\\u0026account=42, percent-encoded", `,"field":"query"`)},
		{"a bad escape", "account-minute?domain=%zz",
			fronts.Problem(400, "", "query: is malformed; write it as ?domain=api\\u0026account=42, percent-encoded", `,"field":"query"`)},
		{"not UTF-8", "account-minute?domain=api&account=%ff",
			fronts.Problem(400, "", "descriptors.account: is not valid UTF-8",
				`,"field":"descriptors.account"`)},
		{"a long name twice", "account-minute?domain=api&" + long + "=1&" + long + "=1",
			fronts.Problem(400, "", `descriptors[\"`+long[:64]+`\"...]: is given more than once`, `,"field":"descriptors[\"`+long[:64]+`\"...]"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			fronts.Compare(t, fronts.Exchange(newServer(t, &fronts.Node{}, Options{}).http.Handler, "GET", "/v1/buckets/"+c.target, "", ""), c.want)
		})
	}
	t.Run("no rights", func(t *testing.T) {
		node := &fronts.Node{BucketOf: func(map[string]string) (region.Bucket, error) {
			b := fronts.Bucket()
			b.Inspected.Rows = nil
			return b, nil
		}}
		if got := fronts.Exchange(newServer(t, node, Options{}).http.Handler, "GET", "/v1/buckets/account-minute?domain=api", "", ""); !strings.Contains(got, `"rights":[]`) {
			t.Errorf("got %s, want an empty list of rights", got)
		}
	})
	t.Run("a burst", func(t *testing.T) {
		node := &fronts.Node{BucketOf: func(map[string]string) (region.Bucket, error) { return fronts.TokenBucket(), nil }}
		fronts.Compare(t, fronts.Exchange(newServer(t, node, Options{}).http.Handler, "GET", "/v1/buckets/account-minute?domain=api", "", ""),
			"200\n"+fronts.JSONType+`{"limit":"account-minute","limit_units":1000,"algorithm":"token_bucket","entitlement":400,"burst":80,"share":425,"next_share":400,"cell":5,"used":31,"fading":0,"free":394,"rights":[{"cell":5,"region":"eu-west","lent":0,"returned":0,"borrowed":0,"regained":0,"burst_lent":6,"burst_borrowed":7}]}`)
	})
	t.Run("what is owed", func(t *testing.T) {
		for want, change := range map[string]func(*region.Bucket){
			`"owed":0}`:  func(*region.Bucket) {},
			`"owed":6}`:  func(b *region.Bucket) { b.Inspected.Used = 431 },
			`"owed":9}`:  func(b *region.Bucket) { b.Inspected.Used, b.Inspected.Share = 9, -1 },
			`"owed":19}`: func(b *region.Bucket) { *b = fronts.TokenBucket(); b.Inspected.Used = 100 },
		} {
			node := &fronts.Node{BucketOf: func(map[string]string) (region.Bucket, error) {
				b := fronts.Bucket()
				change(&b)
				b.Limit.Charge = policy.ChargeAlways
				return b, nil
			}}
			got := fronts.Exchange(newServer(t, node, Options{}).http.Handler, "GET", "/v1/buckets/account-minute?domain=api", "", "")
			if !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
	t.Run("store failure", func(t *testing.T) {
		s := newServer(t, &fronts.Node{Err: errors.New("read bucket: unknown store")}, Options{})
		fronts.Compare(t, fronts.Exchange(s.http.Handler, "GET", "/v1/buckets/account-minute?domain=api", "", ""), fronts.Problem(503, "", "read bucket: unknown store", ""))
	})
}

// statusText is fronts.Status as JSON, with what is told of its members and counters.
func statusText(members, counters string) string {
	return `{"region":"us-east","node":"n1","version":"` + version() + `","epoch":"3:abc","generation":2,"ready":true,` +
		`"store":{"kind":"sentinel","address":"127.0.0.1:26379/main","data":["0123abcd"],"last_loss":"1970-01-01T01:00:00Z","losses":1,"out_of_reach":["quotad"],"maxmemory_policy":"noeviction",` +
		`"refusing":[{"kind":"OOM","calls":7,"advice":"raise its maxmemory"}],` +
		`"id":"ab12","stopped":"two stores: mend it","rivals":[{"node":"us-east/n2","id":"cd34",` +
		`"stopped":false,"hearsay":true}],"nodes":2},` +
		`"recovery":{"waiting":3,"partly_known":2,"recovered":8,"limits":[],"closed":[]},"journal":{"incarnation":2,"sequence":9,"rows":4,"checkpoints":3,"whole":true,"failed":false},` +
		`"local":{"buckets":1,"units":7,"unbooked":5},` +
		`"peers":[{"region":"eu-west","heard":true,"age_ms":120.5,"round_trip_ms":80,"degraded":true,"clock_apart_ms":-30}],` +
		`"members":[` + members + `],"mates":["us-east/n2"],` +
		`"counters":{` + counters + `},"documents":{"open":[],"regions":[],"limits":[],"held":0}}`
}

func TestStatusPage(t *testing.T) {
	node := &fronts.Node{State: fronts.Status()}
	s := newServer(t, node, Options{})
	want := "200\n" + fronts.JSONType + statusText(`"eu-west/n1","us-east/n1","us-east/n2"`,
		`"asks":0,"asks_declined":0,"asks_dropped":0,"asks_refused":0,"calls_unanswered":0,"events_dropped":0,"hints_dropped":0,"hints_published":0,"messages_implausible":0,"units_borrowed":26,"units_lent":0,"units_regained":0,"units_returned":0`)
	fronts.Compare(t, fronts.Exchange(s.http.Handler, "GET", "/v1/status", "", ""), want)
	node.SetReady(errors.New("the store is not open"))
	got := fronts.Exchange(s.http.Handler, "GET", "/v1/status", "", "")
	if !strings.Contains(got, `"ready":false,"not_ready":"the store is not open",`) {
		t.Errorf("a node that is not ready says %s", got)
	}
}

// TestStatusMessage: other nodes are told all of a status but what only the node itself is asked for.
func TestStatusMessage(t *testing.T) {
	fronts.Compare(t, string(asjson.Marshal(statusMessage(fronts.Status(), nil))), statusText("", ""))
	if statusMessage(fronts.Status(), errors.New("the store is not open")).Ready {
		t.Error("a node that is not ready says that it is")
	}
}

// TestMetricsPage: the page has the node's metrics and the process's, also with two servers in one
// process.
func TestMetricsPage(t *testing.T) {
	newServer(t, &fronts.Node{}, Options{})
	got := fronts.Exchange(newServer(t, &fronts.Node{}, Options{}).http.Handler, "GET", "/metrics", "", "")
	for _, want := range []string{"200\n", "\nquotad_fake_total 0", "\ngo_goroutines ", "\nprocess_open_fds "} {
		if !strings.Contains(got, want) {
			t.Errorf("metrics do not have %q", want)
		}
	}
}

// TestRefusals shows the requests that HTTP itself refuses.
func TestRefusals(t *testing.T) {
	s := newServer(t, &fronts.Node{}, Options{})
	for _, c := range []struct{ method, path, want string }{
		{"POST", "/v1/status", fronts.Problem(405, "Allow: GET, HEAD\n", "use GET, HEAD", "")},
		{"DELETE", "/v1/buckets/account-minute", fronts.Problem(405, "Allow: GET, HEAD\n", "use GET, HEAD", "")},
		{"DELETE", "/v1/reset", fronts.Problem(405, "Allow: POST\n", "use POST", "")},
		{"GET", "/v1/nothing", fronts.Problem(404, "", noSuchPath, "")},
	} {
		fronts.Compare(t, fronts.Exchange(s.http.Handler, c.method, c.path, "", ""), c.want)
	}
}

// TestPanics: a panic is answered and logged, and the log quotes it.
func TestPanics(t *testing.T) {
	var log bytes.Buffer
	node := &fronts.Node{Fault: "boom\nlevel=ERROR forged"}
	s := New(node, wire.NewLife(node, false), slog.New(slog.NewTextHandler(&log, nil)), Options{})
	defer s.Close()
	for _, call := range [][3]string{{"POST", "/v1/reset", `{}`}, {"GET", "/v1/buckets/account-minute", ""}} {
		log.Reset()
		fronts.Compare(t, fronts.Exchange(s.http.Handler, call[0], call[1], "application/json", call[2]), fronts.Problem(500, "", "a fault of quotad, not of the request; its log has the details", ""))
		if !strings.Contains(log.String(), `panic="boom\nlevel=ERROR forged"`) || !strings.Contains(log.String(), "fronts/node.go") {
			t.Errorf("after %s the log has no panic with its stack: %s", call[1], log.String())
		}
	}
}
