package caller

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// sentKey is the context key of the flag that sendWatch sets.
type sentKey struct{}

// sendWatch records which calls were sent. A call that found no connection was not.
type sendWatch struct{}

// TagRPC implements stats.Handler.
func (sendWatch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (sendWatch) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); !ok {
		return
	}
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(true)
	}
}

// TagConn implements stats.Handler.
func (sendWatch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (sendWatch) HandleConn(context.Context, stats.ConnStats) {}
