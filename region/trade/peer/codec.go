package peer

import (
	"github.com/quotad/quotad/allocator/exchange"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
	"github.com/quotad/quotad/quantity"
)

func messageToProto(m exchange.Message) *peerv1.ExchangeRequest {
	p := &peerv1.ExchangeRequest{Region: m.From, Node: m.Node, Generation: m.Generation, ShownUs: int64(m.Shown),
		Documents: documentsToProto(m.Documents), Asks: make([]*peerv1.Ask, len(m.Asks))}
	for i, a := range m.Asks {
		p.Asks[i] = &peerv1.Ask{Bucket: []byte(a.Bucket), Cell: int64(a.Cell),
			Returned: int64(a.Returned), Lent: int64(a.Lent),
			Burst: int64(a.Burst), Agreed: a.Agreed, Owed: int64(a.Owed), Large: int64(a.Large), ForRegion: a.For}
	}
	return p
}

func messageFromProto(p *peerv1.ExchangeRequest) exchange.Message {
	m := exchange.Message{From: p.GetRegion(), Node: p.GetNode(), Generation: p.GetGeneration(),
		Shown:     quantity.StoreTime(p.GetShownUs()),
		Documents: documentsFromProto(p.GetDocuments()),
		Asks:      make([]exchange.Ask, len(p.GetAsks()))}
	for i, a := range p.GetAsks() {
		m.Asks[i] = exchange.Ask{Bucket: string(a.GetBucket()), Cell: quantity.Cell(a.GetCell()),
			Returned: quantity.Units(a.GetReturned()), Lent: quantity.Units(a.GetLent()),
			Burst: quantity.Units(a.GetBurst()), Agreed: a.GetAgreed(),
			Owed: quantity.Units(a.GetOwed()), Large: quantity.Units(a.GetLarge()), For: a.GetForRegion()}
	}
	return m
}

func replyToProto(r exchange.Reply) *peerv1.ExchangeResponse {
	p := &peerv1.ExchangeResponse{Region: r.From, Generation: r.Generation,
		ForGeneration: r.ForGeneration, Documents: documentsToProto(r.Documents),
		AtUs: int64(r.At), Grants: make([]*peerv1.Grant, len(r.Grants))}
	for i, g := range r.Grants {
		p.Grants[i] = &peerv1.Grant{Refusal: peerv1.Refusal(g.Refusal), Cell: int64(g.Cell),
			Returned: int64(g.Returned), Lent: int64(g.Lent),
			Spare: int64(g.Spare), RetryUs: g.Retry, Burst: int64(g.Burst),
			SpareBurst: int64(g.SpareBurst)}
	}
	return p
}

func replyFromProto(p *peerv1.ExchangeResponse) exchange.Reply {
	r := exchange.Reply{From: p.GetRegion(), Generation: p.GetGeneration(),
		ForGeneration: p.GetForGeneration(),
		Documents:     documentsFromProto(p.GetDocuments()), At: quantity.StoreTime(p.GetAtUs()),
		Grants: make([]exchange.Grant, len(p.GetGrants()))}
	for i, g := range p.GetGrants() {
		r.Grants[i] = exchange.Grant{Refusal: refusalFromProto(g.GetRefusal()),
			Cell: quantity.Cell(g.GetCell()), Returned: quantity.Units(g.GetReturned()),
			Lent: quantity.Units(g.GetLent()), Spare: quantity.Units(g.GetSpare()),
			Retry: g.GetRetryUs(), Burst: quantity.Units(g.GetBurst()),
			SpareBurst: quantity.Units(g.GetSpareBurst())}
	}
	return r
}

// MaxDocuments bounds the documents that are read of one message.
const MaxDocuments = 64

func documentsToProto(all []exchange.Acknowledged) []*peerv1.Acknowledged {
	p := make([]*peerv1.Acknowledged, len(all))
	for i, d := range all {
		p[i] = &peerv1.Acknowledged{Version: d.Version, Digest: d.Digest[:], AtUs: int64(d.At)}
		for _, f := range d.Fenced {
			p[i].Fenced = append(p[i].Fenced, &peerv1.Fence{Region: f.Region, Life: f.Life})
		}
	}
	return p
}

// The bounds of the fences that are read of one document. A document has at most 64 regions and
// removes at most 256, and their names have at most 63 bytes. A region returns at most a million
// times, so a fence of a later life could not be taken back.
const (
	maxFenced    = 64 + 256
	maxNameBytes = 63
	maxLife      = 1_000_000 - 1
)

func fencesFromProto(p []*peerv1.Fence) (all []exchange.Fence) {
	for _, f := range p[:min(len(p), maxFenced)] {
		if f.GetLife() >= 0 && f.GetLife() <= maxLife && len(f.GetRegion()) <= maxNameBytes {
			all = append(all, exchange.Fence{Region: f.GetRegion(), Life: f.GetLife()})
		}
	}
	return all
}

// documentsFromProto reads which documents are open in a region. It passes over what cannot be one.
func documentsFromProto(p []*peerv1.Acknowledged) (all []exchange.Acknowledged) {
	for _, d := range p[:min(len(p), MaxDocuments)] {
		if len(d.GetDigest()) == len(exchange.Acknowledged{}.Digest) && d.GetVersion() > 0 &&
			d.GetAtUs() >= 0 {
			all = append(all, exchange.Acknowledged{Version: d.GetVersion(),
				Digest: [32]byte(d.GetDigest()), At: quantity.StoreTime(d.GetAtUs()),
				Fenced: fencesFromProto(d.GetFenced())})
		}
	}
	return all
}

// refusalFromProto returns a refusal. A value that this version does not know counts as
// RefusedStore: nothing was given.
func refusalFromProto(r peerv1.Refusal) exchange.Refusal {
	if r < 0 || r > peerv1.Refusal(exchange.RefusedStore) {
		return exchange.RefusedStore
	}
	return exchange.Refusal(r)
}
