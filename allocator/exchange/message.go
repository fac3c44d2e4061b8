package exchange

import "github.com/quotad/quotad/quantity"

// Message is what a node sends to another region to ask for rights. Without asks it is a ping.
type Message struct {
	From       string // the asking region
	Node       string
	Generation uint64 // of the asking region's store
	// Shown is the latest time of that store that the node has heard, microseconds; 0: it does not
	// say.
	Shown     quantity.StoreTime
	Documents []Acknowledged
	Asks      []Ask
}

// Acknowledged is a limits document that is open in the sender's region: from a time of its store
// on, no node of the region decides without it. Every message and reply lists all of them, the
// oldest first. The machine passes them on unread.
type Acknowledged struct {
	Version int64
	Digest  [32]byte
	At      quantity.StoreTime // microseconds
	// Fenced holds the regions that the newest document fences; none of the others.
	Fenced []Fence
}

// Fence says that an operator has stopped a region, in the life that it had when the document was
// written.
type Fence struct {
	Region string
	Life   int64
}

// Ask names the sums that the rows of one bucket and cell should reach. So a repeated ask gives
// nothing twice.
type Ask struct {
	Bucket   string
	Agreed   uint64 // see Bucket.Agreed
	Cell     quantity.Cell
	Returned quantity.Units // rights the asker had lent and wants back
	Lent     quantity.Units // rights of the lender's own entitlement
	Burst    quantity.Units // tokens, with the capacity that holds them
	// Owed is how many of the units, or tokens, the asker owes: see Bucket.Always.
	Owed quantity.Units
	// Large is the large cost that the asker wants whole, or that another region wants and For names;
	// 0: none.
	Large quantity.Units
	For   string
}

// Reply answers a Message with one grant for each ask, in order.
type Reply struct {
	From          string
	Generation    uint64 // of the lender's store when it wrote the rows
	ForGeneration uint64 // the asker's generation, as the message named it
	Documents     []Acknowledged
	Grants        []Grant
	At            quantity.StoreTime // the lender's store time, microseconds; 0: not known
}

// Grant says what sums the rows of one bucket and cell have now. The lender has made them durable.
type Grant struct {
	Refusal  Refusal
	Cell     quantity.Cell
	Returned quantity.Units
	Lent     quantity.Units
	Spare    quantity.Units // units of this cell that the lender would still lend
	Retry    int64          // microseconds after which asking again may help

	Burst      quantity.Units
	SpareBurst quantity.Units
}

// Refusal is the reason why a lender did not consider an ask at all. A lender that considers an ask
// and gives nothing has not refused it.
type Refusal uint8

const (
	NotRefused         Refusal = iota
	RefusedTerms               // the two regions work under different terms of the limit
	RefusedUnknown             // the lender's document has no such bucket or no such peer
	RefusedFinished            // the cell is over, or too far ahead
	RefusedUnheard             // the asker does not answer the lender's pings
	RefusedImplausible         // an amount that no honest region asks for
	RefusedStore               // the lender's store or journal failed
)

// refusals is the number of Refusal values, NotRefused included.
const refusals = len(refusalNames)

var refusalNames = [...]string{"none", "terms", "unknown", "finished", "unheard", "implausible",
	"store"}

func (r Refusal) String() string { return refusalNames[r.known()] }

// known returns r, or RefusedUnknown for a value that only a later version knows.
func (r Refusal) known() Refusal {
	if int(r) >= refusals {
		return RefusedUnknown
	}
	return r
}

// Hint is a node's gossiped report on one bucket. Its Rate and Large are that node's alone;
// everything else is about its region. It is not trusted: the plan reads it, no row depends on it.
type Hint struct {
	Region string
	Node   string
	Bucket string
	Cell   quantity.Cell
	Used   quantity.Units // units that count now
	// the most that will count until the end of Cell, by all nodes it hears
	Total quantity.Units
	Rate  quantity.MilliRate // demand on this node, milliunits per second
	Share quantity.Units     // the rights its region holds of Cell
	Spare quantity.Units     // what its region would lend of Cell

	SpareBurst quantity.Units
	Large      quantity.Units // the large cost that this node's callers want; 0: none
	// what capped classes are admitted on this node, milliunits per second; see allocator.Outlook
	Capped quantity.MilliRate
}
