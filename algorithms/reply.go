package algorithms

import "fmt"

// Status is how a script ended; only with StatusOK has it changed anything.
type Status int64

const (
	StatusOK          Status = iota
	StatusUnknown            // the store's token is missing, or of another generation or epoch
	StatusClock              // the store's clock is further than MaxClockStep from the node's
	StatusFinished           // the cell is neither the current one nor the next
	StatusFenced             // the peer's rows are of a generation below the one heard of before
	StatusImplausible        // an amount out of range, more regained than was lent, or more lent than may be
	StatusRecovering         // the cell may have been promised or spent before a loss of data
	StatusLost               // the bucket must be restored first
	StatusEarly              // the peer gave it up later in the cell than it is here: to be said again then
	StatusCrowded            // the bucket has rows with as many other peers as it can hold
)

var statusNames = [...]string{"ok", "unknown store", "clock step", "finished cell", "fenced", "implausible", "recovering", "lost bucket", "too early", "crowded bucket"}

func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return fmt.Sprintf("status %d", int64(s))
	}
	return statusNames[s]
}

// Head is what the answer of every guarded script begins with.
type Head struct {
	Status Status
	Now    int64 // store time; 0 where the store did not say it
	LostAt int64 // with StatusLost, and of a Recall: when data was lost; 0: never
}

// Answered returns what the answer begins with.
func (h Head) Answered() Head { return h }

// State is a bucket as a call left it. Rights of windows are units of the cell, those of buckets units a window.
type State struct {
	Cell        int64
	Entitlement int64
	Share       int64 // rights held of Cell, rounded down
	NextShare   int64 // rights held of Cell+1, at its start
	Used        int64 // units that count against the share, rounded up; of a bucket, against its capacity
	Fading      int64 // of Used, those that will not count any more when the cell ends, about
	Free        int64 // units that fit now
	ExistsUntil int64 // store time until which the bucket is known to be in the store; 0: this call cannot tell
	// Doubt is when a loss was of which it is not known what some peers were lent before, or what some nodes used; 0: no doubt.
	Doubt int64
	// Shut is the store time until which a loss keeps the bucket closed, or use that nobody told of may fill it; 0: it does not.
	Shut int64
}

// Verdict is the outcome of one cost on one bucket.
type Verdict struct {
	Remaining int64 // units that still fit after the request
	Retry     int64 // 0: there was room; else after how long (us) it fits if nothing else happens; -1: never on the entitlement alone
	Delay     int64 // leaky_bucket: after how long (us) the request's turn has come
}

// Answer is the outcome of one request.
type Answer struct {
	Admitted bool
	Verdicts []Verdict // one for each bucket
}

// Decided answers Decide.
type Decided struct {
	Head
	Repeated bool // it was decided before, under its Once; this is what was said then
	TooOften bool // what was said under its Once had been answered as often as it may be: this is another decision
	Lost     int  // and the place of the bucket in the call
	Buckets  []State
	Answers  []Answer
}

// Given answers Lend: the rows as they stand now, for the cell asked for.
type Given struct {
	Head
	State
	Row        Row
	Spare      int64 // what more could be lent
	SpareBurst int64
}

// Credited answers Credit: the rows as they stand now, for the cell credited.
type Credited struct {
	Head
	State
	Row Row
}

// Refusal says why a charge was not refunded.
type Refusal int64

const (
	NotRefused     Refusal = iota
	NoLongerWeighs         // what was charged does not count any more
	TurnPromised           // a queue's turn cannot be given back
	NoSuchLimit            // the limit is not in force any more
)

var refusalNames = [...]string{"", "no longer weighs", "turn promised", "no such limit any more"}

func (r Refusal) String() string {
	if r < 0 || int(r) >= len(refusalNames) {
		return fmt.Sprintf("refusal %d", int64(r))
	}
	return refusalNames[r]
}

// Back is what became of one charge.
type Back struct {
	Units   int64
	Refusal Refusal
}

// Refunded answers Refund, charge by charge.
type Refunded struct {
	Head
	Repeated bool // it was refunded before; this is what was said then
	Charges  []Back
}

// Cleared answers Reset with the state before.
type Cleared struct {
	Head
	State
}

// Row is the ledger between this region and a peer for one cell. All are cumulative: this region writes what it Lent
// and Returned, R and Q[self->peer], and hears what it Borrowed and Regained, R and Q[peer->self]; the same of burst
// rights, Y.
type Row struct {
	Lent, Returned, Borrowed, Regained int64
	BurstLent, BurstBorrowed           int64
}

// PeerRow is a Row with its place.
type PeerRow struct {
	Cell int64
	Peer string
	Row
}

// Inspected answers Inspect.
type Inspected struct {
	Head
	State
	Rows []PeerRow // of all cells that weigh, ordered by cell and peer
}

// Recalled answers Recall. It says nothing of cells that the loss of LostAt may concern, nor of those that weigh no more
// at Now by its clock.
type Recalled struct {
	Head
	Rows []HeardRow // of all cells that weigh, ordered by cell
}

// HeardRow is what a region heard of a peer's row of one cell.
type HeardRow struct{ Cell, Borrowed, Regained int64 }

// Restored answers Restore, and Inspect of the bucket as it stands now.
type Restored = Inspected

// Booked answers Book.
type Booked struct {
	Head
	Done bool // no more of it need be booked: it is charged, or counts no more
}

// Opened answers Open: what stands there now.
type Opened struct {
	OK         bool
	Generation uint64
	Region     string
	Epoch      string
	LostAt     int64  // when data of an earlier generation was lost, 0: never
	Secret     string // what seals the receipts of this generation
	Replid     string // master_replid of the server it was opened on
	Since      uint64 // generation since which nothing was lost
	Begun      int64  // store time at which this generation began, not before any that was answered
	Mark       int64  // the latest store time that was answered
	Answered   int64  // the latest that the node was answered with, or could have been when this generation began
}

// Noted answers Note.
type Noted struct {
	OK     bool   // false: the store is not of the caller's generation
	Before string // what was remembered
}

// Beaten answers Beat.
type Beaten struct {
	Head
}

// Adopted answers Adopt.
type Adopted struct {
	OK    bool
	Epoch string // in force now; empty: the store is not of the caller's generation
}
