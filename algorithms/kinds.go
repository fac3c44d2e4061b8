package algorithms

// Kind names an algorithm, by its word in the policy document.
type Kind string

// The algorithms.
const (
	FixedWindow          Kind = "fixed_window"
	SlidingWindowCounter Kind = "sliding_window_counter"
	SlidingWindowLog     Kind = "sliding_window_log"
	TokenBucket          Kind = "token_bucket"
	LeakyBucket          Kind = "leaky_bucket"
)

// Kinds are the algorithms, in the order in which they are explained.
var Kinds = []Kind{
	FixedWindow, SlidingWindowCounter, SlidingWindowLog, TokenBucket, LeakyBucket,
}

// Traits are the ways in which the kinds differ from one another, for everybody who does not
// compute with a kind's own state: the plan, the protocol, and whoever checks or explains them.
type Traits struct {
	// Sliding: use fades out over a window. In the other kinds it ends with its cell, or drains
	// at a rate.
	Sliding bool
	// Bucket: rights are a rate, in units a window, at which the bucket refills or drains. A
	// burst is bounded apart from the rate.
	Bucket bool
	// CellsApart: what is used in one cell counts in no other.
	CellsApart bool
	// WholeEntries: each unit counts in full for a window and then not at all.
	WholeEntries bool
	// LendsBurst: a region may lend the tokens of its burst.
	LendsBurst bool
	// PromisesAhead: a request may be told to wait for the next cell, so that cell's rights are
	// spent before it opens.
	PromisesAhead bool
}

// kinds is the table of traits.
var kinds = []struct {
	Kind
	Traits
}{
	{FixedWindow, Traits{CellsApart: true}},
	{SlidingWindowCounter, Traits{Sliding: true}},
	{SlidingWindowLog, Traits{Sliding: true, WholeEntries: true}},
	{TokenBucket, Traits{Bucket: true, LendsBurst: true}},
	{LeakyBucket, Traits{Bucket: true, PromisesAhead: true}},
}

// Traits returns the row of the table for a kind; one that is not in the table has no traits.
func (k Kind) Traits() *Traits {
	for i := range kinds {
		if kinds[i].Kind == k {
			return &kinds[i].Traits
		}
	}
	return &Traits{}
}

// Sliding returns the trait of that name.
func (k Kind) Sliding() bool { return k.Traits().Sliding }

// Bucket returns the trait of that name.
func (k Kind) Bucket() bool { return k.Traits().Bucket }
