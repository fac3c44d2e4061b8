package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/trade/rights"
)

// Plan is everything that is done to a world from outside: what it is made of, what load it is
// offered, and what goes wrong. The same plan gives the same run, to the byte, on any machine.
type Plan struct {
	Seed    uint64
	Regions []RegionPlan
	// OneWay[i][j] is how long a message takes from Regions[i] to Regions[j], µs.
	OneWay   [][]int64
	Document string   // text of the limits document
	Versions []string // texts of its later versions, from 2 on; none: all are the same
	Keys     []string // values of the descriptor that the limits are keyed by
	Acts     []Act    // in the order of time
	// Refunds has some requests refunded. Fixed windows are then judged by what they admitted less
	// what they gave back; of other kinds what was given back may be admitted once more.
	Refunds bool
	// Classes has requests say a class.
	Classes bool
	// Large has some requests cost up to the whole limit.
	Large bool
	// Began is the wall clock's time at the start, before Into, µs since 1970; 0: that of every
	// run.
	Began int64
	// Into is how far into an hour the regions' clocks begin, µs.
	Into int64
	// Memory bounds what nodes remember of the buckets they used; zero: as in production, which no
	// plan fills.
	Memory  rights.Memory
	Options exchange.Options // parts of the protocol switched off
	// Shards is the number of shards of each region's store; 0: one. They fail together, except for
	// single round trips and for servers that are silent.
	Shards int
	// Together is the maximum number of requests in one call; 0: one.
	Together int64
	// Heal is when all faults end, and End when the run ends, µs since the start.
	Heal, End int64
	// Lua has the production scripts decide, on an embedded Redis, in place of their Go twins.
	Lua bool

	// lowered is subtracted from the limits as the judge knows them, for tests that need a
	// violation.
	lowered quantity.Units
}

// RegionPlan is what one region is made of.
type RegionPlan struct {
	Name   string
	Weight int64
	Nodes  int
	Ahead  int64 // of its clocks at the start, µs
	Drift  int64 // of its clocks, parts per million
	// Servers are those of its store, which hold the shards in turn. None: there is one, and it takes no
	// time.
	Servers []ServerPlan
	// Newer nodes are of a later version: their messages have fields that others do not know.
	Newer bool
}

// ServerPlan says how long a message takes between a region's nodes and one of its store's servers, and
// how long the server takes for a call, µs.
type ServerPlan struct{ Way, Each int64 }

// Deed is the kind of an act.
type Deed string

// The deeds: loads first, then faults.
const (
	Steady Deed = "steady" // requests at a constant rate
	Burst  Deed = "burst"  // many requests at once
	Edge   Deed = "edge"   // bursts around the ends of cells
	Wave   Deed = "wave"   // requests at a rate, on and off
	Flood  Deed = "flood"  // requests of callers that ask for more than the store can decide
	Proxy  Deed = "proxy"  // an Envoy that is assigned a part of the first limit, and its callers

	Cut          Deed = "cut"           // messages from one region to another are lost
	CutHints     Deed = "cut-hints"     // only hints are lost
	Lossy        Deed = "lossy"         // some messages are lost, repeated or late
	Slow         Deed = "slow"          // messages take longer
	Crash        Deed = "crash"         // a node dies and starts again later
	CrashPoints  Deed = "crash-points"  // a node dies at random acts of the protocol
	Leave        Deed = "leave"         // a node shuts down in order and starts again later
	JournalFails Deed = "journal-fails" // commits of a node's journal fail
	JournalLost  Deed = "journal-lost"  // a node dies, and its journal is gone; it is back as it was, or under another name
	JournalOld   Deed = "journal-old"   // a node dies, and its journal is replaced by an old copy
	Flush        Deed = "flush"         // a region's store loses everything
	StoreAnew    Deed = "store-anew"    // a region's store ends and comes back empty
	Failover     Deed = "failover"      // a region's store is replaced by a replica: an older copy, or one that has all
	Delete       Deed = "delete"        // one bucket of a region's store is deleted
	StoreDown    Deed = "store-down"    // a region's store does not answer
	ReplyLost    Deed = "reply-lost"    // a region's store does its work, but the reply is lost
	Pause        Deed = "pause"         // a node is paused
	ClockStep    Deed = "clock-step"    // all clocks of a region step
	StoreClock   Deed = "store-clock"   // the clock of a region's store steps, not its nodes'
	Policy       Deed = "policy"        // a newer document reaches the regions one by one
	OldFile      Deed = "old-file"      // a node starts again with another document, mostly an older one
	Lie          Deed = "lie"           // untrue hints are gossiped
	Forge        Deed = "forge"         // forged messages are sent

	// The deeds of the wider draw only.
	Stick     Deed = "stick"      // requests of a key go to one node of a region while it lives
	NodeClock Deed = "node-clock" // the clock of one node steps
	Reboot    Deed = "reboot"     // a machine with a node and the store restarts, the store empty
	Snapshot  Deed = "snapshot"   // a region's store is replaced by an older copy with its identity
	TokenLost Deed = "token-lost" // the token of a region's store is deleted
	MatesCut  Deed = "mates-cut"  // messages between a node and the others of its region are lost
	StoreBusy Deed = "store-busy" // a region's store is slow, and too late under load
	NodeAdded Deed = "node-added" // another node is started in a region, with a new name and an empty journal
	NodeGone  Deed = "node-gone"  // a node ends for good, its journal with it, and nobody takes its place
	ZoneLost  Deed = "zone-lost"  // a region's store loses everything, and one node or all but one their journals
	Recover   Deed = "recover"    // an operator ends the wait for what nobody in a region can tell

	// The deed of draws with prefetch only.
	Freeze Deed = "freeze" // a machine with a node stands still, and no clock in it shows that

	// The deed of draws with stores that take time only.
	Silence Deed = "silence" // one server of a region's store does not answer, and callers wait in vain

	// The deed of the varied draw only.
	Reset Deed = "reset" // an operator resets a bucket in a region
)

// Faults are all faults, in the order in which they are explained.
var Faults = []Deed{Cut, CutHints, Lossy, Slow, Crash, CrashPoints, Leave, JournalFails,
	JournalLost, JournalOld, Flush, StoreAnew,
	Failover, Delete, StoreDown, ReplyLost, Pause, ClockStep, StoreClock, Policy, OldFile, Lie,
	Forge,
	Stick, NodeClock, Reboot, Snapshot, TokenLost, MatesCut, StoreBusy, NodeAdded,
	NodeGone, ZoneLost, Recover, Freeze, Silence, Reset}

// Load reports whether a deed is a load. All others are faults.
func (d Deed) Load() bool {
	return d == Steady || d == Burst || d == Edge || d == Wave || d == Flood ||
		d == Proxy
}

// ofNode reports whether a deed of the wider draw concerns one node.
func (d Deed) ofNode() bool {
	return d == Stick || d == NodeClock || d == Reboot || d == MatesCut || d == NodeGone ||
		d == ZoneLost || d == Recover || d == Freeze
}

// Act is one act of a plan. Fields that its deed does not use are zero.
type Act struct {
	// ID is the place in the plan as it was drawn. The act's random numbers depend on the ID, and
	// not on the other acts.
	ID     int
	At     int64 // µs since the start
	For    int64 // duration, µs
	Do     Deed
	Region int
	Peer   int // the other region; -1: all others
	Node   int // index in the region
	Limit  int // index in the document
	Key    int
	Amount int64          // units, milli-requests a second, per mille or µs, depending on the deed
	Cost   quantity.Units // maximum units of a request
	Back   bool           // also in the other direction
}

// String describes the act for humans.
func (a Act) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %8.3fs %-13s r%d", a.ID, float64(a.At)/1e6, a.Do, a.Region)
	switch {
	case a.Do.Load():
		fmt.Fprintf(&b, " limit %d key %d, %d up to %d units each", a.Limit, a.Key, a.Amount,
			a.Cost)
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
	case a.Do.ofNode() || a.Do == Crash || a.Do == CrashPoints || a.Do == Leave || a.Do == Pause ||
		a.Do == JournalFails || a.Do == JournalLost || a.Do == JournalOld || a.Do == OldFile:
		fmt.Fprintf(&b, "/n%d", a.Node+1)
	case a.Do == Silence:
		fmt.Fprintf(&b, " server %d", a.Node+1)
	case a.Do == Delete || a.Do == Reset:
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

// Texts returns the plan's first document, and the lines by which each of the others that may come to
// a node differs from the one before.
func (p *Plan) Texts() string {
	var b strings.Builder
	b.WriteString(p.Document)
	before := strings.Split(p.Document, "\n")
	given := min(p.given(), len(p.Versions))
	if slices.ContainsFunc(p.Acts, func(a Act) bool { return a.Do == OldFile }) {
		given = len(p.Versions)
	}
	for i, text := range p.Versions[:given] {
		fmt.Fprintf(&b, "version %d:\n", i+2)
		lines := strings.Split(text, "\n")
		for _, change := range []struct {
			mark     string
			of, from []string
		}{{"-", before, lines}, {"+", lines, before}} {
			for _, line := range change.of {
				if !slices.Contains(change.from, line) {
					fmt.Fprintf(&b, "%s%s\n", change.mark, line)
				}
			}
		}
		before = lines
	}
	return b.String()
}

// given returns how many documents the plan gives to regions.
func (p *Plan) given() (n int) {
	for _, a := range p.Acts {
		if a.Do == Policy {
			n++
		}
	}
	return n
}

func (p *Plan) regionNames() (all []string) {
	for _, r := range p.Regions {
		all = append(all, r.Name)
	}
	return all
}

// document parses the plan's limits document with the given version.
func (p *Plan) document(version int64) (*policy.Document, error) {
	text := p.Document
	if n := int(version) - 2; n >= 0 && n < len(p.Versions) {
		text = p.Versions[n]
	}
	return policy.Parse("limits.yaml", fmt.Appendf(nil, "version: %d\n%s", version, text))
}
