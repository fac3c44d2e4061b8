package peer

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
	"github.com/quotad/quotad/quantity"
)

// RecallHandler answers the question of a node that recovers lost buckets. It gives up when ctx
// ends.
type RecallHandler func(ctx context.Context, q exchange.Question) (exchange.Testimonies, error)

// maxCells bounds the cells of one doubt. Of any window, at most a few dozen cells weigh at a
// time.
const maxCells = 1000

// Recall implements peerv1.PeerServiceServer.
func (s *Server) Recall(ctx context.Context, p *peerv1.RecallRequest) (*peerv1.RecallResponse,
	error) {
	if err := s.authenticate(ctx, Identity{p.GetRegion(), p.GetNode()}); err != nil {
		return nil, err
	}
	if n := len(p.GetDoubts()); n > exchange.MaxAsks {
		s.tooManyAsks.Add(1)
		return nil, status.Error(codes.InvalidArgument,
			fmt.Sprintf("%d doubts in one question, at most %d are answered", n, exchange.MaxAsks))
	}
	for _, d := range p.GetDoubts() {
		if d.GetFrom() < 0 || d.GetTo() < d.GetFrom() || d.GetTo()-d.GetFrom() >= maxCells {
			return nil, status.Error(codes.InvalidArgument,
				fmt.Sprintf("a doubt about the cells %d to %d, at most %d are answered",
					d.GetFrom(), d.GetTo(), maxCells))
		}
	}
	all, err := s.handlers.Recall(ctx, questionFromProto(p))
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return testimoniesToProto(all), nil
}

// Recall asks one node of a region. Its errors are those of Exchange.
func (c *Client) Recall(ctx context.Context, region string,
	q exchange.Question) (exchange.Testimonies, error) {
	address, conn, err := c.pick(region)
	if err != nil {
		return exchange.Testimonies{}, fmt.Errorf("ask region %s: %w", region, err)
	}
	p, err := peerv1.NewPeerServiceClient(conn).Recall(ctx, questionToProto(q))
	if err != nil {
		c.failed(region, address)
		return exchange.Testimonies{}, fmt.Errorf("ask region %s at %s: %w", region, address, err)
	}
	return testimoniesFromProto(p, q), nil
}

// RecallAll asks all nodes of a region at once. It passes each answer that comes to take, one at a
// time, and returns how many were asked.
func (c *Client) RecallAll(ctx context.Context, region string, q exchange.Question,
	take func(exchange.Testimonies)) (asked int) {
	return c.everyNode(region, func(node peerv1.PeerServiceClient) func() {
		p, err := node.Recall(ctx, questionToProto(q))
		if err != nil {
			// A node that does not answer is not fenced. The machine asks again.
			return nil
		}
		return func() { take(testimoniesFromProto(p, q)) }
	})
}

func questionToProto(q exchange.Question) *peerv1.RecallRequest {
	p := &peerv1.RecallRequest{Region: q.From, Node: q.Node, Generation: q.Generation}
	for _, d := range q.Buckets {
		p.Doubts = append(p.Doubts, &peerv1.Doubt{Bucket: []byte(d.Bucket), From: int64(d.From),
			To: int64(d.To)})
	}
	return p
}

func questionFromProto(p *peerv1.RecallRequest) exchange.Question {
	q := exchange.Question{From: p.GetRegion(), Node: p.GetNode(), Generation: p.GetGeneration()}
	for _, d := range p.GetDoubts() {
		q.Buckets = append(q.Buckets, exchange.Doubt{Bucket: string(d.GetBucket()),
			From: quantity.Cell(d.GetFrom()), To: quantity.Cell(d.GetTo())})
	}
	return q
}

func testimoniesToProto(a exchange.Testimonies) *peerv1.RecallResponse {
	p := &peerv1.RecallResponse{Region: a.From, Node: a.Node, ForGeneration: a.ForGeneration}
	for _, h := range a.Heard {
		p.Heard = append(p.Heard, &peerv1.HeardOf{AtUs: int64(h.At), Unsure: h.Unsure})
	}
	for _, t := range a.All {
		one := &peerv1.Testimony{Refused: t.Refused, NowUs: int64(t.Now), LostAtUs: int64(t.LostAt),
			WholeSinceUs: int64(t.WholeSince),
			UseSinceUs:   int64(t.UseSince), Used: int64(t.Use.Units), UsedCell: int64(t.Use.Cell),
			UsedAtUs: int64(t.Use.At), ReadUs: int64(t.Read)}
		for _, r := range t.Rows {
			one.Rows = append(one.Rows, &peerv1.Remembered{Peer: r.Peer, Cell: int64(r.Cell),
				Lent: int64(r.Lent), Returned: int64(r.Returned)})
		}
		p.Testimonies = append(p.Testimonies, one)
	}
	for _, c := range a.Copies {
		p.Copies = append(p.Copies, &peerv1.Copied{Node: c.Node, SinceUs: int64(c.Since), UntilUs: int64(c.Until), Rows: c.Rows, ReadUs: int64(c.Read),
			FirstUs: int64(c.First), AnsweredUs: int64(c.Answered), SettledUs: int64(c.Settled)})
	}
	return p
}

// testimoniesFromProto reads an answer. A testimony that is missing counts as refused.
func testimoniesFromProto(p *peerv1.RecallResponse, q exchange.Question) exchange.Testimonies {
	a := exchange.Testimonies{From: p.GetRegion(), Node: p.GetNode(),
		ForGeneration: p.GetForGeneration()}
	for _, h := range p.GetHeard() {
		a.Heard = append(a.Heard, exchange.HeardOf{At: quantity.StoreTime(h.GetAtUs()), Unsure: h.GetUnsure()})
	}
	for i, d := range q.Buckets {
		t := exchange.Testimony{Bucket: d.Bucket, Refused: true}
		if i < len(p.GetTestimonies()) {
			one := p.GetTestimonies()[i]
			t = exchange.Testimony{Bucket: d.Bucket, Refused: one.GetRefused(),
				Now:        quantity.StoreTime(one.GetNowUs()),
				LostAt:     quantity.StoreTime(one.GetLostAtUs()),
				WholeSince: quantity.StoreTime(one.GetWholeSinceUs()),
				UseSince:   quantity.StoreTime(one.GetUseSinceUs()),
				Read:       quantity.StoreTime(one.GetReadUs()),
				Use: algorithms.Use{Units: quantity.Units(one.GetUsed()),
					Cell: quantity.Cell(one.GetUsedCell()),
					At:   quantity.StoreTime(one.GetUsedAtUs())}}
			for _, r := range one.GetRows() {
				t.Rows = append(t.Rows, algorithms.RememberedRow{Peer: r.GetPeer(),
					Cell: quantity.Cell(r.GetCell()), Lent: quantity.Units(r.GetLent()),
					Returned: quantity.Units(r.GetReturned())})
			}
		}
		a.All = append(a.All, t)
	}
	for _, c := range p.GetCopies() {
		a.Copies = append(a.Copies, exchange.Copied{Node: c.GetNode(), Since: quantity.StoreTime(c.GetSinceUs()),
			Until: quantity.StoreTime(c.GetUntilUs()), Rows: c.GetRows(), Read: quantity.StoreTime(c.GetReadUs()),
			First: quantity.StoreTime(c.GetFirstUs()), Answered: quantity.StoreTime(c.GetAnsweredUs()), Settled: quantity.StoreTime(c.GetSettledUs())})
	}
	return a
}
