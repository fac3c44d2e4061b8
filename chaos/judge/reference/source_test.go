//go:build !race

package reference

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
)

// drawn are dice of which rapid finds the simplest throws that fail.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

// TestTheImportMatchesAlike: the document made of a configuration applies the same limits to the
// same descriptors, and counts the same ones together.
func TestTheImportMatchesAlike(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		s := Source{Dice: drawn{t}}
		roots := s.Files()
		texts, err := Texts(roots)
		suite.Must(t, err)
		c, err := Parse(texts...)
		if err != nil {
			t.Fatalf("%v\n%s", err, texts)
		}
		d, err := importedBy(texts, Apart)
		if err != nil {
			t.Fatalf("%v\n%s", err, texts)
		}
		m := d.Compile()
		ours, theirs := map[string]string{}, map[string]string{}
		for range 8 {
			r := s.Request(roots)
			for _, one := range r.Descriptors {
				bucket, counted, err := compare(c, m, r.Domain, one)
				if err != nil {
					t.Fatalf("%v: %v\n%s\n%s", one, err, texts, d.Source())
				}
				if bucket == "" {
					continue
				}
				if ours[bucket] == "" && theirs[counted] == "" {
					ours[bucket], theirs[counted] = counted, bucket
				}
				if ours[bucket] != counted || theirs[counted] != bucket {
					t.Fatalf("%v counts in %s as %s: so do %s and %s\n%s\n%s", one, bucket, counted,
						ours[bucket], theirs[counted], texts, d.Source())
				}
			}
		}
	})
}

// compare compares what applies to a descriptor. It returns how both name its count, if there is
// one.
func compare(c *Configuration, m *policy.Matcher, domain string,
	one *ratelimitv3.RateLimitDescriptor) (bucket, counted string, err error) {
	var list []policy.KeyValue
	for _, e := range one.Entries {
		list = append(list, policy.KeyValue{Name: e.Key, Value: e.Value})
	}
	all, exempt := m.AppendList(nil, domain, list)
	want, counted, _ := c.Match(domain, one)
	switch {
	case want == nil || want.Unlimited:
		unlimited := exempt != nil && exempt.Unlimited
		if len(all) > 0 || unlimited != (want != nil) {
			return "", "", fmt.Errorf("limits %v, exemption %v, want %+v", all, exempt, want)
		}
		return "", "", nil
	case len(all) != 1 || exempt != nil:
		return "", "", fmt.Errorf("limits %v, exemption %v, want %+v", all, exempt, want)
	}
	l := all[0]
	window := time.Duration(seconds[want.Unit]) * time.Second
	if int64(l.Limit) != int64(want.Requests) || l.Window != window || l.Shadow != want.Shadow ||
		l.Alternative != want.Quota || l.Alias != want.Name || len(l.Replaces) != len(want.Replaces) ||
		!maps.EqualFunc(l.Metadata.Fields(), want.Metadata.AsMap(), func(a, b any) bool { return reflect.DeepEqual(a, b) }) {
		return "", "", fmt.Errorf("limit %+v, want %+v", l, want)
	}
	return string(l.AppendBucketOf(nil, list)), domain + " " + counted, nil
}

// TestSourceDrawsWhatMatters: configurations and requests are such that every rule is used.
func TestSourceDrawsWhatMatters(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(200) {
		s := Source{Dice: rand.New(rand.NewPCG(seed, 1)), Zeros: true}
		roots := s.Files()
		texts, err := Texts(roots)
		suite.Must(t, err)
		c, err := Parse(texts...)
		suite.Must(t, err)
		servers := map[Habit]*Server{Charged: NewServer(c, Charged), Apart: NewServer(c, Apart),
			Together: NewServer(c, Together)}
		now := time.Unix(1_700_000_000, 0)
		for range 100 {
			r := s.Request(roots)
			now = now.Add(s.Pause())
			see(seen, c, r)
			for h, server := range servers {
				response, err := server.ShouldRateLimit(now, r)
				if err != nil || len(response.Statuses) != len(r.Descriptors) {
					t.Fatalf("%v, %v", response, err)
				}
				seen[string(h)+" "+response.OverallCode.String()]++
				if response.OverallCode == rlsv3.RateLimitResponse_OK {
					for _, status := range response.Statuses {
						if status.Code != rlsv3.RateLimitResponse_OK {
							seen["spared"]++
						}
					}
				}
			}
		}
	}
	t.Log(seen)
	for _, what := range []string{"no limit", "unlimited", "limit", "shadow", "quota", "replaces", "shared",
		"repeated key", "unknown domain", "same descriptor twice", "zero", "spared", "charged OK",
		"charged OVER_LIMIT", "apart OK", "apart OVER_LIMIT", "together OK", "together OVER_LIMIT"} {
		if seen[what] < 50 {
			t.Errorf("%s: seen %d times", what, seen[what])
		}
	}
}

// see counts what a request meets.
func see(seen map[string]int, c *Configuration, r *rlsv3.RateLimitRequest) {
	count := func(what string, is bool) {
		if is {
			seen[what]++
		}
	}
	count("unknown domain", r.Domain == "unknown")
	for i, d := range r.Descriptors {
		l, counted, _ := c.Match(r.Domain, d)
		count("no limit", l == nil)
		count("zero", d.HitsAddend != nil && d.HitsAddend.Value == 0)
		count("same descriptor twice", i > 0 && d == r.Descriptors[0])
		keys := map[string]bool{}
		for _, e := range d.Entries {
			count("repeated key", keys[e.Key])
			keys[e.Key] = true
		}
		if l != nil {
			count("unlimited", l.Unlimited)
			count("limit", !l.Unlimited)
			count("shadow", l.Shadow)
			count("quota", l.Quota)
			count("replaces", len(l.Replaces) > 0)
			for _, b := range []byte(counted) {
				count("shared", b == '*')
			}
		}
	}
}

// TestErrors: a request without a domain or descriptors is refused, as by envoyproxy/ratelimit.
func TestErrors(t *testing.T) {
	c, err := Parse([]byte("domain: a"))
	suite.Must(t, err)
	s := NewServer(c, Charged)
	_, noDomain := s.ShouldRateLimit(time.Unix(0, 0), &rlsv3.RateLimitRequest{
		Descriptors: []*ratelimitv3.RateLimitDescriptor{{}}})
	_, noDescriptors := s.ShouldRateLimit(time.Unix(0, 0), &rlsv3.RateLimitRequest{Domain: "a"})
	if noDomain == nil || noDescriptors == nil {
		t.Error(errors.Join(noDomain, noDescriptors))
	}
}
