package peer

import (
	"github.com/quotad/quotad/allocator/exchange"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
)

func messageToProto(m exchange.Message) *peerv1.ExchangeRequest {
	p := &peerv1.ExchangeRequest{Region: m.From, Node: m.Node, Generation: m.Generation, Epoch: m.Epoch,
		Asks: make([]*peerv1.Ask, len(m.Asks))}
	for i, a := range m.Asks {
		p.Asks[i] = &peerv1.Ask{Bucket: []byte(a.Bucket), Cell: a.Cell, Returned: a.Returned, Lent: a.Lent,
			Burst: a.Burst}
	}
	return p
}

func messageFromProto(p *peerv1.ExchangeRequest) exchange.Message {
	m := exchange.Message{From: p.GetRegion(), Node: p.GetNode(), Generation: p.GetGeneration(), Epoch: p.GetEpoch(),
		Asks: make([]exchange.Ask, len(p.GetAsks()))}
	for i, a := range p.GetAsks() {
		m.Asks[i] = exchange.Ask{Bucket: string(a.GetBucket()), Cell: a.GetCell(),
			Returned: a.GetReturned(), Lent: a.GetLent(), Burst: a.GetBurst()}
	}
	return m
}

func replyToProto(r exchange.Reply) *peerv1.ExchangeResponse {
	p := &peerv1.ExchangeResponse{Region: r.From, Generation: r.Generation, ForGeneration: r.ForGeneration, Epoch: r.Epoch,
		AtUs: r.At, Grants: make([]*peerv1.Grant, len(r.Grants))}
	for i, g := range r.Grants {
		p.Grants[i] = &peerv1.Grant{Refusal: peerv1.Refusal(g.Refusal), Cell: g.Cell, Returned: g.Returned, Lent: g.Lent,
			Spare: g.Spare, RetryUs: g.Retry, Burst: g.Burst, SpareBurst: g.SpareBurst}
	}
	return p
}

func replyFromProto(p *peerv1.ExchangeResponse) exchange.Reply {
	r := exchange.Reply{From: p.GetRegion(), Generation: p.GetGeneration(), ForGeneration: p.GetForGeneration(),
		Epoch: p.GetEpoch(), At: p.GetAtUs(), Grants: make([]exchange.Grant, len(p.GetGrants()))}
	for i, g := range p.GetGrants() {
		r.Grants[i] = exchange.Grant{Refusal: refusalFromProto(g.GetRefusal()), Cell: g.GetCell(), Returned: g.GetReturned(),
			Lent: g.GetLent(), Spare: g.GetSpare(), Retry: g.GetRetryUs(), Burst: g.GetBurst(), SpareBurst: g.GetSpareBurst()}
	}
	return r
}

// refusalFromProto returns a refusal. A value that this version does not know counts as
// RefusedStore: nothing was given.
func refusalFromProto(r peerv1.Refusal) exchange.Refusal {
	if r < 0 || r > peerv1.Refusal(exchange.RefusedStore) {
		return exchange.RefusedStore
	}
	return exchange.Refusal(r)
}
