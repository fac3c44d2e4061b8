package tenure

import (
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
)

// ForgetTime makes the journal forget that the store's time was ever after to, by an operator's
// word. Call it before the store is opened.
//
// Use of cells that open after to is forgotten: nobody believes a node that tells of use in cells
// to come. Use of earlier cells stays, as if it had been seen at to, and so does use of limits that
// are gone. What was spent without the store stays as well. Its windows are those of the node's
// clock, and what was claimed of a window to come is not spent twice.
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
