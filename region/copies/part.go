package copies

import "github.com/quotad/quotad/quantity"

// MaxUses bounds the uses in one part.
const MaxUses = 400

// Use is what counted in one bucket when a node last saw it.
type Use struct {
	Bucket string
	Cell   quantity.Cell
	Units  quantity.Units
	At     quantity.StoreTime // when it was seen
	Until  quantity.StoreTime // it counts no more from then on
}

// Part is a part of what a node has seen.
type Part struct {
	Node   string
	Life   uint64             // which start of the node it is of
	Number uint64             // from 0
	Since  quantity.StoreTime // the node knows all that it used since then
	Until  quantity.StoreTime // all that it saw until then is told with this part; 0: more parts follow
	Uses   []Use
}

// Copy says what of a node's use is known here: all that it saw from Since on, as of Until.
type Copy struct {
	Node         string
	Since, Until quantity.StoreTime
}
