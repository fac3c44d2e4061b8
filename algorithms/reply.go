package algorithms

import (
	"slices"

	"fmt"

	"github.com/quotad/quotad/quantity"
)

// Status is how a script ended. Unless it is StatusOK, the script has changed no use and no row. It
// may still have raised the mark of time or the floor of a peer's generation, or noted that a
// bucket was deleted. With StatusUnknown and StatusClock it has changed nothing at all,
// but for a Beat, which notes that it told the node the mark.
type Status int64

const (
	StatusOK          Status = iota
	StatusUnknown            // the token is missing, or of another generation, epoch or copy
	StatusClock              // the store's clock is further than MaxClockStep from the node's
	StatusFinished           // the cell is neither the current one nor the next, or too far ahead (Advance)
	StatusFenced             // the peer wrote the rows under a generation lower than one heard of
	StatusImplausible        // an amount is out of range, or more is regained or lent than can be
	StatusRecovering         // a loss of data may concern the cell; its rights may be spent already
	StatusLost               // the bucket has lost its data and must be restored first
	StatusEarly              // the peer gave up the rights at a later time: send them again then
	StatusCrowded            // the bucket has no room for a row of one more peer, or of one more node in the cell
	StatusUnreadable         // a key of the item holds something else than quotad's
	StatusLater              // the call had done enough work before it came to the item
	StatusCalendar           // the store's time is in none of the periods that the call names
)

var statusNames = [...]string{"ok", "unknown store", "clock step", "finished cell", "fenced",
	"implausible", "recovering", "lost bucket", "too early", "crowded bucket",
	"unreadable key", "left for another call", "other periods"}

func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return fmt.Sprintf("status %d", int64(s))
	}
	return statusNames[s]
}

// Head is how the answer of every guarded script begins.
type Head struct {
	Status Status
	Now    quantity.StoreTime // store time; 0 if the answer does not say it
	LostAt quantity.StoreTime // with StatusLost, and from Recall: when data was lost; 0: never
	// with StatusLost: the place of the bucket in the call; Settle does not say it
	Lost int
}

// Answered returns the head itself, for callers that hold the answer as an interface.
func (h Head) Answered() Head { return h }

// State is a bucket as a call left it. Rights of windows are units of the cell, rights of buckets
// are units a window.
type State struct {
	Cell        quantity.Cell
	Entitlement quantity.Units
	Share       quantity.Units // rights held of Cell, rounded down
	NextShare   quantity.Units // rights held of Cell+1, at its start
	// units that count against the share, or a bucket's capacity; rounded up
	Used quantity.Units
	// about how many units of Used will no longer count when the cell ends
	Fading quantity.Units
	Free   quantity.Units // units that fit now
	// Reset is after how many us the bucket is whole if nothing else happens: no use counts any
	// more. 0: it is whole now. Rights lent to peers do not delay it. In the answer to a Decide it
	// counts, as Verdict.Retry does, from what the store's clock shows; else from Now.
	Reset int64
	// store time until which the bucket is known to exist; 0: not known here
	ExistsUntil quantity.StoreTime
	// Doubt is the time of a loss before which some peers were lent, or some nodes used, an amount
	// that is not known. 0: no doubt.
	Doubt quantity.StoreTime
	// Shut is the store time until which a loss keeps the bucket closed, or until which the use
	// that some node has not reported may fill it. 0: neither.
	Shut quantity.StoreTime
}

// Verdict is the outcome of one cost on one bucket.
type Verdict struct {
	Remaining quantity.Units // units that still fit after the request
	// Retry is 0 if there was room. Otherwise the cost fits after so many us if nothing else happens;
	// -1: never on the entitlement alone. Of a cost that was charged always and is owed it is when a
	// unit fits again.
	Retry int64
	// Owed is what did not fit of a cost that was charged always: 0, or the cost less what was left.
	Owed  quantity.Units
	Delay int64 // leaky_bucket: the request's turn comes after so many us
}

// Answer is the outcome of one request.
type Answer struct {
	Admitted bool
	Verdicts []Verdict // one for each bucket
}

// Decided answers Decide.
type Decided struct {
	Head
	Repeated bool   // it was decided before, under its Once; this is the answer given then
	TooOften bool   // its Once was answered as often as it may be; this is a new decision
	Why      string // with StatusUnreadable: what Redis says
	Buckets  []State
	Answers  []Answer
}

// Given answers Lend, with the row of the cell asked for as it stands now.
type Given struct {
	Head
	State
	Row        Row
	Spare      quantity.Units // what more could be lent after this call
	SpareBurst quantity.Units
}

// Assigned answers Assign, with the node's sums of the cell as they stand now.
type Assigned struct {
	Head
	State
	Held, Returned quantity.Units
	Spare          quantity.Units // what more could be assigned after this call
}

// Credited answers Credit, with the row of the credited cell as it stands now.
type Credited struct {
	Head
	State
	Row Row
}

// Refusal says why a charge was not settled.
type Refusal int64

const (
	NotRefused     Refusal = iota
	NoLongerWeighs         // the charge does not count any more
	TurnPromised           // a queue's turn can neither be given back nor be taken later
	NoSuchLimit            // the limit is not in force any more
	SettledLate            // the time within which it is settled is over: it counts as used
	StoreLost              // the store has lost what was charged: nothing is given back
)

var refusalNames = [...]string{"", "no longer weighs", "turn promised", "no such limit any more", "settled too late",
	"the store has lost it since"}

func (r Refusal) String() string {
	if r < 0 || int(r) >= len(refusalNames) {
		return fmt.Sprintf("refusal %d", int64(r))
	}
	return refusalNames[r]
}

// SettledCharge is the outcome of settling one charge, in units.
type SettledCharge struct {
	Back    quantity.Units // taken back
	Refusal Refusal
	Charged quantity.Units // charged beyond the cost
	Owed    quantity.Units // what of that did not fit
}

// Settled answers Settle, charge by charge.
type Settled struct {
	Head
	Repeated bool           // it was settled before; this is the answer given then
	Used     quantity.Units // by which it was settled
	Charges  []SettledCharge
}

// Cleared answers Reset with the state before the reset.
type Cleared struct {
	Head
	State
}

// Row is the ledger between this region and a peer for one cell. All amounts are cumulative. This
// region writes Lent and Returned, which are R and Q[self->peer]. It hears Borrowed and Regained
// from the peer, which are R and Q[peer->self]. BurstLent and BurstBorrowed are the same for burst
// rights, Y.
type Row struct {
	Lent, Returned, Borrowed, Regained quantity.Units
	BurstLent, BurstBorrowed           quantity.Units
}

// PeerRow is a Row with its cell and peer.
type PeerRow struct {
	Cell quantity.Cell
	Peer string
	Row
}

// Inspected answers Inspect.
type Inspected struct {
	Head
	State
	Rows []PeerRow // of all cells that weigh, ordered by cell and peer
}

// Traded returns the rows of peer regions.
func (i Inspected) Traded() []PeerRow {
	return slices.DeleteFunc(slices.Clone(i.Rows),
		func(r PeerRow) bool { return assignedTo(r.Peer) })
}

// Assigned returns what nodes of the region hold of a cell to assign it to Envoys.
func (i Inspected) Assigned(cell quantity.Cell) (units quantity.Units) {
	for _, r := range i.Rows {
		if r.Cell == cell && assignedTo(r.Peer) {
			units += r.out()
		}
	}
	return units
}

// Recalled answers Recall. It says nothing of cells that the loss at LostAt may concern, nor of
// cells that no longer weigh at Now by the answering region's clock.
type Recalled struct {
	Head
	Rows []RememberedRow // of all cells that weigh, ordered by cell, without Peer; see By
}

// By returns what the answering region has heard, as rows with that region.
func (r Recalled) By(region string) []RememberedRow {
	rows := slices.Clone(r.Rows)
	for i := range rows {
		rows[i].Peer = region
	}
	return rows
}

// Restored answers Restore, as Inspect would answer for the restored bucket.
type Restored = Inspected

// Booked answers Book.
type Booked struct {
	Head
	Done bool // nothing is left to book: the units are charged, or no longer count
}

// Opened answers Open with what the token says now.
type Opened struct {
	OK         bool
	Generation uint64
	Region     string
	Epoch      string
	LostAt     quantity.StoreTime // when data of an earlier generation was lost, 0: never
	Secret     string             // seals the receipts of this generation
	Replid     string             // master_replid of the server under which it was opened
	Since      uint64             // generation since which nothing was lost
	// store time at which the generation began; not before any earlier answer
	Begun    quantity.StoreTime
	Mark     quantity.StoreTime // the latest store time that any script answered with
	Answered quantity.StoreTime // the latest time that the node was answered with; at least Begun
	Layout   int64              // the layout of what the store holds; see the constant
	Older    bool               // a node has found it to be an older copy: it answers nobody
}

// NodeTimes answers Nodes.
type NodeTimes struct {
	Status Status // StatusUnknown: of another generation; StatusCrowded: there are more than MaxNodes
	// At has the latest time that each node was answered with. Nodes that were not answered since the
	// generation began are not in it.
	At map[string]quantity.StoreTime
}

// Noted answers Note.
type Noted struct {
	OK     bool   // false: the store is not of the caller's generation
	Before string // the text stored before
}

// Beaten answers Beat. With StatusClock, too, Now is a time that the store has shown, to others.
type Beaten struct {
	Head
	// At has the latest time that each node was answered with since data were lost, of more than
	// MaxNodes those that were answered last; nil: it cannot be told.
	At map[string]quantity.StoreTime
}

// Adopted answers Adopt.
type Adopted struct {
	OK    bool
	Epoch string // in force now; empty: the store is not of the caller's generation
	// the latest store time that any script answered with: the last under other documents, if OK
	Mark quantity.StoreTime
}
