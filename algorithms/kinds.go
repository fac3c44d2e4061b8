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

// Kinds lists the algorithms in the order in which the documentation explains them.
var Kinds = []Kind{
	FixedWindow, SlidingWindowCounter, SlidingWindowLog, TokenBucket, LeakyBucket,
}

// Traits are the differences between the kinds that matter outside their own arithmetic: to the
// plan, the protocol, and the code that checks or explains a limit.
type Traits struct {
	// Sliding: use fades out over a window. In the other kinds it ends with its cell, or drains at
	// a rate.
	Sliding bool
	// Bucket: rights are a rate, in units a window, at which the bucket refills or drains. The
	// burst has a bound of its own.
	Bucket bool
	// CellsApart: use in one cell does not count in any other.
	CellsApart bool
	// WholeEntries: each unit counts in full for one window, and then not at all.
	WholeEntries bool
	// LendsBurst: a region may lend tokens of its burst.
	LendsBurst bool
	// PromisesAhead: a request may be told to wait until the next cell, so rights of that cell are
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

// Traits returns the traits of a kind; an unknown kind has none.
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
