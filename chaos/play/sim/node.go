package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab"
	stepped "github.com/quotad/quotad/chaos/lab/node"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	quotad "github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// node is a node, which may die and start again.
type node struct {
	w       *world
	r       *region
	index   int    // in its region
	name    string // region and node, for humans
	title   string // names this life, for the judge
	random  *rand.Rand
	file    *policy.Document // its limits document
	under   underWay
	disk    *lab.Disk        // below its journal
	journal *journal.Journal // opened anew after each life
	way     *store.Store     // the store of its region
	live    *stepped.Stepped
	life    int // number of the current life, from 1
	born    int64

	calls       map[uint64]bool // not answered yet
	asked       uint64
	heard       []int64 // when each region last answered
	serving     map[uint64]exchange.Message
	lending     map[uint64][]exchange.Lend
	recording   map[uint64][]exchange.Row
	replies     map[uint64]func(exchange.Reply)
	testimonies map[uint64]func(exchange.Testimonies)
	waiting     []*held
	reporting   bool
	paused      int64 // it is paused until then
	// Since when its machine is suspended, 0: it is not, and how long it was before: its monotonic
	// clock stands still, µs.
	asleep, slept int64
	stalled       []func()
	starved       int64                 // until when it reads no report of an Envoy
	mute          int64                 // until when it sends none an assignment
	pauses        int                   // how often its machine stood still
	deciding      map[*request]struct{} // requests that wait for its store's answer
	trips         []trips               // to each server of its store
	// crash is the probability of dying at an act of the protocol, per mille, for each fault under
	// way.
	crash   []int64
	durable map[rowID]exchange.Row // what its journal has stored, by row
	forgot  int64                  // when its journal was last lost or put back, µs; 0: never
	// journals is how many of its journals were lost or replaced by older copies.
	journals int
	// vague: what its last journal missed is not known: it was an old copy, or had taken nothing.
	vague bool
	// renamed is how often it was replaced by a node with another name.
	renamed int
	size    int   // how many nodes its region has, as its file said at its last start
	added   int64 // when it was added to its region, µs; 0: it was there from the beginning
	// unheard: it was added while another node was not answered, or while no other one ran, so that nobody knows
	// since when it was there.
	unheard bool
	gone    bool // it ended for good
	// copied is when it was lost together with its store, and another node had copies of what it saw,
	// µs; 0: never.
	copied int64
	// frozen is how often it stood still in this life, and no clock of its machine showed it, and stood for
	// how long in all, µs.
	frozen int
	stood  int64
	// told is the latest time that its store answered it with, by shard. Its journal keeps it.
	told  map[store.Shard]quantity.StoreTime
	noted quantity.StoreTime // a time of the store that the node's journal has, at least
	// heardAt is when a decision of this life last came from the store, and notedAt when the last one
	// did of which the journal has the time.
	heardAt, notedAt int64
	lately           map[*bucket]usage // when this life last admitted units of a bucket
	ended            map[*bucket]int64 // when a life ended that had admitted, µs
	fails            bool              // its journal fails all commits
	// mark is the latest time by which it decided without its store, or looked what it may forget
	// of that, µs since 1970.
	mark    int64
	prefers map[int]int // index of the node it calls, by region
	ahead   int64       // of its clock, µs, relative to its region's
	alone   int         // acts that cut it off from the other nodes of its region
}

type rowID struct {
	bucket, peer string
	cell         quantity.Cell
}

func newNode(r *region, i int, d *policy.Document) *node {
	n := &node{w: r.w, r: r, index: i, name: fmt.Sprintf("%s/n%d", r.name, i+1),
		random: r.w.plan.random(forNodes, r.index<<8|i),
		file:   d, durable: map[rowID]exchange.Row{}, prefers: map[int]int{},
		ended: map[*bucket]int64{}, told: map[store.Shard]quantity.StoreTime{}}
	n.newJournal()
	return n
}

// start begins a life with an empty memory, and with store and journal as they are.
func (n *node) start(first bool) error {
	n.way = n.r.store.connect(n)
	live, err := stepped.New(quotad.Config{Region: n.r.name, Node: n.own(),
		Nodes:  n.r.size,
		Policy: n.file, Bootstrap: first, Store: n.way, Journal: n.journal, Now: n.time,
		Elapsed: func() time.Duration { return time.Duration(n.mono()) * time.Microsecond },
		Fetch:   n.fetch, Ask: n.asksToOpen, Life: uint64(n.life + 1), Alive: n.w.lives, Log: n.w.quiet(), Memory: n.w.plan.Memory, Exchange: n.w.plan.Options}, n.after)
	if err != nil {
		return err
	}
	n.life++
	n.size = n.r.size
	n.lately, n.fails, n.mark = map[*bucket]usage{}, false, 0
	n.live, n.born, n.title = live, n.w.now, fmt.Sprintf("n%d#%d", n.index+1, n.life)
	live.Begin()
	n.calls, n.replies, n.testimonies = map[uint64]bool{}, map[uint64]func(exchange.Reply){},
		map[uint64]func(exchange.Testimonies){}
	n.waiting, n.reporting, n.paused, n.stalled, n.heardAt = nil, false, 0, nil, 0
	n.asleep, n.slept, n.frozen, n.stood = 0, 0, 0, 0
	n.lending, n.deciding = map[uint64][]exchange.Lend{}, map[*request]struct{}{}
	n.trips = make([]trips, len(n.r.silent))
	n.serving, n.recording = map[uint64]exchange.Message{}, map[uint64][]exchange.Row{}
	n.heard = make([]int64, len(n.w.plan.Regions))
	n.w.tell(n.r, "%s starts under generation %d", n.name, live.Generation())
	n.r.overlooks()
	n.drain()
	n.every(tickEvery, n.random.Int64N(tickEvery), n.tick)
	n.every(bookEvery, n.random.Int64N(bookEvery), n.keep)
	n.every(forgetEvery, forgetEvery, func() {
		n.mark = max(n.mark, n.time().UnixMicro())
		n.live.Forget()
	})
	return nil
}

const (
	tickEvery   = exchange.Interval
	bookEvery   = exchange.Interval
	forgetEvery = 10 * allocator.Second
	reportAfter = 10_000 // µs
)

// every calls do first after first µs and then each µs again, until the node dies.
func (n *node) every(each, first int64, do func()) {
	var again func()
	again = func() { do(); n.in(each, again) }
	n.in(first, again)
}

// after is in for a duration, rounded up.
func (n *node) after(d time.Duration, do func()) {
	n.in(int64((d+time.Microsecond-1)/time.Microsecond), do)
}

// in calls do after d µs, unless the node dies before. A paused node does it after the pause.
func (n *node) in(d int64, do func()) { n.at(n.w.now+d, do) }

func (n *node) at(t int64, do func()) {
	life := n.life
	n.w.at(t, func() {
		switch {
		case n.life != life || n.live == nil:
		case n.w.now < n.paused:
			n.stalled = append(n.stalled, do)
		default:
			do()
		}
	})
}

// die ends the node's current life.
func (n *node) die() {
	n.w.tell(n.r, "%s dies", n.name)
	for _, h := range n.waiting {
		h.unanswered()
	}
	n.live.End()
	n.live, n.waiting, n.deciding = nil, nil, nil
	n.ends()
	n.forgetsCopies()
	n.r.overlooks()
	n.reopen()
}

// restartIn starts the node after d µs. If that fails, it tries again every second.
func (n *node) restartIn(d int64) {
	n.w.in(d, func() {
		if n.live != nil || n.gone {
			return
		}
		if err := n.start(false); err != nil {
			n.w.tell(n.r, "%s does not start: %v", n.name, err)
			n.reopen()
			n.restartIn(allocator.Second)
		}
	})
}

// mayDie has the node die here, with the probability that its faults say, and reports whether the
// node is dead.
func (n *node) mayDie(row int) bool {
	if n.live == nil {
		return true
	}
	for _, permille := range n.crash {
		if n.random.Int64N(1000) < permille {
			n.w.fired(row)
			n.w.counts.Deeds[CrashPoints]++
			n.die()
			n.restartIn(n.random.Int64N(2 * allocator.Second))
			return true
		}
	}
	return false
}

// mono returns the machine's time, µs.
func (n *node) mono() quantity.NodeTime {
	now := n.w.now
	if n.asleep > 0 {
		now = n.asleep
	}
	return quantity.NodeTime(now - n.born - n.slept + 1)
}

func (n *node) tick() {
	n.report()
	n.hear(exchange.Tick{Jitter: quantity.PPM(allocator.PPM*8/10 +
		n.random.Int64N(allocator.PPM*4/10))})
	n.drain()
	n.assign()
}

// keep does a node's periodic work outside the protocol.
func (n *node) keep() {
	n.live.TryAgain()
	if err := n.live.Reopen(); err != nil {
		n.w.tell(n.r, "%s: %v", n.name, err)
	}
	n.live.Review()
	n.settlesLocal()
	n.live.ReturnChunks()
	n.reads()
	if n.w.now/bookEvery%5 == int64(n.index) {
		n.live.Checkpoint()
		if n.r.spoken {
			n.live.LearnWaived()
		}
		n.copies()
		n.notes()
		n.beats()
	}
	n.drain()
}

// report tells the machine what was decided.
func (n *node) report() {
	if all := n.live.Report(); len(all) > 0 {
		n.hear(all)
	}
}

// observed schedules a report to the machine.
func (n *node) observed() {
	if !n.reporting {
		n.reporting = true
		n.in(reportAfter, func() { n.reporting = false; n.report(); n.drain() })
	}
}

// drain has the machine hear the events that the node's work has produced.
func (n *node) drain() {
	for n.live != nil {
		events := n.live.Events()
		if len(events) == 0 {
			return
		}
		for _, e := range events {
			if n.live == nil {
				return
			}
			n.noteEvent(e)
			n.hear(e)
		}
	}
}

// hear has the machine hear an event, and schedules the effects.
func (n *node) hear(e exchange.Event) {
	if n.live != nil {
		out := n.live.Step(n.mono(), e)
		n.w.digest.heard(n, n.w.now, e, out)
		n.carry(out)
	}
}
