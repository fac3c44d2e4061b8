package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

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

// Drain makes the node look not ready (gRPC health NOT_SERVING, /readyz 503) while it goes on
// serving. Behind a load balancer, call Drain first, wait until the balancer has noticed, and then
// call Shutdown.
func (s *Server) Drain() { s.Callers.Drain() }

// Shutdown drains, refuses new calls, and waits for calls under way. If ctx ends first, it cuts
// them off and returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	var operators sync.WaitGroup
	var operatorsErr error
	operators.Go(func() { operatorsErr = s.Operators.Shutdown(ctx) })
	callersErr := s.Callers.Shutdown(ctx)
	operators.Wait()
	if err := errors.Join(callersErr, operatorsErr); err != nil {
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
