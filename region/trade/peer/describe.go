package peer

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	peerv1 "github.com/quotad/quotad/proto/peer/v1"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

const (
	// MaxHottest bounds the hottest buckets that a node is asked to name.
	MaxHottest = 100
	// MaxLookedAt bounds the buckets that a node is asked to look at.
	MaxLookedAt = 2 * MaxHottest
	// MaxLimitViews bounds the limits that a node names.
	MaxLimitViews = 256
)

// DescribeHandler describes this node to another one.
type DescribeHandler = func(ctx context.Context, q *quotadv1.ViewRequest) *quotadv1.View

// Describe implements peerv1.PeerServiceServer.
func (s *Server) Describe(ctx context.Context, p *peerv1.DescribeRequest) (*peerv1.DescribeResponse,
	error) {
	if err := s.authenticate(ctx, Identity{p.GetRegion(), p.GetNode()}); err != nil {
		return nil, err
	}
	describe := s.describe.Load()
	if describe == nil {
		return nil, status.Error(codes.Unavailable, "the node has only just started")
	}
	q := p.GetView()
	if q.GetHottest() < 0 || q.GetHottest() > MaxHottest || len(q.GetBuckets()) > MaxLookedAt {
		return nil, status.Errorf(codes.InvalidArgument,
			"%d hottest buckets and %d to look at, at most %d and %d are told", q.GetHottest(),
			len(q.GetBuckets()), MaxHottest, MaxLookedAt)
	}
	return &peerv1.DescribeResponse{View: (*describe)(ctx, q)}, nil
}

// HandleDescribe sets what answers Describe. It may be called while the server serves.
func (s *Server) HandleDescribe(describe DescribeHandler) { s.describe.Store(&describe) }

// AskViews asks all nodes of a region that are known to describe themselves, at once, and returns
// the answers that come before ctx ends. An answer in the name of another region, or with more than
// was asked for, is dropped.
func (c *Client) AskViews(ctx context.Context, region string, self Identity,
	q *quotadv1.ViewRequest) (all []*quotadv1.View) {
	c.everyNode(region, func(node peerv1.PeerServiceClient) func() {
		p, err := node.Describe(ctx, &peerv1.DescribeRequest{Region: self.Region, Node: self.Node,
			View: q})
		if err != nil || !plausible(p.GetView(), region, q) {
			return nil
		}
		return func() { all = append(all, p.GetView()) }
	})
	return all
}

// plausible reports whether a view is of a node of the region, and has what was asked for.
func plausible(v *quotadv1.View, region string, q *quotadv1.ViewRequest) bool {
	if v == nil || len(v.GetBuckets()) != len(q.GetBuckets()) ||
		(v.GetNode() == nil) != q.GetBucketsOnly() {
		return false
	}
	for _, b := range v.GetBuckets() {
		if !isOf(b.GetRegion(), b.GetNode(), region) {
			return false
		}
	}
	n := v.GetNode()
	return n == nil || isOf(n.GetStatus().GetRegion(), n.GetStatus().GetNode(), region) &&
		len(n.GetHottest()) <= 2*MaxHottest && len(n.GetLimits()) <= MaxLimitViews
}

// isOf reports whether a node's name is one that nodes of a region have.
func isOf(in, name, region string) bool {
	_, err := Identity{in, name}.URI()
	return err == nil && in == region
}
