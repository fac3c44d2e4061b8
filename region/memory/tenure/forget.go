package tenure

import (
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
)

// ForgetTime has the journal forget that the store's time ever was after a time, by an operator's word.
// It must be called before the store is opened. What was used in cells that have not begun by then is
// forgotten: nobody believes who tells of use in cells to come. What was used in cells that have begun
// stays, as if it had been seen at that time, and so does what was used of limits that are gone. So does what is spent without the store, for its windows
// are those of the node's clock, and what was claimed of one to come is not spent twice.
func (t *Tenure) ForgetTime(to quantity.StoreTime) error {
	r := t.Rules()
	return t.config.Journal.TakeBack(to, func(c journal.Checkpoint) (journal.Checkpoint, bool) {
		if _, err := policy.ParseBucketID(policy.BucketID(c.Bucket)); err != nil {
			return c, true
		}
		c.At = to
		a := r.Lookup(c.Bucket)
		return c, a == nil || a.Bucket.Cells().Opens(c.Cell) <= to
	})
}
