package peer

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/allocator/exchange"
)

// TestPanicsEndOneCall: a message on which its handler panics ends that call, and not the node.
func TestPanicsEndOneCall(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		s := p.serve("us-1", func(context.Context, exchange.Message) (exchange.Reply,
			error) {
			panic("boom")
		})
		var log bytes.Buffer
		var where []string
		s.Tell(slog.New(slog.NewTextHandler(&log, nil)),
			func(at string) { where = append(where, at) })
		p.client.SetNodes("us", []string{at("us-1")})
		for range 3 {
			if _, err := p.client.Exchange(t.Context(), "us",
				exchange.Message{From: "eu", Node: "n1"}); status.Code(err) != codes.Internal ||
				strings.Contains(err.Error(), "boom") {
				t.Errorf("answered %v, want Internal without the cause", err)
			}
		}
		if len(where) != 3 || where[0] != "peer/Exchange" ||
			strings.Count(log.String(), "panic=boom") != 1 {
			t.Errorf("3 panics are counted at %q and logged as %s", where, log.String())
		}
	})
}
