package region

import (
	"context"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/decide/receipts"
)

// Decisions is what callers ask of a node. See the methods of [admit.Limiter], [receipts.Receipts]
// and [queue.Queue].
type Decisions interface {
	// Check decides a request.
	Check(ctx context.Context, q admit.Request) (admit.Decision, error)
	// CheckBatch decides several requests.
	CheckBatch(ctx context.Context, all []admit.Request) ([]admit.Decision, error)
	// Peek returns the decision that Check would make, and charges nothing.
	Peek(ctx context.Context, q admit.Request) (admit.Decision, error)
	// Report charges what a use cost that is over.
	Report(ctx context.Context, q admit.Request) (admit.Decision, error)
	// CheckLists decides a request with lists of descriptors.
	CheckLists(ctx context.Context, q admit.Request) (admit.ListsDecision, error)
	// RefundLast gives back what was charged last.
	RefundLast(ctx context.Context, domain string, list admit.List, replaced []string) (receipts.Settled, error)
	// Buckets returns the buckets that a list meets.
	Buckets(domain string, list admit.List) []policy.BucketRef
	// Settle settles what a decision charged by what was used.
	Settle(ctx context.Context, receipt string, used quantity.Units) (receipts.Settled, error)
	// Receipt returns the buckets that a receipt is about.
	Receipt(receipt string) ([]policy.BucketRef, error)
	// Take charges units for a client to admit from by itself.
	Take(ctx context.Context, t admit.Take) (admit.Taken, error)
	// Reset clears the use of one bucket.
	Reset(ctx context.Context, limit, domain string,
		descriptors map[string]string) (cleared quantity.Units, err error)
	// Busy reports whether so much of a caller's work waits that another batch of it should wait
	// unread. waits is how long the batch may wait.
	Busy(caller string, waits time.Duration) bool
	// UnitsByLimit returns the units of limits since the node's start.
	UnitsByLimit() map[string]admit.LimitUnits
}

// decisions is the parts of a limiter that callers ask.
type decisions struct {
	*admit.Limiter
	*receipts.Receipts
	*queue.Queue
}

// Envoys returns what assigns parts of limits to Envoys.
func (n *Node) Envoys() *envoys.Assigner { return n.envoys }
