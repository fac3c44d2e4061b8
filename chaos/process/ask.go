package process

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/quotad/quotad/chaos/oracle"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Question is a request to be decided.
type Question struct {
	Domain      string            `json:"domain"`
	Descriptors map[string]string `json:"descriptors"`
	Cost        int64             `json:"cost"`
	// GRPC asks over gRPC, else over HTTP.
	GRPC bool `json:"-"`
}

// decided is what a decision says, over either API; at is 0 if no store decided.
type decided struct {
	allowed, degraded            bool
	cell, at, entitlement, share int64
	sequence                     uint64
}

// Ask sends one request and returns what its caller saw of it, for the judge of
// that limit; bucket is the judge's name of what is asked for. It is false if
// the request was never sent, and there is nothing to judge.
//
// A node that was started again counts anew, so each start has a name of its
// own: n1#2. A denial that no store decided is placed where it was sent.
func (n *Node) Ask(ctx context.Context, q Question, bucket string, limit oracle.Limit) (oracle.Answer, bool) {
	var sent atomic.Bool
	start := n.Starts()
	a := oracle.Answer{Bucket: bucket, Region: n.Region, Node: fmt.Sprintf("%s#%d", n.Name, start), Cost: q.Cost, Sent: time.Now()}
	ask := n.askHTTP
	if q.GRPC {
		ask = n.askGRPC
	}
	d, err := ask(ctx, q, &sent)
	a.Seen = time.Now()
	if err != nil {
		return a, sent.Load()
	}
	if n.Starts() != start { // either of the two may have answered, so its number says nothing
		a.Node += fmt.Sprintf("|%d", a.Sent.UnixNano())
	}
	a.Sequence, a.Cell, a.At, a.Entitlement, a.Share, a.Degraded = d.sequence, d.cell, d.at, d.entitlement, d.share, d.degraded
	switch {
	case !d.allowed:
		a.Outcome = oracle.Denied
		if d.at == 0 {
			a.At = a.Sent.UnixMicro()
			a.Cell = limit.CellOf(a.At)
		}
	case d.at != 0:
		a.Outcome = oracle.Admitted
	}
	return a, true
}

// askHTTP fails if there was no decision; sent is set once there is a connection
// to send the request on.
func (n *Node) askHTTP(ctx context.Context, q Question, sent *atomic.Bool) (decided, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return decided{}, err
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	_, answer, err := n.exchange(ctx, "POST", "/v1/check", body)
	if err != nil {
		return decided{}, err
	}
	var d struct {
		Allowed     *bool
		At          string
		Cell        int64
		Entitlement int64
		Share       int64
		Sequence    uint64
		Degraded    bool
	}
	if err := json.Unmarshal(answer, &d); err != nil || d.Allowed == nil {
		return decided{}, fmt.Errorf("%s answered %q, which is no decision", n.name, answer)
	}
	out := decided{*d.Allowed, d.Degraded, d.Cell, 0, d.Entitlement, d.Share, d.Sequence}
	if d.At != "" {
		at, err := time.Parse(time.RFC3339Nano, d.At)
		if err != nil {
			return decided{}, err
		}
		out.at = at.UnixMicro()
	}
	return out, nil
}

// askGRPC is askHTTP over gRPC.
func (n *Node) askGRPC(ctx context.Context, q Question, sent *atomic.Bool) (decided, error) {
	m := &quotadv1.CheckRequest{Domain: q.Domain, Descriptors: q.Descriptors, Cost: &q.Cost}
	answer, err := n.rpc.Check(context.WithValue(ctx, sentKey{}, sent), m)
	if err != nil {
		return decided{}, err
	}
	d := answer.GetDecision()
	return decided{d.GetAllowed(), d.GetDegraded(), d.GetCell(), d.GetAtUs(), d.GetEntitlement(), d.GetShare(), d.GetSequence()}, nil
}

// sentKey is where the context of a call keeps the flag that sendWatch sets.
type sentKey struct{}

// sendWatch notes which calls were sent; one that found no connection was not.
type sendWatch struct{}

// TagRPC implements stats.Handler.
func (sendWatch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (sendWatch) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); !ok {
		return
	}
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(true)
	}
}

// TagConn implements stats.Handler.
func (sendWatch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (sendWatch) HandleConn(context.Context, stats.ConnStats) {}
