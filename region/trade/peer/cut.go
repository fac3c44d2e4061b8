package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	peerv1 "github.com/quotad/quotad/proto/peer/v1"
)

// MaxCut is the longest cut that a node can be asked for, so that a forgotten cut ends.
const MaxCut = 10 * time.Minute

// Cut asks a node to cut itself off from the nodes of another region, to rehearse a partition.
type Cut struct {
	Region string // the region to be cut off from
	// Direction says which messages are lost: "in", those that the others send; "out", those that
	// are sent to them; "both".
	Direction string
	// For is how long until the cut ends by itself, in whole milliseconds, at most MaxCut. 0
	// heals.
	For time.Duration
}

// Caller is whoever calls a server.
type Caller struct {
	Identity Identity // of the caller's certificate; zero without TLS
	Address  string   // where the call comes from, ip:port
}

// String names the caller for logs.
func (c Caller) String() string {
	if c.Identity == (Identity{}) {
		return c.Address
	}
	return c.Identity.String() + " at " + c.Address
}

// ErrNoCuts says that the node was not started with cuts allowed.
var ErrNoCuts = errors.New(
	"this node makes no cuts; for a rehearsal of faults start it with chaos: true in the node file, or --chaos")

// ErrForbidden says that the caller may not have the node cut off.
var ErrForbidden = errors.New("the caller may not cut a node off")

// CutAnswer is the outcome of a cut.
type CutAnswer struct {
	Addresses   []netip.Addr // that the node is now cut off from, or after a heal no longer
	PacketsLost uint64       // by all cuts since the node started
}

// CutHandler makes a cut. It fails with ErrNoCuts if the node makes none, with ErrForbidden if the
// caller may not ask for one, and otherwise with what is wrong with the cut. With TLS any caller
// with a certificate of a trusted authority may ask, without TLS anybody who reaches the server.
type CutHandler func(by Caller, c Cut) (CutAnswer, error)

var (
	toDirection = map[peerv1.CutDirection]string{peerv1.CutDirection_CUT_DIRECTION_BOTH: "both",
		peerv1.CutDirection_CUT_DIRECTION_IN: "in", peerv1.CutDirection_CUT_DIRECTION_OUT: "out"}
	fromDirection = map[string]peerv1.CutDirection{"both": peerv1.CutDirection_CUT_DIRECTION_BOTH,
		"in": peerv1.CutDirection_CUT_DIRECTION_IN, "out": peerv1.CutDirection_CUT_DIRECTION_OUT}
)

// Cut implements peerv1.PeerServiceServer.
func (s *Server) Cut(ctx context.Context, p *peerv1.CutRequest) (*peerv1.CutResponse, error) {
	if s.handlers.Cut == nil {
		return nil, s.noCuts()
	}
	direction, known := toDirection[p.GetDirection()]
	switch ms := p.GetForMs(); {
	case !nodeName.MatchString(p.GetRegion()):
		return nil, status.Errorf(codes.InvalidArgument,
			"%.70q is no name of a region; name the one to cut off", p.GetRegion())
	case !known:
		return nil, status.Errorf(codes.InvalidArgument,
			"%d is no direction of a cut; give both, in or out", p.GetDirection())
	case ms < 0 || ms > MaxCut.Milliseconds():
		return nil, status.Errorf(codes.InvalidArgument,
			"a cut of %d ms; give at most %d, or 0 to heal", ms, MaxCut.Milliseconds())
	}
	a, err := s.handlers.Cut(callerOf(ctx), Cut{p.GetRegion(), direction,
		time.Duration(p.GetForMs()) * time.Millisecond})
	switch {
	case errors.Is(err, ErrNoCuts):
		return nil, s.noCuts()
	case errors.Is(err, ErrForbidden):
		return nil, status.Error(codes.PermissionDenied, err.Error())
	case err != nil:
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	answer := &peerv1.CutResponse{PacketsLost: a.PacketsLost}
	for _, ip := range a.Addresses {
		answer.Addresses = append(answer.Addresses, ip.String())
	}
	return answer, nil
}

func (s *Server) noCuts() error {
	s.cuts.Add(1)
	return status.Error(codes.PermissionDenied, ErrNoCuts.Error())
}

// callerOf returns who calls.
func callerOf(ctx context.Context) (by Caller) {
	from, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return by
	}
	if c, ok := from.AuthInfo.(caller); ok {
		by.Identity = c.Identity
	}
	if from.Addr != nil {
		by.Address = from.Addr.String()
	}
	return by
}

// Cut asks the node of a region at an address, host:port, for a cut, and returns the outcome. It
// fails with ErrClosed after Close. Other errors carry the gRPC status: PermissionDenied if the
// node makes no cuts, InvalidArgument if it cannot make this one.
func (c *Client) Cut(ctx context.Context, region, address string, cut Cut) (CutAnswer, error) {
	fail := func(err error) (CutAnswer, error) {
		return CutAnswer{}, fmt.Errorf("cut the node of %s at %s off from %s: %w", region, address,
			cut.Region, err)
	}
	conn, err := c.conn(node{region, address})
	if err != nil {
		return fail(err)
	}
	p, err := peerv1.NewPeerServiceClient(conn).Cut(ctx, &peerv1.CutRequest{Region: cut.Region,
		Direction: fromDirection[cut.Direction],
		ForMs:     cut.For.Milliseconds()})
	if err != nil {
		return fail(err)
	}
	a := CutAnswer{PacketsLost: p.GetPacketsLost()}
	for _, text := range p.GetAddresses() {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return fail(fmt.Errorf("it is cut off from %.70q, which is no address", text))
		}
		a.Addresses = append(a.Addresses, ip)
	}
	return a, nil
}
