package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Question is a request for a decision.
type Question struct {
	Domain      string            `json:"domain"`
	Descriptors map[string]string `json:"descriptors"`
	Cost        int64             `json:"cost"`
	// GRPC asks over gRPC instead of HTTP.
	GRPC bool `json:"-"`
}

// Life returns which start of the node runs, as a number that grows with each start, or false if
// that is not known. It is called before and after a request, and must not block.
type Life func() (start uint64, known bool)

// decided is a decision as either API returns it. at is 0 if no store decided.
type decided struct {
	allowed, degraded            bool
	cell, at, entitlement, share int64
	sequence                     uint64
}

// Ask sends one request and returns what its caller saw of it, for the judge of that limit. bucket
// is the judge's name of the bucket. It returns false if the request was never sent; then there is
// nothing to judge.
//
// A restarted node numbers its decisions anew, so each start has a name of its own, such as n1#2.
// If Ask cannot tell which start answered, the answer gets a unique node name, so that its number
// is not taken for a duplicate. A denial that no store decided, or that the node told from memory,
// gets the time at which the request was sent.
func (c *Caller) Ask(ctx context.Context, q Question, bucket string, limit oracle.Limit,
	life Life) (oracle.Answer, bool) {
	var sent atomic.Bool
	start, known := life()
	a := oracle.Answer{Bucket: bucket, Region: c.node.Region, Node: fmt.Sprintf("%s#%d", c.node.Name, start),
		Cost: q.Cost, Sent: time.Now()}
	ask := c.askHTTP
	if q.GRPC {
		ask = c.askGRPC
	}
	d, err := ask(ctx, q, &sent)
	a.Seen = time.Now()
	if err != nil {
		return a, sent.Load()
	}
	if then, still := life(); !known || !still || then != start {
		a.Node += fmt.Sprintf("|%d", a.Sent.UnixNano())
	}
	a.Sequence, a.Cell, a.At, a.Entitlement, a.Share, a.Degraded = d.sequence, d.cell, d.at,
		d.entitlement, d.share, d.degraded
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

// askHTTP asks over HTTP. It fails if there was no decision. It sets sent once there is a
// connection to send the request on.
func (c *Caller) askHTTP(ctx context.Context, q Question, sent *atomic.Bool) (decided, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return decided{}, err
	}
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	_, answer, err := c.exchange(ctx, c.node.HTTP, "POST", "/v1/check", body)
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
		FromMemory  bool `json:"from_memory"`
	}
	if err := json.Unmarshal(answer, &d); err != nil || d.Allowed == nil {
		return decided{}, fmt.Errorf("%s answered %q, which is no decision", c, answer)
	}
	out := decided{*d.Allowed, d.Degraded, d.Cell, 0, d.Entitlement, d.Share, d.Sequence}
	if d.At != "" && (*d.Allowed || !d.FromMemory) {
		at, err := time.Parse(time.RFC3339Nano, d.At)
		if err != nil {
			return decided{}, err
		}
		out.at = at.UnixMicro()
	}
	return out, nil
}

// askGRPC asks over gRPC, as askHTTP does over HTTP.
func (c *Caller) askGRPC(ctx context.Context, q Question, sent *atomic.Bool) (decided, error) {
	if c.rpc == nil {
		return decided{}, fmt.Errorf("%s: no gRPC address is known: ask over HTTP", c)
	}
	m := &quotadv1.CheckRequest{Domain: q.Domain, Descriptors: q.Descriptors, Cost: &q.Cost}
	answer, err := c.rpc.Check(context.WithValue(ctx, sentKey{}, sent), m)
	if err != nil {
		return decided{}, err
	}
	d := answer.GetDecision()
	out := decided{d.GetAllowed(), d.GetDegraded(), d.GetCell(), d.GetAtUs(), d.GetEntitlement(),
		d.GetShare(), d.GetSequence()}
	if !out.allowed && d.GetFromMemory() {
		out.at = 0
	}
	return out, nil
}
