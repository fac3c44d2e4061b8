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
)

var statusNames = [...]string{"ok", "unknown store", "clock step", "finished cell", "fenced", "implausible", "recovering"}

func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return fmt.Sprintf("status %d", int64(s))
	}
	return statusNames[s]
}

// State is a bucket as a decision left it.
type State struct {
	Cell        int64
	Entitlement int64
	Share       int64 // rights held of Cell
	NextShare   int64 // rights held of Cell+1
	Used        int64 // units used of Cell
}

// Verdict is the outcome of one cost on one bucket.
type Verdict struct {
	Remaining int64 // rights of the cell left after the request, at least 0
	Retry     int64 // 0: there was room; else after how long (us) it fits if nothing else happens; -1: never on the entitlement alone
}

// Answer is the outcome of one request.
type Answer struct {
	Admitted bool
	Verdicts []Verdict // one for each bucket
}

// Decided answers Decide.
type Decided struct {
	Status  Status
	Now     int64
	Buckets []State
	Answers []Answer
}

// Given answers Lend: the rows as they stand now, for the cell asked for.
type Given struct {
	Status Status
	Now    int64
	Cell   int64 // the store's current cell
	Row
	Share int64
	Used  int64
	Spare int64 // what more could be lent
}

// Credited answers Credit.
type Credited struct {
	Status Status
	Now    int64
	Cell   int64 // the store's current cell
	Row
	Share int64 // of the cell credited
	Used  int64
}

// Row is the ledger between this region and a peer for one cell; see ledger.lua.
type Row struct {
	Lent, Returned, Borrowed, Regained int64
}

// PeerRow is a Row with its place.
type PeerRow struct {
	Cell int64
	Peer string
	Row
}

// Inspected answers Inspect.
type Inspected struct {
	Status    Status
	Now       int64
	Cell      int64
	Used      int64
	Share     int64
	NextShare int64
	Rows      []PeerRow // ordered by cell and peer
}

// Opened answers Open: what stands there now.
type Opened struct {
	OK         bool
	Generation uint64
	Region     string
	Epoch      string
	LostAt     int64 // when data of an earlier generation was lost, 0: never
}

// Adopted answers Adopt.
type Adopted struct {
	OK    bool
	Epoch string // in force now; empty: the store is not of the caller's generation
}
