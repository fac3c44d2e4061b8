//go:build !race

package reference

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const shop = `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 3, name: user}
  - key: user
    value: root
    rate_limit: {unlimited: true}
  - key: user
    value: nobody
  - key: path
    value: /static/*
    share_threshold: true
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: path
    value: /s*e
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: path
    value: /static/robots
    rate_limit: {unit: day, requests_per_unit: 9}
  - key: trial
    shadow_mode: true
    rate_limit: {unit: week, requests_per_unit: 1}
  - key: vip
    rate_limit: {unit: month, requests_per_unit: 5, replaces: [{name: user}]}
  - key: free
    rate_limit: {unlimited: true, replaces: [{name: user}]}
  - key: left
    quota_mode: true
    rate_limit: {unit: year, requests_per_unit: 1}
  - key: right
    quota_mode: true
    rate_limit: {unit: year, requests_per_unit: 2}
  - key: tenant
    descriptors:
      - key: tenant
        value: "1"
        rate_limit: {unit: second, requests_per_unit: 1}
`

// ask is a request in short: its descriptors are separated by spaces, their entries by commas, and
// hits_addend stands behind a plus. The answer is the overall code and, for each descriptor, its
// code, limit, what is left and when that begins anew.
type ask struct {
	at      float64 // seconds
	request string
	want    string
}

func (a ask) parse() *rlsv3.RateLimitRequest {
	r := &rlsv3.RateLimitRequest{Domain: "shop"}
	for text := range strings.FieldsSeq(a.request) {
		d := &ratelimitv3.RateLimitDescriptor{}
		text, addend, found := strings.Cut(text, "+")
		if found {
			var n uint64
			fmt.Sscan(addend, &n)
			d.HitsAddend = wrapperspb.UInt64(n)
		}
		for entry := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(entry, "=")
			d.Entries = append(d.Entries, &ratelimitv3.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

func inShort(r *rlsv3.RateLimitResponse) string {
	letter := map[rlsv3.RateLimitResponse_Code]string{rlsv3.RateLimitResponse_OK: "ok",
		rlsv3.RateLimitResponse_OVER_LIMIT: "over"}
	text := letter[r.OverallCode] + ":"
	for _, s := range r.Statuses {
		text += " " + letter[s.Code]
		if l := s.CurrentLimit; l != nil {
			text += fmt.Sprintf("/%s%d%s", l.Name, l.RequestsPerUnit, strings.ToLower(l.Unit.String()[:1]))
			text += fmt.Sprintf("/%d/%d", s.LimitRemaining, s.DurationUntilReset.GetSeconds())
		} else if s.LimitRemaining > 0 {
			text += fmt.Sprintf("/%d", s.LimitRemaining)
		}
	}
	return text
}

// TestAnswers: what servers of each habit answer. The time begins with a minute.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		habit Habit
		asks  []ask
	}{
		"what applies": {Charged, []ask{
			{0, "user=a", "ok: ok/user3m/2/60"},
			{0, "user=", "ok: ok/user3m/2/60"},
			{0, "user=root", "ok: ok/4294967295"},
			{0, "user=nobody", "ok: ok"},
			{0, "user=a,user=a", "ok: ok"},
			{0, "other=a", "ok: ok"},
			{0, "tenant=5", "ok: ok"},
			{0.5, "tenant=5,tenant=1", "ok: ok/1s/0/1"},
			{0.9, "tenant=6,tenant=1", "ok: ok/1s/0/1"},
			{0.9, "tenant=6,tenant=2", "ok: ok"},
			{0, "path=/static/robots", "ok: ok/9d/8/86400"},
			{0, "path=/static/e", "ok: ok/2h/1/3600"},
			{0, "path=/static/f", "ok: ok/2h/0/3600"},
			{0, "path=/static/g", "over: over/2h/0/3600"},
			{0, "path=/some", "ok: ok/1h/0/3600"},
			{0, "path=/side", "ok: ok/1h/0/3600"},
			{0, "path=/some", "over: over/1h/0/3600"},
			{0, "path=/somewhere/else/not", "ok: ok"},
		}},
		"what is denied is charged": {Charged, []ask{
			{0, "user=a+2 user=b", "ok: ok/user3m/1/60 ok/user3m/2/60"},
			{10.7, "user=a+2 user=b", "over: over/user3m/0/50 ok/user3m/1/50"},
			{20, "user=a+0", "over: over/user3m/0/40"},
			{20, "user=a", "over: over/user3m/0/40"},
			{60, "user=a user=a user=a user=a", "over: ok/user3m/2/60 ok/user3m/1/60 ok/user3m/0/60 over/user3m/0/60"},
		}},
		"what is denied is not charged": {Apart, []ask{
			{0, "user=a+2 user=b", "ok: ok/user3m/1/60 ok/user3m/2/60"},
			{10.7, "user=a+2 user=b", "over: over/user3m/0/50 ok/user3m/1/50"},
			{20, "user=a+0", "ok: ok/user3m/1/40"},
			{20, "user=a", "ok: ok/user3m/0/40"},
			{60, "user=a user=a user=a+2 user=a", "over: ok/user3m/2/60 ok/user3m/1/60 over/user3m/0/60 ok/user3m/0/60"},
		}},
		"all or none": {Together, []ask{
			{0, "user=a+2 user=b", "ok: ok/user3m/1/60 ok/user3m/2/60"},
			{10, "user=a+2 user=b", "over: over/user3m/0/50 ok/user3m/2/50"},
			{20, "user=a+0 user=b+3", "over: ok/user3m/1/40 over/user3m/0/40"},
			{60, "user=a user=a+2 user=b", "ok: ok/user3m/1/60 ok/user3m/1/60 ok/user3m/2/60"},
		}},
		"shadow": {Charged, []ask{
			{0, "trial=a", "ok: ok/1w/0/604800"},
			{0, "trial=a user=a", "ok: ok/1w/0/604800 ok/user3m/2/60"},
		}},
		"shadow together": {Together, []ask{
			{0, "trial=a", "ok: ok/1w/0/604800"},
			{0, "trial=a user=a+4", "over: ok/1w/0/604800 over/user3m/0/60"},
			{0, "trial=b user=a+4", "over: ok/1w/1/604800 over/user3m/0/60"},
			{0, "trial=a user=a", "ok: ok/1w/0/604800 ok/user3m/2/60"},
		}},
		"replaced": {Charged, []ask{
			{0, "user=a vip=a", "ok: ok ok/5m/4/2592000"},
			{0, "user=a free=a", "ok: ok ok/4294967295"},
			{0, "user=a", "ok: ok/user3m/2/60"},
		}},
		"quotas deny together": {Charged, []ask{
			{0, "left=a right=a", "ok: ok/1y/0/31536000 ok/2y/1/31536000"},
			{0, "left=a right=a", "ok: over/1y/0/31536000 ok/2y/0/31536000"},
			{0, "left=a right=a", "over: over/1y/0/31536000 over/2y/0/31536000"},
			{0, "left=b right=a", "ok: ok/1y/0/31536000 over/2y/0/31536000"},
			{0, "right=a user=a", "over: over/2y/0/31536000 ok/user3m/2/60"},
		}},
		"a quota with room is charged": {Together, []ask{
			{0, "left=a", "ok: ok/1y/0/31536000"},
			{0, "left=a right=a user=a", "ok: over/1y/0/31536000 ok/2y/1/31536000 ok/user3m/2/60"},
			{0, "left=a right=a user=a+3", "over: over/1y/0/31536000 ok/2y/1/31536000 over/user3m/0/60"},
			{0, "right=a", "ok: ok/2y/0/31536000"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := Parse([]byte(shop))
			suite.Must(t, err)
			s := NewServer(config, c.habit)
			for i, a := range c.asks {
				at := time.Unix(0, int64(a.at*float64(time.Second)))
				response, err := s.ShouldRateLimit(at, a.parse())
				suite.Must(t, err)
				if got := inShort(response); got != a.want {
					t.Errorf("%d, %s: %s, want %s", i, a.request, got, a.want)
				}
			}
		})
	}
}

// TestParseRefuses: files that nobody could mean.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"descriptors: []", "domain: a\nkeys: []",
		"domain: a\ndescriptors: [{key: a}, {key: a}]", "domain: a\ndescriptors: [{value: a}]",
		"domain: a\ndescriptors: [{key: a, descriptors: [{key: b}, {key: b}]}]",
		"domain: a\ndescriptors: [{key: a, rate_limit: {unit: day, unlimited: true}}]",
		"domain: a\ndescriptors: [{key: a, rate_limit: {requests_per_unit: 1}}]"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
