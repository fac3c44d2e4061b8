package bench

import (
	"context"

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
	switch {
	case b.Columns:
		return columns(client)
	case b.Batch == 1:
		return single(client)
	}
	return batches(client)
}

func single(client quotadv1.QuotaServiceClient) prepare {
	return func(keys []int) call {
		m := request(keys[0])
		return func(ctx context.Context) (int64, error) {
			got, err := client.Check(ctx, m)
			return denials(got.GetDecision()), err
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
			return denials(got.GetDecisions()...), err
		}
	}
}

func columns(client quotadv1.QuotaServiceClient) prepare {
	return func(keys []int) call {
		m := &quotadv1.CheckColumnsRequest{Domain: domain, Names: []string{descriptor},
			Values: make([]string, len(keys))}
		for i, key := range keys {
			m.Values[i] = keyName(key)
		}
		return func(ctx context.Context) (denied int64, err error) {
			got, err := client.CheckColumns(ctx, m)
			for _, allowed := range got.GetAllowed() {
				if !allowed {
					denied++
				}
			}
			return denied, err
		}
	}
}

// request returns a request with a key.
func request(key int) *quotadv1.CheckRequest {
	return &quotadv1.CheckRequest{Domain: domain,
		Descriptors: map[string]string{descriptor: keyName(key)}}
}

// denials counts the decisions that do not admit their request.
func denials(all ...*quotadv1.Decision) (denied int64) {
	for _, d := range all {
		if !d.GetAllowed() {
			denied++
		}
	}
	return denied
}
