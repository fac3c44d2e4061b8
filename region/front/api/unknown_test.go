package api

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/region/front/roles"
)

// TestUnknownCalls: a gRPC call that there is not, or not any more, is UNIMPLEMENTED for whoever
// makes it, also on the port of operators, which speaks HTTP alone: HTTP/2 with TLS, so that a
// client of gRPC can read its 404.
func TestUnknownCalls(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			s := startSecured(t, mode)
			for _, port := range []string{"api", "admin"} {
				want := codes.Unimplemented
				if port == "admin" && mode == "plain" { // no HTTP/2, and so no answer that gRPC can read
					want = codes.Unavailable
				}
				for _, p := range []proof{{}, {role: roles.Admin, token: s.roles.Tokens[roles.Admin]}} {
					for _, call := range []string{"/quotad.v1.AdminService/Status", "/quotad.v1.QuotaService/CheckColumns", "/x.Y/Z"} {
						conn, ctx, end := s.dial(t, p, port)
						err := conn.Invoke(ctx, call, []byte{}, nil, grpc.ForceCodecV2(fronts.RawCodec{}))
						end()
						if status.Code(err) != want {
							t.Errorf("%s at %s, by %q: %v, want %v", call, port, p.role, err, want)
						}
					}
				}
			}
			if s.log.Len() > 0 {
				t.Errorf("logged %s", s.log)
			}
		})
	}
}
