package envoy

import (
	"fmt"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
)

// said is a report in short: for each bucket id its account, the seconds since its last report, and
// how many were allowed and denied.
func said(m *rlqsv3.RateLimitQuotaUsageReports) string {
	if m == nil {
		return "nothing"
	}
	text := m.GetDomain()
	for _, u := range m.GetBucketQuotaUsages() {
		text += fmt.Sprintf(" %s:%v+%d-%d", u.GetBucketId().GetBucket()["account"],
			u.GetTimeElapsed().AsDuration().Seconds(), u.GetNumRequestsAllowed(),
			u.GetNumRequestsDenied())
	}
	return text
}

// The first request of a bucket id is reported at once. A timer of 5 s that begins with the first
// of all reports all bucket ids in one message, and counters begin anew.
func TestReports(t *testing.T) {
	e := New(Config{Domain: "api"})
	if e.Due() != 0 {
		t.Errorf("before any request a report is due at %v", e.Due())
	}
	request := func(at time.Duration, id map[string]string, want string) {
		t.Helper()
		_, m := e.Request(at, id)
		if said(m) != want {
			t.Errorf("at %v: %s, want %s", at, said(m), want)
		}
	}
	tick := func(at time.Duration, want string) {
		t.Helper()
		if e.Due() != at {
			t.Errorf("a report is due at %v, want %v", e.Due(), at)
		}
		if m := e.Tick(at); said(m) != want {
			t.Errorf("at %v: %s, want %s", at, said(m), want)
		}
	}
	request(second, one, "api 1:0+0-1")
	request(second, one, "nothing")
	request(2*second, two, "api 2:0+0-1")
	e.Received(3*second, message(assigns(one, bucketOf(2, 1, second), 60*second)))
	for range 3 {
		request(3*second, one, "nothing")
	}
	tick(6*second, "api 1:5+2-2 2:4+0-0")
	tick(11*second, "api 1:5+0-0 2:5+0-0")
	e.Received(12*second, message(abandons(two)))
	tick(16*second, "api 1:5+0-0")
	request(17*second+second/2, two, "api 2:0+0-1")
	tick(21*second, "api 1:5+0-0 2:3+0-0")
	if len(e.Faults) > 0 {
		t.Error(e.Faults)
	}
}

// A bucket id is the whole map: no two of them are one, whatever their texts contain.
func TestBucketIDs(t *testing.T) {
	seen := map[string]map[string]string{}
	for _, id := range []map[string]string{{"a": "b"}, {"a": "b", "c": "d"}, {"a": "b\x00c\x00d"},
		{"a\x00b": ""}, {"a": "\x00b"}, {"a": `b" "c":"d`}, {"": ""}, {"": "a"}, {"a": ""}, {"A": "b"},
		{"a": "b:"}, {"a:": "b"}, {"a": "b c:d"}, {"a": "b ", "c": "d"}} {
		if other, twice := seen[keyOf(id)]; twice {
			t.Errorf("%q is taken for %q", id, other)
		}
		seen[keyOf(id)] = id
	}
}

// An Envoy does not mind what becomes of the map it was asked with.
func TestBucketIDsAreKept(t *testing.T) {
	e, id := New(Config{}), map[string]string{"account": "1"}
	e.Request(1, id)
	id["account"] = "2"
	if got := said(e.Tick(second)); got != " 1:0+0-0" {
		t.Errorf("reported %s", got)
	}
}
