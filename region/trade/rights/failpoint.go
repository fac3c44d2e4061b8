package rights

// Point names a moment of a transfer at which a test can crash the node.
type Point string

// The points: around the lender's debit, the fsync of its journal and its reply, and around the
// borrower's credit.
const (
	BeforeDebit  Point = "before-debit"
	AfterDebit   Point = "after-debit"
	AfterFsync   Point = "after-fsync"
	AfterReply   Point = "after-reply"
	BeforeCredit Point = "before-credit"
	AfterCredit  Point = "after-credit"
)

// Points lists all points in the order of a transfer.
var Points = []Point{BeforeDebit, AfterDebit, AfterFsync, AfterReply, BeforeCredit, AfterCredit}

// fails calls the test's Failpoint, if there is one.
func (e *Engine) fails(p Point) {
	if e.config.Failpoint != nil {
		e.config.Failpoint(p)
	}
}
