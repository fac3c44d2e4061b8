package peer

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	peerv1 "github.com/quotad/quotad/proto/peer/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/copies"
)

// CopyHandler keeps a part of what another node has seen, and returns the number of
// the part that is taken next.
type CopyHandler func(ctx context.Context, from Identity, p copies.Part) (next uint64, err error)

// Copy implements peerv1.PeerServiceServer.
func (s *Server) Copy(ctx context.Context, p *peerv1.CopyRequest) (*peerv1.CopyResponse, error) {
	from := Identity{p.GetRegion(), p.GetNode()}
	if err := s.authenticate(ctx, from); err != nil {
		return nil, err
	}
	if n := len(p.GetUses()); n > copies.MaxUses {
		s.tooManyAsks.Add(1)
		return nil, status.Error(codes.InvalidArgument,
			fmt.Sprintf("%d uses in one part, at most %d are taken", n, copies.MaxUses))
	}
	part := partFromProto(p)
	for i, u := range part.Uses {
		if err := u.Check(); err != nil {
			return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("use %d of %d: %v", i+1, len(part.Uses), err))
		}
	}
	next, err := s.handlers.Copy(ctx, from, part)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &peerv1.CopyResponse{Next: next}, nil
}

// Nodes returns the addresses of a region's nodes that are called.
func (c *Client) Nodes(region string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes[region])
}

// Copy tells a node a part of what this one has seen. It fails with ErrClosed after Close, and otherwise
// with an error that carries the gRPC status.
func (c *Client) Copy(ctx context.Context, region, address string, p copies.Part) (next uint64, err error) {
	conn, err := c.conn(node{region, address})
	if err != nil {
		return 0, fmt.Errorf("copy to %s: %w", address, err)
	}
	r, err := peerv1.NewPeerServiceClient(conn).Copy(ctx, partToProto(p))
	if err != nil {
		return 0, fmt.Errorf("copy to %s: %w", address, err)
	}
	return r.GetNext(), nil
}

func partToProto(p copies.Part) *peerv1.CopyRequest {
	m := &peerv1.CopyRequest{Region: p.Region, Node: p.Node, Life: p.Life, Part: p.Number, SinceUs: int64(p.Since), UntilUs: int64(p.Until), ReadUs: int64(p.Read)}
	for _, u := range p.Uses {
		m.Uses = append(m.Uses, &peerv1.Use{Bucket: []byte(u.Bucket), Cell: int64(u.Cell), Used: int64(u.Units),
			AtUs: int64(u.At), UntilUs: int64(u.Until), Generation: u.Generation})
	}
	return m
}

func partFromProto(m *peerv1.CopyRequest) copies.Part {
	p := copies.Part{Region: m.GetRegion(), Node: m.GetNode(), Life: m.GetLife(), Number: m.GetPart(), Since: quantity.StoreTime(m.GetSinceUs()),
		Until: quantity.StoreTime(m.GetUntilUs()), Read: quantity.StoreTime(m.GetReadUs())}
	for _, u := range m.GetUses() {
		p.Uses = append(p.Uses, copies.Use{Bucket: string(u.GetBucket()), Cell: quantity.Cell(u.GetCell()),
			Units: quantity.Units(u.GetUsed()), At: quantity.StoreTime(u.GetAtUs()), Until: quantity.StoreTime(u.GetUntilUs()), Generation: u.GetGeneration()})
	}
	return p
}
