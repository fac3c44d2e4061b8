package client_test

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// exampleNode stands for a node in examples. It admits ten units of each account.
type exampleNode struct {
	quotadv1.UnimplementedQuotaServiceServer
	mu   sync.Mutex
	used map[string]int64
}

// startExampleNode returns the address of a node, and what ends it.
func startExampleNode() (at string, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer()
	quotadv1.RegisterQuotaServiceServer(s, &exampleNode{used: map[string]int64{}})
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	return l.Addr().String(), func() {
		s.Stop()
		serving.Wait()
	}
}

// Check implements quotad.v1.QuotaService.
func (n *exampleNode) Check(_ context.Context,
	m *quotadv1.CheckRequest) (*quotadv1.CheckResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	const limit = 10
	account, cost := m.GetDescriptors()["account"], max(m.GetCost(), 1)
	d := &quotadv1.Decision{Limit: "account", LimitUnits: limit,
		Reason: quotadv1.Reason_REASON_OVER_LIMIT, RetryAfter: durationpb.New(time.Minute)}
	if n.used[account]+cost <= limit {
		n.used[account] += cost
		d.Allowed, d.Reason, d.RetryAfter = true, quotadv1.Reason_REASON_WITHIN_LIMIT, nil
		if m.GetReceipt() {
			d.Receipt = "qr1_1"
		}
	}
	d.Remaining = limit - n.used[account]
	return &quotadv1.CheckResponse{Decision: d}, nil
}
