package process

import (
	"context"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/play/caller"
)

// Question is a request for a decision.
type Question = caller.Question

// Ask sends one request and returns what its caller saw of it, for the judge of that limit, as
// caller.Caller.Ask does.
func (n *Node) Ask(ctx context.Context, q Question, bucket string,
	limit oracle.Limit) (oracle.Answer, bool) {
	return n.calls.Ask(ctx, q, bucket, limit,
		func() (uint64, bool) { return uint64(n.Starts()), true })
}
