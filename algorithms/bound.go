package algorithms

import "github.com/quotad/quotad/quantity"

// Redis runs one script at a time while all others wait. So a script's work is bounded, whatever
// the state and the input: at most about a millisecond of a Redis. What a request costs at worst
// depends on its limits: each kind of limit has a load.
const (
	// MaxLog is the largest limit of a sliding_window_log, which remembers every admission.
	MaxLog = 10_000
	// MaxCosts is how many requests one Decide may carry. A call with more answers
	// StatusImplausible.
	MaxCosts = 64
	// MaxLoad is the largest load of a request's limits. The node refuses a request with a larger
	// load before it reaches a script.
	MaxLoad = 11
	// maxRetries, divided by the retryLoad, is how many costs of one Decide may be above its
	// cheapest. Computing when a denied request fits is the most expensive part. For the cheapest
	// cost it is computed once.
	maxRetries = 16
	// fewestRows is how many rows with peers a bucket holds at most; MaxRows multiplies it for some
	// kinds. Once a bucket is full, nothing is lent to or credited from a peer that has no row in
	// the cell yet.
	fewestRows = 24
	// MaxHolders is how many nodes of the region may hold rights of one cell for Envoys, each in a
	// row. These rows do not count as rows with peers. It is the same in every region, whatever
	// number of nodes is configured. An Assign of one more node answers StatusCrowded.
	MaxHolders = 64
)

// LoadOf returns the load that a bucket of a kind adds to a request.
func LoadOf(k Kind) int64 {
	switch k {
	case SlidingWindowLog:
		return 4
	case SlidingWindowCounter:
		return 3
	case LeakyBucket:
		return 2
	}
	return 1
}

// retryLoad returns the load of computing when a denied request fits.
func retryLoad(k Kind) int64 {
	if k == SlidingWindowCounter {
		return 8
	}
	return LoadOf(k)
}

// MaxRows returns how many rows with peers a bucket of a kind holds at most.
func MaxRows(k Kind) int64 {
	switch k {
	case SlidingWindowLog:
		return 4 * fewestRows
	case SlidingWindowCounter, LeakyBucket:
		return 2 * fewestRows
	}
	return fewestRows
}

// Batch counts how many requests on the same buckets fit into one Decide. Its zero value has no
// buckets and no costs.
type Batch struct {
	load, retries int64 // of all buckets
	costs         int64
	cheapest      quantity.Units
	atThat        int64 // the lowest cost, and how many requests have it
}

// Counts adds a bucket of a kind.
func (b *Batch) Counts(k Kind) {
	b.load += LoadOf(k)
	b.retries += retryLoad(k)
}

// Load returns the load of all buckets.
func (b *Batch) Load() int64 { return b.load }

// Add adds a request with the given cost if the Decide may carry one more, and reports whether it did.
// It always adds the first.
func (b *Batch) Add(cost quantity.Units) bool {
	cheapest, atThat := b.cheapest, b.atThat
	switch {
	case b.costs == 0 || cost < cheapest:
		cheapest, atThat = cost, 1
	case cost == cheapest:
		atThat++
	}
	above := b.costs + 1 - atThat
	if b.costs > 0 && (b.costs >= MaxCosts || b.costs*b.load >= MaxCosts ||
		above*b.retries > maxRetries) {
		return false
	}
	b.costs, b.cheapest, b.atThat = b.costs+1, cheapest, atThat
	return true
}
