package api

import (
	"context"
	"net"

	"google.golang.org/grpc/peer"
)

// callerOf returns the caller of a call: the host at the other end of its connection. A proxy is
// one caller. The caller is never read from the call itself, because then one client could pass for
// many.
func callerOf(ctx context.Context) string {
	p, known := peer.FromContext(ctx)
	if !known {
		return ""
	}
	if a, tcp := p.Addr.(*net.TCPAddr); tcp {
		return a.IP.String()
	}
	return hostOf(p.Addr.String())
}

// hostOf returns the host of an address, or the whole address if it has no port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
