// Package api serves one node: callers over gRPC and HTTP (package callers), and operators on a
// listener of their own, the admin listener, over HTTP (package operators).
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/callers"
	"github.com/quotad/quotad/region/front/operators"
	"github.com/quotad/quotad/region/front/wire"
)

// Node is what the servers need of a node. *region.Node implements it. Safe for concurrent use.
type Node interface {
	callers.Node
	operators.Node
	wire.Probed
}

var _ Node = (*region.Node)(nil)

// Options are how the servers of a node serve, and how they are protected.
type Options struct {
	Callers   callers.Options
	Operators operators.Options
}

// Server serves one node to callers and to operators. It does not own the node. Safe for concurrent
// use.
type Server struct {
	Callers   *callers.Server
	Operators *operators.Server
}

// New returns the servers of a node, which serve once they are given listeners.
func New(node Node, log *slog.Logger, o Options) *Server {
	life := wire.NewLife(node, o.Callers.Guard != nil)
	c := callers.New(node, life, log, o.Callers)
	return &Server{c, operators.New(node, life, log, o.Operators, c.Collectors()...)}
}

// Shutdown makes the node look not ready (gRPC health NOT_SERVING, /readyz 503), refuses new calls, and
// waits for calls under way. If ctx ends first, it cuts them off and returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	operators := make(chan error, 1)
	go func() { operators <- s.Operators.Shutdown(ctx) }()
	if err := errors.Join(s.Callers.Shutdown(ctx), <-operators); err != nil {
		return errors.Join(fmt.Errorf(
			"shut down: calls were still under way and have been cut off; allow more time: %w",
			err), s.Close())
	}
	return nil
}

// Close ends the servers at once and cuts off calls under way.
func (s *Server) Close() error {
	return errors.Join(s.Callers.Close(), s.Operators.Close())
}
