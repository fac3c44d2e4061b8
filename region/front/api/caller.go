package api

import (
	"context"

	"google.golang.org/grpc/peer"

	"github.com/quotad/quotad/region/base/door"
)

// callerOf returns the caller of a call: the host at the other end of its connection. A proxy is
// one caller. The caller is never read from the call itself, because then one client could pass for
// many.
func callerOf(ctx context.Context) string {
	p, known := peer.FromContext(ctx)
	if !known {
		return ""
	}
	return door.HostAt(p.Addr)
}
