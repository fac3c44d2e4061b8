package envoy

import (
	"slices"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	one = map[string]string{"account": "1"}
	two = map[string]string{"account": "2"}
)

const second = time.Second

// bucketOf is a strategy: a token bucket of most tokens, and rate more each interval.
func bucketOf(most, rate uint32, interval time.Duration) *typev3.RateLimitStrategy {
	return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_TokenBucket{
		TokenBucket: &typev3.TokenBucket{MaxTokens: most, TokensPerFill: wrapperspb.UInt32(rate),
			FillInterval: durationpb.New(interval)}}}
}

func blanket(rule typev3.RateLimitStrategy_BlanketRule) *typev3.RateLimitStrategy {
	return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_BlanketRule_{
		BlanketRule: rule}}
}

var (
	allowAll    = blanket(typev3.RateLimitStrategy_ALLOW_ALL)
	denyAll     = blanket(typev3.RateLimitStrategy_DENY_ALL)
	perTimeUnit = &typev3.RateLimitStrategy{
		Strategy: &typev3.RateLimitStrategy_RequestsPerTimeUnit_{
			RequestsPerTimeUnit: &typev3.RateLimitStrategy_RequestsPerTimeUnit{
				RequestsPerTimeUnit: 1000}}}
)

type action = rlqsv3.RateLimitQuotaResponse_BucketAction

// assigns is an action that assigns a strategy; ttl < 0: it has no time to live.
func assigns(id map[string]string, s *typev3.RateLimitStrategy, ttl time.Duration) *action {
	a := &assignment{RateLimitStrategy: s}
	if ttl >= 0 {
		a.AssignmentTimeToLive = durationpb.New(ttl)
	}
	return &action{BucketId: &rlqsv3.BucketId{Bucket: id},
		BucketAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{
			QuotaAssignmentAction: a}}
}

func abandons(id map[string]string) *action {
	return &action{BucketId: &rlqsv3.BucketId{Bucket: id},
		BucketAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_AbandonAction_{
			AbandonAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_AbandonAction{}}}
}

// message is one of the server's.
func message(all ...*action) *rlqsv3.RateLimitQuotaResponse {
	return &rlqsv3.RateLimitQuotaResponse{BucketAction: all}
}

// event is what happens at a moment: what the server sends, and then requests of bucket id one.
type event struct {
	at       time.Duration
	sent     *action
	requests int
	allowed  int // of requests, as it must be
}

// facts are those of doc.go about what is allowed.
var facts = []struct {
	name    string
	config  Config
	events  []event
	rebuilt int
	faults  []string
}{
	{name: "without an assignment all are denied", events: []event{{at: 1, requests: 3}}},
	{name: "what is configured for no assignment decides", config: Config{NoAssignment: allowAll},
		events: []event{{at: 1, requests: 3, allowed: 3}}},
	{name: "denying is configured for no assignment", config: Config{NoAssignment: denyAll},
		events: []event{{at: 1, requests: 3}}},
	{name: "a token bucket starts full and fills without steps", rebuilt: 1, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 10, second), 60*second), requests: 9, allowed: 5},
		{at: 2 + second/10, requests: 9, allowed: 1},
		{at: 2 + second/2, requests: 9, allowed: 4},
		{at: 2 + 10*second, requests: 9, allowed: 5}}},
	{name: "the same assignment goes on with its tokens, and with a new time to live", rebuilt: 1,
		events: []event{{at: 1, requests: 1},
			{at: 2, sent: assigns(one, bucketOf(5, 1, second), 2*second), requests: 9, allowed: 5},
			{at: 2 + second, sent: assigns(one, bucketOf(5, 1, second), 2*second), requests: 9, allowed: 1},
			{at: 1 + 3*second, requests: 9, allowed: 1},
			{at: 2 + 3*second, requests: 9}}},
	{name: "other max_tokens are a new bucket", rebuilt: 2, events: []event{{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), 9*second), requests: 9, allowed: 5},
		{at: 3, sent: assigns(one, bucketOf(4, 1, second), 9*second), requests: 9, allowed: 4}}},
	{name: "other tokens_per_fill are a new bucket", rebuilt: 2, events: []event{{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), 9*second), requests: 9, allowed: 5},
		{at: 3, sent: assigns(one, bucketOf(5, 2, second), 9*second), requests: 9, allowed: 5}}},
	{name: "other nanoseconds of fill_interval are a new bucket", rebuilt: 2, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), 9*second), requests: 9, allowed: 5},
		{at: 3, sent: assigns(one, bucketOf(5, 1, second+1), 9*second), requests: 9, allowed: 5}}},
	{name: "other seconds of fill_interval are the same bucket at its old rate", rebuilt: 1,
		events: []event{{at: 1, requests: 1},
			{at: 2, sent: assigns(one, bucketOf(5, 2, second), 9*second), requests: 9, allowed: 5},
			{at: 3, sent: assigns(one, bucketOf(5, 2, 4*second), 9*second)},
			{at: 3 + second, requests: 9, allowed: 2}}},
	{name: "parts of a second of fill_interval do not count", rebuilt: 1, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 2, 1999*time.Millisecond), 9*second), requests: 9, allowed: 5},
		{at: 2 + second, requests: 9, allowed: 2}}},
	{name: "a fill_interval of less than a second is a fault, and played as a second", rebuilt: 1,
		events: []event{{at: 1, requests: 1},
			{at: 2, sent: assigns(one, bucketOf(1, 1, second/2), 9*second), requests: 9, allowed: 1},
			{at: 2 + second, requests: 9, allowed: 1}},
		faults: []string{"a fill interval of no whole second, by which Envoy divides"}},
	{name: "parts of a second of a time to live do not count", rebuilt: 1, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(1, 100, second), 1999*time.Millisecond)},
		{at: 1 + second, requests: 1, allowed: 1}, {at: 2 + second, requests: 1}}},
	{name: "a time to live of less than a second ends at once", rebuilt: 1, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), 999*time.Millisecond), requests: 9}},
		faults: []string{"a time to live of no whole second"}},
	{name: "none ends at once too", rebuilt: 1, events: []event{{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), -1), requests: 9}},
		faults: []string{"a time to live of no whole second"}},
	{name: "the same assignment after its end is a new bucket", rebuilt: 2, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), second), requests: 9, allowed: 5},
		{at: 2 + second, sent: assigns(one, bucketOf(5, 1, second), second), requests: 9, allowed: 5}}},
	{name: "the same assignment just before its end is not", rebuilt: 1, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), second), requests: 9, allowed: 5},
		{at: 1 + second, sent: assigns(one, bucketOf(5, 1, second), second), requests: 9}}},
	{name: "requests_per_time_unit is passed over", rebuilt: 1, events: []event{{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), second), requests: 9, allowed: 5},
		{at: 1 + second, sent: assigns(one, perTimeUnit, 9*second), requests: 9},
		{at: 2 + second, requests: 9}}, faults: []string{"a strategy that Envoy passes over"}},
	{name: "an assignment without a strategy is passed over", rebuilt: 1, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), 9*second), requests: 3, allowed: 3},
		{at: 3, sent: assigns(one, nil, 9*second), requests: 9, allowed: 2}},
		faults: []string{"a strategy that Envoy passes over"}},
	{name: "an action of no kind ends what goes on", rebuilt: 1, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), 9*second), requests: 3, allowed: 3},
		{at: 3, sent: &action{BucketId: &rlqsv3.BucketId{Bucket: one}}, requests: 9}},
		faults: []string{"an action that is neither an assignment nor an abandonment"}},
	{name: "a blanket rule takes a bucket's place, and the bucket begins anew", rebuilt: 2,
		events: []event{{at: 1, requests: 1},
			{at: 2, sent: assigns(one, bucketOf(5, 1, second), 9*second), requests: 9, allowed: 5},
			{at: 3, sent: assigns(one, allowAll, 9*second), requests: 9, allowed: 9},
			{at: 4, sent: assigns(one, denyAll, 9*second), requests: 9},
			{at: 5, sent: assigns(one, bucketOf(5, 1, second), 9*second), requests: 9, allowed: 5}}},
	{name: "what is configured for after an assignment decides for its time",
		config: Config{Expired: allowAll, ExpiredFor: 2 * second}, rebuilt: 1, events: []event{
			{at: 1, requests: 1},
			{at: 2, sent: assigns(one, bucketOf(5, 1, second), second), requests: 9, allowed: 5},
			{at: 2 + second, requests: 9, allowed: 9}, {at: 1 + 3*second, requests: 9, allowed: 9},
			{at: 2 + 3*second, requests: 9}}},
	{name: "a bucket that is configured for after an assignment is new",
		config: Config{Expired: bucketOf(3, 1, second), ExpiredFor: 9 * second}, rebuilt: 2,
		events: []event{{at: 1, requests: 1},
			{at: 2, sent: assigns(one, bucketOf(5, 1, second), second), requests: 9, allowed: 5},
			{at: 2 + second, requests: 9, allowed: 3}}},
	{name: "unless it is the same as that of the assignment",
		config: Config{Expired: bucketOf(5, 1, second), ExpiredFor: 9 * second}, rebuilt: 1,
		events: []event{{at: 1, requests: 1},
			{at: 2, sent: assigns(one, bucketOf(5, 1, second), second), requests: 9, allowed: 5},
			{at: 2 + second, requests: 9, allowed: 1},
			{at: 3 + second, sent: assigns(one, bucketOf(5, 1, second), second), requests: 9},
			{at: 3 + 2*second, requests: 9, allowed: 1}}},
	{name: "a bucket may take over which part of its tokens the one before had left",
		config: Config{Carries: true, Expired: bucketOf(10, 1, second), ExpiredFor: 9 * second}, rebuilt: 4,
		events: []event{{at: 1, requests: 1},
			{at: 2, sent: assigns(one, bucketOf(10, 1, second), 9*second), requests: 4, allowed: 4},
			{at: 3, sent: assigns(one, bucketOf(21, 2, second), 9*second), requests: 20, allowed: 12},
			{at: 3 + 4*second, sent: assigns(one, bucketOf(7, 1, second), second), requests: 1, allowed: 1},
			{at: 3 + 5*second, requests: 9, allowed: 2}}},
	{name: "but none after a rule", config: Config{Carries: true}, rebuilt: 2,
		events: []event{{at: 1, requests: 1},
			{at: 2, sent: assigns(one, bucketOf(10, 1, second), 9*second), requests: 4, allowed: 4},
			{at: 3, sent: assigns(one, denyAll, 9*second)},
			{at: 4, sent: assigns(one, bucketOf(20, 1, second), 9*second), requests: 21, allowed: 20}}},
	{name: "an abandoned bucket id is as one that was never seen", rebuilt: 2, events: []event{
		{at: 1, requests: 1},
		{at: 2, sent: assigns(one, bucketOf(5, 1, second), 9*second), requests: 9, allowed: 5},
		{at: 3, sent: abandons(one), requests: 9},
		{at: 4, sent: assigns(one, bucketOf(5, 1, second), 9*second), requests: 9, allowed: 5}}},
	{name: "an action needs a bucket id", events: []event{{at: 1, requests: 1},
		{at: 2, sent: assigns(nil, allowAll, second), requests: 1}},
		faults: []string{"an action without a bucket id"}},
	{name: "that was reported", events: []event{{at: 1, requests: 1},
		{at: 2, sent: assigns(two, allowAll, second), requests: 1}},
		faults: []string{"an action for a bucket id that was not reported"}},
}

func TestFacts(t *testing.T) {
	for _, f := range facts {
		t.Run(f.name, func(t *testing.T) {
			e := New(f.config)
			for _, v := range f.events {
				if v.sent != nil {
					e.Received(v.at, message(v.sent))
				}
				allowed := 0
				for range v.requests {
					if ok, _ := e.Request(v.at, one); ok {
						allowed++
					}
				}
				if allowed != v.allowed {
					t.Errorf("at %v %d of %d are allowed, want %d", v.at, allowed, v.requests, v.allowed)
				}
			}
			if e.Rebuilt != f.rebuilt || !slices.Equal(e.Faults, f.faults) {
				t.Errorf("%d buckets began anew, and the faults are %q; want %d and %q", e.Rebuilt,
					e.Faults, f.rebuilt, f.faults)
			}
		})
	}
}
