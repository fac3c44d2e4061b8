package sim

import (
	"errors"
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
)

// act carries out one act of the plan.
func (w *world) act(a Act) {
	if a.Do.Load() {
		w.offer(a)
		return
	}
	r := w.regions[a.Region]
	n := r.nodes[a.Node%len(r.nodes)]
	w.tell(r, "%s", a)
	if a.Do != Stick {
		defer func() { r.undisturbed = max(r.undisturbed, w.now+a.For) }()
		r.troubles(a)
	}
	switch a.Do {
	case Cut, CutHints, Lossy, Slow:
		w.disturb(a)
	case Crash:
		w.kill(a, n)
	case Leave:
		w.leave(a, n)
	case CrashPoints:
		n.crash = append(n.crash, a.Amount)
		w.in(a.For, func() { n.crash = n.crash[1:] })
	case JournalFails:
		n.disk.FailCommits(errDisk)
		n.fails = true
		w.found(a, rowJournalFails)
		w.in(a.For, func() { // the operator mends the disk and restarts the node
			if n.live != nil {
				n.die()
			}
			n.restartIn(1)
		})
	case JournalLost:
		w.loseJournal(a, n, nil)
	case JournalOld:
		old, of := n.disk.Copy(), n.own()
		w.in(a.For, func() {
			if n.own() == of {
				w.loseJournal(a, n, old)
			}
		})
	case Pause:
		n.paused = max(n.paused, w.now+a.For)
		n.pauses++
		if a.For%2 == 1 && n.asleep == 0 { // the whole machine is suspended
			n.asleep = w.now
		}
		n.r.overlooks()
		w.found(a, rowPause)
		w.in(a.For, func() { n.resume() })
	case Policy, OldFile:
		w.change(a)
	case Reset:
		w.reset(a, n)
	case Lie:
		w.lie(a)
	case Forge:
		w.forge(a)
	case Stick, NodeClock, Reboot, Snapshot, TokenLost, MatesCut, StoreBusy:
		w.widen(a, r, n)
	case NodeAdded, NodeGone, ZoneLost, Recover:
		w.comeAndGo(a, r, n)
	case Freeze:
		w.freeze(a, n)
	default:
		w.strike(a, r)
	}
}

// errNobodyAnswers is why a region does not join: a node that starts with --bootstrap asks others.
var errNobodyAnswers = errors.New("no node of another region answers")

var errDisk = errors.New("no space left on device")

// disturb cuts, slows or makes lossy the wires of a region for a while.
func (w *world) disturb(a Act) {
	each := func(do func(l *wire)) {
		for peer := range w.regions {
			if peer == a.Region || a.Peer >= 0 && a.Peer != peer {
				continue
			}
			do(&w.wires[a.Region][peer])
			if a.Back {
				do(&w.wires[peer][a.Region])
			}
		}
	}
	begin, end := func(l *wire) {}, func(l *wire) {}
	switch a.Do {
	case Cut:
		begin, end = func(l *wire) { l.cut++ }, func(l *wire) { l.cut-- }
		defer w.noteCuts()
	case CutHints:
		begin, end = func(l *wire) { l.hintsCut++ }, func(l *wire) { l.hintsCut-- }
	case Lossy:
		begin, end = func(l *wire) { l.lossy = append(l.lossy, a.Amount) },
			func(l *wire) { l.lossy = l.lossy[1:] }
	case Slow:
		begin, end = func(l *wire) { l.slow += a.Amount }, func(l *wire) { l.slow -= a.Amount }
	}
	w.counts.Deeds[a.Do]++
	each(begin)
	w.in(a.For, func() { each(end); w.noteCuts() })
}

// kill has a node die, and restarts it after a.For.
func (w *world) kill(a Act, n *node) {
	if n.live == nil {
		return
	}
	w.found(a, rowNodeRestarts)
	n.die()
	n.restartIn(a.For)
}

// leave shuts a node down in order, and restarts it after a.For.
func (w *world) leave(a Act, n *node) {
	if n.live == nil {
		return
	}
	w.found(a, rowLeave)
	n.live.Run(func() {
		if err := n.live.CloseBooks(); err != nil {
			w.tell(n.r, "%s: %v", n.name, err)
		}
		if n.drain(); n.live != nil {
			n.die()
			n.restartIn(a.For)
		}
	})
}

// loseJournal has a node die and restarts it with an old copy of its journal, or with an empty
// journal if with is nil. The other nodes of its region and the store keep their data.
func (w *world) loseJournal(a Act, n *node, with *lab.Disk) {
	if n.live == nil {
		return
	}
	w.found(a, rowJournalLost)
	n.die()
	n.journals++
	if with == nil {
		if a.For%2 == 1 { // another node is started in its place
			n.rename()
		}
		n.newJournal()
	} else {
		n.disk, n.vague = with, true
		n.reopen()
	}
	n.forgets()
	clear(n.durable)
	n.restartIn(w.wires[0][0].random.Int64N(allocator.Second))
}

// resume has a paused node carry out what it postponed while it stood still.
func (n *node) resume() {
	if n.w.now < n.paused {
		return
	}
	if n.asleep > 0 {
		n.slept, n.asleep = n.slept+n.w.now-n.asleep, 0
	}
	n.r.overlooks()
	stalled := n.stalled
	n.stalled = nil
	for _, do := range stalled {
		n.in(0, do)
	}
}

// change brings regions a newer document (Policy), or restarts one node with another (OldFile).
func (w *world) change(a Act) {
	if a.Do == OldFile {
		n := w.regions[a.Region].nodes[a.Node%len(w.regions[a.Region].nodes)]
		if d := w.documents[uint64(a.Amount)%uint64(len(w.documents))]; n.live != nil && n.file != d {
			w.found(a, rowDocument)
			n.restartsWith(d, a.Back)
		}
		return
	}
	if w.adopted == int64(len(w.documents)) {
		return
	}
	d := w.documents[w.adopted]
	w.adopted = d.Version
	random := w.plan.random(forActs, a.ID)
	given := a.Amount
	if !slices.ContainsFunc(w.regions, func(r *region) bool { return given&(1<<r.index) != 0 && r.spreads(d) }) {
		given = 0 // an operator applies it where the others hear of it
	}
	for i, r := range w.regions {
		at := random.Int64N(a.For + 1)
		for _, n := range r.nodes {
			if given == 0 || given&(1<<i) != 0 { // others learn of it
				w.in(at, func() { n.receive(d) })
			}
		}
	}
	w.addRegions(d)
	w.counts.Deeds[a.Do]++
}

// addRegions gives a document to the nodes of regions that it has and their files have not: they join,
// or come back.
func (w *world) addRegions(d *policy.Document) {
	for _, r := range w.regions {
		for _, n := range r.nodes {
			if has(d, r.name) && !has(n.file, r.name) {
				w.in(0, func() { n.receive(d) })
			}
		}
	}
}

// spreads reports whether the others learn of a document from a region: it has a part by that, and is
// a region by the newest that it knows. Of one that joins they hear nothing before they have a document
// that has it.
func (r *region) spreads(d *policy.Document) bool {
	newest := r.newest()
	return newest != nil && has(newest, r.name) && belongs(d, r.name)
}

// has reports whether a document has a region.
func has(d *policy.Document, region string) bool {
	_, has := d.RegionIndex(region)
	return has
}

// restartsWith restarts the node with another document. If the operator notices, the node has its
// own again a second later.
func (n *node) restartsWith(d *policy.Document, stays bool) {
	own, before := n.file, n.live.Version()
	spreads := n.r.spreads(d)
	n.die()
	n.file = d
	err := n.start(false)
	if err == nil {
		if spreads {
			n.w.adopted = max(n.w.adopted, n.live.Version())
			n.w.addRegions(d)
		}
		if n.live.Version() < before {
			n.w.breaks("documents", "%s serves under version %d after it has under version %d", n.name,
				n.live.Version(), before)
		}
	}
	if err == nil && stays {
		return
	}
	if n.live != nil {
		n.die()
	}
	n.reopen()
	n.file = own
	n.restartIn(allocator.Second)
}

// receive puts a newer document in a node's file. The node notices. One that never lived, as its
// region was in no document, begins to.
func (n *node) receive(d *policy.Document) {
	if n.file.Version >= d.Version {
		return
	}
	n.file = d
	if n.life == 0 {
		n.joins()
		return
	}
	n.adopt(d)
}

// joins starts a node for the first time, as soon as its file has its region.
func (n *node) joins() {
	if n.life > 0 || !has(n.file, n.r.name) {
		return
	}
	err := errNobodyAnswers
	if len(n.reaches()) > 0 {
		err = n.start(true)
	}
	if err != nil {
		n.w.tell(n.r, "%s does not start: %v", n.name, err)
		n.reopen()
		n.w.in(allocator.Second, n.joins)
	}
}

// adopt has the node adopt its document, and tries again until it succeeds.
func (n *node) adopt(d *policy.Document) {
	if n.live == nil || n.file != d {
		return
	}
	n.w.fired(rowDocument)
	if err := n.live.Adopt(d); err != nil && !errors.Is(err, barrier.ErrOlder) {
		n.in(allocator.Second/4, func() { n.adopt(d) })
	}
	n.drain()
}

// strike carries out a fault of a region's store or of its clocks.
func (w *world) strike(a Act, r *region) {
	switch a.Do {
	case Flush:
		w.loses(r, a, rowStoreLost)
		r.store.flush()
	case StoreAnew:
		w.loses(r, a, rowStoreLost)
		r.store.restart()
	case Failover:
		if a.For%2 == 1 { // every other one is a replica that has all
			w.in(a.For, func() {
				w.found(a, rowStaleCopy)
				r.store.replica().promote()
				r.unconfirmed = true
			})
			return
		}
		c := w.copies(r)
		w.in(a.For, func() {
			w.loses(r, a, rowStaleCopy)
			w.promotes(r, c)
		})
	case Delete:
		w.deleteBucket(a, r)
	case StoreDown:
		r.hinders()
		r.down++
		r.store.setDown(true)
		w.found(a, rowStoreDown)
		w.in(a.For, func() {
			if r.down--; r.down == 0 {
				r.store.setDown(false)
			}
		})
	case Silence:
		at := a.Node % len(r.silent)
		r.hinders()
		r.silent[at]++
		r.store.setServers(r.servers())
		w.found(a, rowStoreDown)
		w.in(a.For, func() { r.silent[at]--; r.store.setServers(r.servers()) })
	case ReplyLost:
		r.store.loseReply()
		r.replyLost = w.now
		w.found(a, rowReplyLost)
	case ClockStep:
		r.ahead += a.Amount
		w.apart(r)
		w.found(a, rowClocks)
		w.in(a.For, func() { r.ahead -= a.Amount; w.apart(r) })
	case StoreClock:
		r.storeAhead += a.Amount
		w.apart(r)
		w.expire(r)
		w.found(a, rowClocks)
		w.in(a.For, func() { r.storeAhead -= a.Amount; w.apart(r) })
	}
}
