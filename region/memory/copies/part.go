package copies

import (
	"fmt"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

const (
	// MaxUses bounds the uses in one part.
	MaxUses = 400
	// MaxBucketBytes bounds the id of a bucket.
	MaxBucketBytes = 4 << 10
)

// Use is what counted in one bucket when a node last saw it.
type Use struct {
	Bucket string
	Cell   quantity.Cell
	Units  quantity.Units
	At     quantity.StoreTime // when it was seen
	Until  quantity.StoreTime // it counts no more from then on
	// Generation is that of the store in which it was seen.
	Generation uint64
}

// Check returns why a use cannot be: nobody could compute with it, or keep it.
func (u Use) Check() error {
	switch most := quantity.Units(algorithms.MaxUnits); {
	case len(u.Bucket) == 0 || len(u.Bucket) > MaxBucketBytes:
		return fmt.Errorf("the id of a bucket has %d bytes, not 1 to %d", len(u.Bucket), MaxBucketBytes)
	case u.Units < 0 || u.Units > most:
		return fmt.Errorf("%d units are not 0 to %d", u.Units, most)
	case u.Cell < 0 || u.At < 0 || max(quantity.Units(u.Cell), quantity.Units(u.At)) > most:
		return fmt.Errorf("cell %d or time %d is not 0 to %d", u.Cell, u.At, most)
	}
	return nil
}

// Part is a part of what a node has seen.
type Part struct {
	Region string
	Node   string
	Life   uint64             // which start of the node it is of
	Number uint64             // from 0
	Since  quantity.StoreTime // the node knows all that it used since then
	Read   quantity.StoreTime // it read that from the store then, and knows nothing of what was lost before; 0: it did not
	Until  quantity.StoreTime // with this part all that it saw until then is told; 0: more parts follow
	Uses   []Use
}

// Copy says what of a node's use is known here: all that it saw from Since on, as of Until.
type Copy struct {
	Node               string
	Life               uint64 // which start of the node it is of
	Since, Until, Read quantity.StoreTime
	Settled            quantity.StoreTime // when the store lost data, and the copy has all until then; 0: not known
}
