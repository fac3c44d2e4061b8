package callers

import (
	"fmt"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/envoy"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/memory/rules"
)

// reported returns a report as bytes.
func reported(f *testing.F, domain string, ids ...map[string]string) []byte {
	m := &rlqsv3.RateLimitQuotaUsageReports{Domain: domain}
	for i, id := range ids {
		m.BucketQuotaUsages = append(m.BucketQuotaUsages,
			&rlqsv3.RateLimitQuotaUsageReports_BucketQuotaUsage{BucketId: &rlqsv3.BucketId{Bucket: id},
				NumRequestsAllowed: 1 << (63 * i), NumRequestsDenied: 5})
	}
	raw, err := proto.Marshal(m)
	suite.Must(f, err)
	return raw
}

// FuzzReports: whatever Envoys report, what they are told are assignments or abandonments that an
// Envoy takes, of bucket ids that were reported, and the messages can be sent.
func FuzzReports(f *testing.F) {
	first := reported(f, "api", account("1"), nil, account("1"), map[string]string{"user": "1"},
		map[string]string{"account": "1", "user": "2"}, map[string]string{"none": "1"},
		map[string]string{"": "1"})
	f.Add(first, reported(f, "other", account("1"), account("2")))
	f.Add(reported(f, "whole", nil, map[string]string{"any": "1"}), first)
	f.Add([]byte{}, []byte{0x12, 0x00})
	f.Add(reported(f, "api", map[string]string{"account": "1\x00\u202e", "a": "b"}, account("")), first[:20])
	d, err := policy.Parse("limits.yaml", []byte("version: 1\nregions: {here: {weight: 1}}\nlimits:\n"+
		assignable+"  - {name: whole, domain: whole, key: [any], algorithm: token_bucket, limit: 1000, window: 1s, burst: 1000, assign: {}}\n"+
		"  - {name: both, domain: api, key: [account, user], algorithm: token_bucket, limit: 60000, window: 60s, assign: {}}\n"))
	suite.Must(f, err)
	open := rules.New(barrier.Only(d, "here"), nil)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		store := &fronts.Generous{OwnRules: open}
		a := envoys.New(envoys.Config{Node: "n1", Nodes: 1, Rules: store, Rights: store, Limiter: store,
			Now: store.Time, Elapsed: func() time.Duration { return store.At }})
		judge := envoy.New(envoy.Config{})
		var s *envoys.Stream
		for _, raw := range [][]byte{first, second, first, second} {
			m := &rlqsv3.RateLimitQuotaUsageReports{}
			if proto.Unmarshal(raw, m) != nil {
				continue
			}
			if s == nil {
				s, err = a.Open(m.GetDomain())
				suite.Must(t, err)
			}
			usages := usagesOf(m)
			for _, u := range usages {
				judge.Request(store.At+1, u.ID)
			}
			s.Report(usages)
			for range 10 {
				a.CarryOut(t.Context(), a.Step())
				tell(t, judge, store.At+1, s.Take())
				store.At += 500 * time.Millisecond
			}
		}
		if s != nil {
			s.Close()
			s.Report(nil)
		}
		if stats := a.Stats(); stats.Streams != 0 || stats.Shares != 0 {
			t.Errorf("after its end %+v are left", stats)
		}
	})
}

// tell has an Envoy told what an assigner sends.
func tell(t *testing.T, judge *envoy.Envoy, now time.Duration, all []envoys.Assignment) {
	raw, err := proto.Marshal(assignmentsMessage(all))
	suite.Must(t, err)
	m := &rlqsv3.RateLimitQuotaResponse{}
	suite.Must(t, proto.Unmarshal(raw, m))
	judge.Received(now, m)
	if len(judge.Faults) > 0 {
		t.Fatal(judge.Faults)
	}
	for i, one := range all {
		rate, most, assigned := judge.Has(now, one.ID)
		if later := all[i+1:]; one.Abandon == assigned || assigned && (rate < 1 || most < 1) {
			t.Fatalf("told %+v, and then %v, an Envoy has %v, %v, %v", one, later, rate, most, fmt.Sprint(assigned))
		}
	}
}
