package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/rights"
)

// Plan is all that is done to a world from outside: what it is made of, what is offered to it, and what goes wrong. The same
// plan gives the same run, to the byte, on any machine.
type Plan struct {
	Seed    uint64
	Regions []RegionPlan
	// OneWay is how long a message takes from a region to another, µs, by their places in Regions.
	OneWay   [][]int64
	Document string   // text of the limits document
	Keys     []string // values of the descriptor that the limits are keyed by
	Acts     []Act    // in the order of time
	// Refunds has some requests refunded: all limits are fixed windows then, and judged by what each admitted and gave back.
	Refunds bool
	// Into is how far into an hour the regions' clocks begin, µs.
	Into int64
	// Memory bounds what nodes remember of the buckets they used; zero: as in production, which no plan fills.
	Memory rights.Memory
	// Shards is how many shards the store of each region has, which fail together, but for round trips; 0: one.
	Shards int
	// Together is how many requests are sent in one call at most, by some of the calls; 0: one.
	Together int64
	// Heal is when all faults end, and End when the run does, µs since the start.
	Heal, End int64
	// Lua has the production scripts decide, on an embedded Redis, and not their Go twins.
	Lua bool

	lowered int64 // the judge takes limits for so much lower than they are: for tests that need something to be broken
}

// RegionPlan is what one region is made of.
type RegionPlan struct {
	Name   string
	Weight int64
	Nodes  int
	Ahead  int64 // of its clocks, µs, at the start
	Drift  int64 // of its clocks, parts per million
	Newer  bool  // its nodes are of a later version, whose messages have fields that others do not know
}

// Deed is what an act does.
type Deed string

// The deeds: loads first, then faults.
const (
	Steady Deed = "steady" // requests at a rate
	Burst  Deed = "burst"  // many requests at once
	Edge   Deed = "edge"   // bursts around the ends of cells
	Wave   Deed = "wave"   // on and off, again and again

	Cut          Deed = "cut"           // messages from a region to another are lost
	CutHints     Deed = "cut-hints"     // hints alone are lost
	Lossy        Deed = "lossy"         // some messages are lost, repeated and late
	Slow         Deed = "slow"          // messages take longer
	Crash        Deed = "crash"         // a node dies and starts again later
	CrashPoints  Deed = "crash-points"  // a node dies at random acts of the protocol
	Leave        Deed = "leave"         // a node ends as it is asked to, and starts again later
	JournalFails Deed = "journal-fails" // a commit of a node's journal fails
	JournalLost  Deed = "journal-lost"  // a node dies, and its journal is gone
	JournalOld   Deed = "journal-old"   // a node dies, and its journal is an old copy
	Flush        Deed = "flush"         // a region's store loses everything
	StoreAnew    Deed = "store-anew"    // a region's store ends and comes back empty
	Failover     Deed = "failover"      // a copy of a region's store takes its place, that is older
	Delete       Deed = "delete"        // one bucket of a region's store is deleted
	StoreDown    Deed = "store-down"    // a region's store does not answer
	ReplyLost    Deed = "reply-lost"    // a region's store does what it is asked, and its answer is lost
	Pause        Deed = "pause"         // a node stands still
	ClockStep    Deed = "clock-step"    // a region's clocks step
	StoreClock   Deed = "store-clock"   // the clock of a region's store steps, and not its nodes'
	Policy       Deed = "policy"        // a document of a higher version reaches the regions one by one
	OldFile      Deed = "old-file"      // a node starts again with the first document
	Lie          Deed = "lie"           // hints that are not true
	Forge        Deed = "forge"         // messages that no region sent

	// Of the wider draw alone.
	Stick     Deed = "stick"      // requests of a key go to one node of a region, while it lives
	NodeClock Deed = "node-clock" // the clock of one node steps, and no other
	Reboot    Deed = "reboot"     // a machine with a node and the region's store ends, and comes back without the data
	Snapshot  Deed = "snapshot"   // a copy of a region's store takes its place, of the same identity: a virtual machine put back
	TokenLost Deed = "token-lost" // the token of a region's store is deleted, and no bucket
	MatesCut  Deed = "mates-cut"  // messages between a node and the others of its region are lost
	StoreBusy Deed = "store-busy" // a region's store takes long for each call, and answers too late under load
)

// Faults are all faults, in the order in which they are explained.
var Faults = []Deed{Cut, CutHints, Lossy, Slow, Crash, CrashPoints, Leave, JournalFails, JournalLost, JournalOld, Flush, StoreAnew,
	Failover, Delete, StoreDown, ReplyLost, Pause, ClockStep, StoreClock, Policy, OldFile, Lie, Forge,
	Stick, NodeClock, Reboot, Snapshot, TokenLost, MatesCut, StoreBusy}

// Load says whether a deed offers requests; all others are faults.
func (d Deed) Load() bool { return d == Steady || d == Burst || d == Edge || d == Wave }

// ofNode says whether a deed of the wider draw is done to one node.
func (d Deed) ofNode() bool { return d == Stick || d == NodeClock || d == Reboot || d == MatesCut }

// Act is one thing that is done. What it does not need is zero.
type Act struct {
	ID     int   // place in the plan that was drawn: its random numbers depend on it, and not on what else is done
	At     int64 // µs since the start
	For    int64 // how long, µs
	Do     Deed
	Region int
	Peer   int // the other region; -1: all others
	Node   int // of the region
	Limit  int // of the document
	Key    int
	Amount int64 // of units, requests a second, parts per mille, µs: whatever the deed has
	Cost   int64 // most units of a request
	Back   bool  // the other direction, too
}

// String is the act in words, for humans.
func (a Act) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %8.3fs %-13s r%d", a.ID, float64(a.At)/1e6, a.Do, a.Region)
	switch {
	case a.Do.Load():
		fmt.Fprintf(&b, " limit %d key %d, %d up to %d units each", a.Limit, a.Key, a.Amount, a.Cost)
	case a.Do == Cut || a.Do == CutHints || a.Do == Lossy || a.Do == Slow:
		way := "->"
		if a.Back {
			way = "<->"
		}
		peer := "all"
		if a.Peer >= 0 {
			peer = fmt.Sprintf("r%d", a.Peer)
		}
		fmt.Fprintf(&b, " %s %s", way, peer)
	case a.Do.ofNode() || a.Do == Crash || a.Do == CrashPoints || a.Do == Leave || a.Do == Pause || a.Do == JournalFails || a.Do == JournalLost || a.Do == JournalOld || a.Do == OldFile:
		fmt.Fprintf(&b, "/n%d", a.Node+1)
	case a.Do == Delete:
		fmt.Fprintf(&b, " limit %d key %d", a.Limit, a.Key)
	}
	if a.Amount != 0 && !a.Do.Load() {
		fmt.Fprintf(&b, " by %d", a.Amount)
	}
	if a.For > 0 {
		fmt.Fprintf(&b, " for %v", time.Duration(a.For)*time.Microsecond)
	}
	return b.String()
}

// document reads the plan's limits document under another version.
func (p *Plan) document(version int64) (*policy.Document, error) {
	return policy.Parse("limits.yaml", fmt.Appendf(nil, "version: %d\n%s", version, p.Document))
}
