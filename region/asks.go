package region

import (
	"context"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/admit"
	"github.com/quotad/quotad/region/envoys"
)

// What callers ask of a node, passed on to the wing that answers it.

// Envoys returns what assigns parts of limits to Envoys.
func (n *Node) Envoys() *envoys.Assigner { return n.envoys }

// Check decides a request. See [admit.Limiter.Check].
func (n *Node) Check(ctx context.Context, q admit.Request) (admit.Decision, error) {
	return n.limiter.Check(ctx, q)
}

// CheckBatch decides several requests. See [admit.Limiter.CheckBatch].
func (n *Node) CheckBatch(ctx context.Context, all []admit.Request) ([]admit.Decision, error) {
	return n.limiter.CheckBatch(ctx, all)
}

// Peek returns the decision that Check would make, and charges nothing.
func (n *Node) Peek(ctx context.Context, q admit.Request) (admit.Decision, error) {
	return n.limiter.Peek(ctx, q)
}

// CheckLists decides a request with lists of descriptors. See [admit.Limiter.CheckLists].
func (n *Node) CheckLists(ctx context.Context, q admit.Request) ([]admit.Decision, error) {
	return n.limiter.CheckLists(ctx, q)
}

// RefundLast gives back what was charged last. See [admit.Limiter.RefundLast].
func (n *Node) RefundLast(ctx context.Context, domain string,
	list admit.List) (admit.Refunded, error) {
	return n.limiter.RefundLast(ctx, domain, list)
}

// Buckets returns the buckets that a list meets. See [admit.Limiter.Buckets].
func (n *Node) Buckets(domain string, list admit.List) []policy.BucketRef {
	return n.limiter.Buckets(domain, list)
}

// Refund gives back what a decision charged. See [admit.Limiter.Refund].
func (n *Node) Refund(ctx context.Context, receipt string) (admit.Refunded, error) {
	return n.limiter.Refund(ctx, receipt)
}

// Receipt returns the buckets that a receipt is about. See [admit.Limiter.Receipt].
func (n *Node) Receipt(receipt string) ([]policy.BucketRef, error) {
	return n.limiter.Receipt(receipt)
}

// Take charges units for a client to admit from by itself. See [admit.Limiter.Take].
func (n *Node) Take(ctx context.Context, t admit.Take) (admit.Taken, error) {
	return n.limiter.Take(ctx, t)
}

// GiveBack gives back units that a client took. See [admit.Limiter.GiveBack].
func (n *Node) GiveBack(ctx context.Context, receipt string,
	units quantity.Units) (admit.Refunded, error) {
	return n.limiter.GiveBack(ctx, receipt, units)
}

// Reset clears the use of one bucket. See [admit.Limiter.Reset].
func (n *Node) Reset(ctx context.Context, limit, domain string,
	descriptors map[string]string) (cleared quantity.Units, err error) {
	return n.limiter.Reset(ctx, limit, domain, descriptors)
}

// Busy says whether so much of a caller's work waits that another batch of it should be refused
// unread. See [admit.Limiter.Busy].
func (n *Node) Busy(caller string) (retry time.Duration, busy bool) {
	return n.limiter.Busy(caller)
}
