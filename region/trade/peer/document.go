package peer

import (
	"context"
	"crypto/sha256"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	peerv1 "github.com/quotad/quotad/proto/peer/v1"
)

// DocumentHandler returns the text of a limits document that is open in this region, or nil.
type DocumentHandler func(digest [sha256.Size]byte) []byte

// Document implements peerv1.PeerServiceServer.
func (s *Server) Document(ctx context.Context, p *peerv1.DocumentRequest) (*peerv1.DocumentResponse,
	error) {
	if err := s.authenticate(ctx, Identity{p.GetRegion(), p.GetNode()}); err != nil {
		return nil, err
	}
	if len(p.GetDigest()) != sha256.Size {
		return nil, status.Error(codes.InvalidArgument,
			fmt.Sprintf("a digest of %d bytes, want %d", len(p.GetDigest()), sha256.Size))
	}
	text := s.handlers.Document([sha256.Size]byte(p.GetDigest()))
	return &peerv1.DocumentResponse{Text: text}, nil
}

// Document asks a region for the text of a limits document that is open there. The caller must
// check what the text means. Its errors are those of Exchange.
func (c *Client) Document(ctx context.Context, region string, as Identity,
	digest [sha256.Size]byte) ([]byte, error) {
	address, conn, err := c.pick(region)
	if err != nil {
		return nil, fmt.Errorf("ask region %s for a document: %w", region, err)
	}
	p, err := peerv1.NewPeerServiceClient(conn).Document(ctx, &peerv1.DocumentRequest{
		Region: as.Region, Node: as.Node, Digest: digest[:]})
	if err != nil {
		c.failed(region, address)
		return nil, fmt.Errorf("ask region %s at %s for a document: %w", region, address, err)
	}
	return p.GetText(), nil
}
