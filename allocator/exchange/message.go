package exchange

// Message is what one region asks of another. Without asks it is a ping.
type Message struct {
	From       string // region
	Node       string
	Generation uint64 // of the asking region's store
	Epoch      string // policy epoch it works under
	Asks       []Ask
}

// Ask names the sums that the rows of one bucket and cell should reach. So an ask that is repeated
// gives nothing twice.
type Ask struct {
	Bucket   string
	Cell     int64
	Returned int64 // Q[lender->asker]: rights the asker lent and wants back
	Lent     int64 // R[lender->asker]
	Burst    int64 // Y[lender->asker]
}

// Reply answers a Message, with one grant for each ask, in order.
type Reply struct {
	From          string
	Generation    uint64 // of the lender's store when it wrote the rows
	ForGeneration uint64 // the asker's, as its message said
	Epoch         string
	Grants        []Grant
	At            int64 // microseconds: the lender's store time; 0: it does not know it
}

// Grant says how the rows of one bucket and cell stand now. They are durable.
type Grant struct {
	Refusal  Refusal
	Cell     int64
	Returned int64
	Lent     int64
	Spare    int64 // what more the lender would lend of this cell
	Retry    int64 // where nothing was given: microseconds after which asking again may help

	Burst      int64
	SpareBurst int64
}

// Refusal says why a lender did not consider an ask at all. A lender that considers it and gives
// nothing has not refused.
type Refusal uint8

const (
	NotRefused         Refusal = iota
	RefusedEpoch               // the two regions work under different policy documents
	RefusedUnknown             // no such bucket under the lender's document, or not between these regions
	RefusedFinished            // the cell is over, or too far ahead
	RefusedUnheard             // the lender's own pings to the asker are not answered
	RefusedImplausible         // an amount that no honest region asks for
	RefusedStore               // the lender's store or journal did not do it
)

// refusals is how many kinds of Refusal there are, NotRefused included.
const refusals = len(refusalNames)

var refusalNames = [...]string{"none", "epoch", "unknown", "finished", "unheard", "implausible", "store"}

func (r Refusal) String() string { return refusalNames[r.known()] }

// known returns RefusedUnknown for what a peer of a later version may say.
func (r Refusal) known() Refusal {
	if int(r) >= refusals {
		return RefusedUnknown
	}
	return r
}

// Hint is a node's gossiped report on one bucket. Its Rate is about that node alone; all else is
// about its region. It is not trusted: the plan reads it, no row depends on it.
type Hint struct {
	Region string
	Node   string
	Bucket string
	Cell   int64
	Used   int64 // units that count now
	Total  int64 // the most that will count until the end of Cell, as it expects of all nodes that it hears
	Rate   int64 // demand on this node, milliunits per second
	Share  int64 // of Cell
	Spare  int64 // what it would lend of Cell

	SpareBurst int64
}
