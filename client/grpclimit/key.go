package grpclimit

import (
	"context"
	"net"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/quotad/quotad/client/internal/ask"
)

// health begins the methods of health checks, which By does not limit: a server that denies them is
// taken for a dead one.
const health = "/grpc.health.v1.Health/"

// Call is what is known of a call.
type Call struct {
	Method  string // such as /package.Service/Method
	Request any    // its message; nil for a stream
}

// Charge is what a call is to be charged to.
type Charge struct {
	Descriptors map[string]string
	Cost        int64 // units, 1 to 2^51; 0 counts as 1
}

// Key says what a call is charged to, and whether limits apply to it at all. One to which they do
// not is served without asking.
type Key func(ctx context.Context, call Call) (charge Charge, applies bool)

// Value reads a descriptor from a call. It is empty if the call has none.
type Value func(ctx context.Context, call Call) string

// Values are descriptors by name.
type Values map[string]Value

// By returns a Key that sends these descriptors of every call but health checks, each with a cost
// of 1. An empty value is sent too, so that calls without it share what they are limited to. A
// value that no node would take, of more than 256 bytes or not UTF-8, is sent as "sha256:" and its
// digest in hex.
func By(values Values) Key {
	return func(ctx context.Context, call Call) (Charge, bool) {
		if strings.HasPrefix(call.Method, health) {
			return Charge{}, false
		}
		of := make(map[string]string, len(values))
		for name, value := range values {
			of[name] = ask.Fitting(value(ctx, call))
		}
		return Charge{Descriptors: of}, true
	}
}

// Metadata returns the first value of the metadata that came with a call. Callers choose it: use it
// for what was verified before.
func Metadata(name string) Value {
	return func(ctx context.Context, _ Call) string {
		if values := metadata.ValueFromIncomingContext(ctx, name); len(values) > 0 {
			return values[0]
		}
		return ""
	}
}

// Method returns the name of the method, such as /package.Service/Method.
func Method() Value {
	return func(_ context.Context, call Call) string { return call.Method }
}

// Peer returns the IP address of the other end of the connection, which may be a proxy's. Of an
// IPv6 address its network of 64 bits counts. Empty if the peer has no IP address.
func Peer() Value {
	return func(ctx context.Context, _ Call) string {
		p, ok := peer.FromContext(ctx)
		if !ok {
			return ""
		}
		tcp, ok := p.Addr.(*net.TCPAddr)
		if !ok {
			return ""
		}
		return ask.Network(tcp.AddrPort().Addr())
	}
}
