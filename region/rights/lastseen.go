package rights

import (
	"hash/maphash"
	"maps"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/journal"
)

// Memory bounds what a node remembers of the buckets it used. The zero value is the defaults.
type Memory struct {
	// Buckets is of how many buckets the node remembers that it used them, and until when their store has them: about 85
	// bytes each. Beyond it, further ones are not remembered: that one of them was deleted is not noticed, and after a loss
	// nobody can say that they were not used. Default DefaultBuckets.
	Buckets int
	// Uses is of how many buckets of windows over a minute it remembers how much was used: about 280 bytes more each. Beyond it,
	// those that were used least lately are left to the journal, which has them by then. Default DefaultUses.
	Uses int
}

const (
	// DefaultBuckets is the default of Memory.Buckets.
	DefaultBuckets = 2_000_000
	// DefaultUses is the default of Memory.Uses.
	DefaultUses = 500_000

	// seenParts is into how many parts the buckets are divided, each with a lock of its own. Where fewer than fewestDivided are
	// to be remembered there is one: of few the parts would not be filled alike.
	seenParts     = 64
	fewestDivided = 64 * seenParts
	// checkpointPart is the part of a region's entitlement by which use must have moved for a checkpoint to be worth an
	// fsync; what has moved less is written when it rests.
	checkpointPart = 100
)

// lastSeen is what this node remembers of each bucket: that it used it, until when the store is known to have it, and of long
// windows how much counted when it was last seen. It tells a store that a bucket which is not there was deleted, restores
// the use of a bucket that was lost, and knows of which lost buckets nothing was used. Times are the store's, held by its
// mark: a node's clock has no say in what is forgotten. Safe for concurrent use.
type lastSeen struct {
	region     string
	limits     Memory
	now        func() int64 // the latest time of the store
	surely     func() int64 // a time that every shard of it has come to
	generation atomic.Uint64
	since      atomic.Int64 // store time since which every use was remembered
	untracked  atomic.Int64 // uses of buckets for which there was no room
	told       int64        // of these, those that were warned of; WatchMemory's
	seed       maphash.Seed
	parts      []seenPart // buckets by hash
}

type seenPart struct {
	mu    sync.Mutex
	marks map[uint64]mark // by the hash of a bucket's id
	uses  uses
}

// mark is that a bucket was used. Two buckets of one hash share it, which can only have a bucket checked once more than
// needed, or stay closed that need not.
type mark struct {
	known      int64  // store time until which the bucket is known to be in the store
	until      int64  // store time after which nothing of it counts
	generation uint64 // of the store, in which it was first used
}

func newLastSeen(region string, limits Memory, now, surely func() int64) *lastSeen {
	if limits.Buckets == 0 {
		limits.Buckets = DefaultBuckets
	}
	if limits.Uses == 0 {
		limits.Uses = DefaultUses
	}
	s := &lastSeen{region: region, limits: limits, now: now, surely: surely, seed: maphash.MakeSeed(), parts: make([]seenPart, 1)}
	if min(limits.Buckets, limits.Uses) >= fewestDivided {
		s.parts = make([]seenPart, seenParts)
	}
	s.since.Store(math.MaxInt64)
	for i := range s.parts {
		s.parts[i].marks = map[uint64]mark{}
		s.parts[i].uses = newUses(s.perPart(limits.Uses))
	}
	return s
}

// perPart returns how many of so many each part may have.
func (s *lastSeen) perPart(all int) int { return (all + len(s.parts) - 1) / len(s.parts) }

func (s *lastSeen) part(id string) (*seenPart, uint64) {
	h := maphash.String(s.seed, id)
	return &s.parts[h%uint64(len(s.parts))], h
}

// begin notes that a bucket is about to be used, whatever becomes of the call, and returns the store time until which it is
// known to be in the store.
func (s *lastSeen) begin(b *exchange.Bucket) (known int64) {
	p, h := s.part(b.ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	m, was := p.marks[h]
	if was {
		return m.known
	}
	now := s.now()
	if len(p.marks) >= s.perPart(s.limits.Buckets) {
		s.untracked.Add(1)
		raise(&s.since, now)
		return 0
	}
	t := b.Terms(s.region)
	p.marks[h] = mark{until: t.Useful(algorithms.CellAt(now, t.Cell) + 1), generation: s.generation.Load()}
	return 0
}

// note takes in a state of the store, as of a store time.
func (s *lastSeen) note(b *exchange.Bucket, state algorithms.State, at int64) {
	p, h := s.part(b.ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	t := b.Terms(s.region)
	if m, was := p.marks[h]; was {
		if state.ExistsUntil > 0 {
			m.known = state.ExistsUntil
		}
		m.until = max(m.until, t.Useful(state.Cell))
		p.marks[h] = m
	}
	if b.Recovered && state.Shut <= at { // else what is shown is not what was used
		p.uses.note(b.ID, t, algorithms.Use{Cell: state.Cell, Units: state.Used, At: at})
	}
}

// usedBefore says whether this node may have used a bucket before a loss of which it heard under a generation of the store:
// under an earlier one, or under that one if it was ever shown to be there.
func (s *lastSeen) usedBefore(id string, generation uint64) bool {
	p, h := s.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	m, was := p.marks[h]
	return was && (m.generation < generation || m.known > 0)
}

// use returns what counted in a bucket when it was last seen; the zero Use: it was not, or the journal alone has it.
func (s *lastSeen) use(id string) algorithms.Use {
	p, _ := s.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.uses.all[id]; one != nil {
		return one.use
	}
	return algorithms.Use{}
}

// known returns the store time until which a bucket is known to be in the store.
func (s *lastSeen) known(id string) int64 {
	p, h := s.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marks[h].known
}

// stand notes under which generation the store stands, at a time of it. What was used before the first such time, this node
// may have used in an earlier life. Anew: another store may stand there, and nothing is
// known to be in it.
func (s *lastSeen) stand(generation uint64, now int64, anew bool) {
	if s.since.Load() == math.MaxInt64 {
		s.since.Store(now)
	}
	s.generation.Store(generation)
	if !anew {
		return
	}
	for p := range s.locked {
		for h, m := range p.marks {
			m.known = 0
			p.marks[h] = m
		}
	}
}

// locked goes through the parts, each with its lock held meanwhile.
func (s *lastSeen) locked(yield func(*seenPart) bool) {
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		more := yield(p)
		p.mu.Unlock()
		if !more {
			return
		}
	}
}

// checkpoints returns what is worth writing: use that moved far since it was written, or not at all since the last call; or
// for the last time all that moved.
func (s *lastSeen) checkpoints(generation uint64, last bool) []journal.Checkpoint {
	var all []journal.Checkpoint
	for p := range s.locked {
		all = p.uses.checkpoints(all, generation, last)
	}
	return all
}

// written notes that checkpoints are durable.
func (s *lastSeen) written(all []journal.Checkpoint) {
	for _, c := range all {
		p, _ := s.part(c.Bucket)
		p.mu.Lock()
		p.uses.written(c)
		p.mu.Unlock()
	}
}

// forget drops what counts no more in any shard of the store, by its time. To look at a million takes 30 ms, so requests
// come first after each part.
func (s *lastSeen) forget() {
	now := s.surely()
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		maps.DeleteFunc(p.marks, func(_ uint64, m mark) bool { return max(m.known, m.until) <= now })
		p.uses.forget(now)
		p.mu.Unlock()
		runtime.Gosched()
	}
}

// counts returns of how many buckets a node remembers that and how much it used them, and of how many of these the journal
// does not know it yet.
func (s *lastSeen) counts() (buckets, uses, unwritten int) {
	for p := range s.locked {
		buckets, uses, unwritten = buckets+len(p.marks), uses+len(p.uses.all), unwritten+len(p.uses.moved)
	}
	return buckets, uses, unwritten
}

// WatchMemory warns of buckets that there was no room to remember. It is called every ten seconds.
func (e *Engine) WatchMemory() {
	s := e.seen
	if all := s.untracked.Load(); all > s.told {
		e.config.Log.Warn("more buckets are used than this node remembers: that one of them is deleted goes unnoticed, and after a loss they stay closed; raise remember.buckets",
			"remember.buckets", s.limits.Buckets, "calls", all-s.told)
		s.told = all
	}
}

// raise sets a to the larger of itself and v.
func raise(a *atomic.Int64, v int64) {
	for {
		old := a.Load()
		if v <= old || a.CompareAndSwap(old, v) {
			return
		}
	}
}
