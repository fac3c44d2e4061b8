package bench

import (
	"context"
	"errors"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// call makes one call and returns how many of its requests were denied.
type call func(ctx context.Context) (denied int64, err error)

// prepare makes the request of a call for some keys. What it does is not measured.
type prepare func(keys []int) call

// prepare returns how the calls of one caller are made.
func (b *Bench) prepare(s *subject, caller int) prepare {
	if b.HTTP {
		return s.web.prepare
	}
	conn := s.conns[caller%len(s.conns)]
	if s.envoy != nil {
		return s.envoy.prepare(ratelimit.NewRateLimitServiceClient(conn))
	}
	client := quotadv1.NewQuotaServiceClient(conn)
	if b.Batch == 1 {
		return single(client)
	}
	return batches(client)
}

func single(client quotadv1.QuotaServiceClient) prepare {
	return func(keys []int) call {
		m := request(keys[0])
		return func(ctx context.Context) (int64, error) {
			got, err := client.Check(ctx, m)
			if err != nil {
				return 0, err
			}
			return denials(got.GetDecision())
		}
	}
}

func batches(client quotadv1.QuotaServiceClient) prepare {
	return func(keys []int) call {
		m := &quotadv1.CheckBatchRequest{Requests: make([]*quotadv1.CheckRequest, len(keys))}
		for i, key := range keys {
			m.Requests[i] = request(key)
		}
		return func(ctx context.Context) (int64, error) {
			got, err := client.CheckBatch(ctx, m)
			if err != nil {
				return 0, err
			}
			return denials(got.GetDecisions()...)
		}
	}
}

// request returns a request with a key.
func request(key int) *quotadv1.CheckRequest {
	return &quotadv1.CheckRequest{Domain: domain,
		Descriptors: map[string]string{descriptor: keyName(key)}}
}

var errUndecided = errors.New("the node had no time to decide some requests of the call")

// denials counts the decisions that do not admit their request. It fails if one is not decided,
// which is no denial.
func denials(all ...*quotadv1.Decision) (denied int64, err error) {
	for _, d := range all {
		switch {
		case d.GetUndecided():
			return 0, errUndecided
		case !d.GetAllowed():
			denied++
		}
	}
	return denied, nil
}
