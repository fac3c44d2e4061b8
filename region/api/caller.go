package api

import (
	"context"
	"net"

	"google.golang.org/grpc/peer"
)

// callerOf returns whose call it is: the host at the other end of its connection. A proxy is one caller. It never comes
// from the call itself, or everybody would be as many callers as they like.
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

// hostOf returns the host of an address, or all of one that has no port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
