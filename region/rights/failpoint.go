package rights

// Point names a moment of a transfer at which a crash is rehearsed.
type Point string

// The points: of the lender around its debit and the fsync of its journal, and of the borrower around its credit.
const (
	BeforeDebit  Point = "before-debit"
	AfterDebit   Point = "after-debit"
	AfterFsync   Point = "after-fsync"
	AfterReply   Point = "after-reply"
	BeforeCredit Point = "before-credit"
	AfterCredit  Point = "after-credit"
)

// Points are all of them, in the order of a transfer.
var Points = []Point{BeforeDebit, AfterDebit, AfterFsync, AfterReply, BeforeCredit, AfterCredit}

// fails gives a rehearsal its chance.
func (e *Engine) fails(p Point) {
	if e.config.Failpoint != nil {
		e.config.Failpoint(p)
	}
}
