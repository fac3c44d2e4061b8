package rights

import (
	"maps"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/rules"
)

// Memory bounds what a node remembers of the buckets it used. The zero value stands for the
// defaults.
type Memory struct {
	// Buckets is how many buckets the node remembers to have used, with the time until which the
	// store has each: about 85 bytes each. Further buckets are not remembered. Then the node does
	// not notice that one of them was deleted, and after a loss nobody can say that they were not
	// used. Default DefaultBuckets.
	Buckets int
	// Uses is of how many buckets with windows over a minute the node remembers how much was used:
	// about 230 bytes more each. Beyond it, the node drops buckets that were not used lately, if
	// the journal has their use. Default: a quarter of Buckets.
	Uses int
}

const (
	// DefaultBuckets is the default of Memory.Buckets.
	DefaultBuckets = 2_000_000

	// seenParts is into how many parts the buckets are divided, each with a lock of its own. If
	// fewer than fewestDivided buckets are to be remembered, there is only one part: with few
	// buckets the parts would not fill evenly.
	seenParts     = 64
	fewestDivided = 64 * seenParts
	// checkpointPart: a checkpoint is worth an fsync if use has moved by more than 1/checkpointPart
	// of the region's entitlement. Use that moved less is written when it rests.
	checkpointPart = 100
)

// lastSeen is what this node remembers of each bucket: that it used the bucket, until when the
// store is known to have it, and for long windows how much counted when the node last saw it. With
// this a node tells the store that a missing bucket was deleted, restores the use of a lost bucket,
// and knows lost buckets that were not used.
//
// Times are the store's, protected by its high-water mark: a node's clock does not decide what is
// forgotten. It is safe for concurrent use.
type lastSeen struct {
	region     string
	limits     Memory
	now        func() quantity.StoreTime // the latest time of the store
	surely     func() quantity.StoreTime // a time that every shard of the store has reached
	generation atomic.Uint64
	since      atomic.Int64 // store time since which every use was remembered
	untracked  atomic.Int64 // calls on buckets for which there was no room
	told       int64        // the part of untracked that was warned of; only WatchMemory uses it
	parts      []seenPart   // the buckets, divided by hash
}

type seenPart struct {
	mu    sync.Mutex
	marks map[uint64]mark // by the hash of a bucket's id
	uses  uses
}

// mark says that a bucket was used. Two buckets with the same hash share a mark. The worst effects
// are that a bucket is checked once more than needed, or stays closed without need.
type mark struct {
	known      quantity.StoreTime // store time until which the bucket is known to be in the store
	until      quantity.StoreTime // store time after which nothing of it counts
	generation uint64             // of the store when the bucket was first used
}

func newLastSeen(region string, limits Memory, now, surely func() quantity.StoreTime) *lastSeen {
	if limits.Buckets == 0 {
		limits.Buckets = DefaultBuckets
	}
	if limits.Uses == 0 {
		limits.Uses = max(1, limits.Buckets/4)
	}
	s := &lastSeen{region: region, limits: limits, now: now, surely: surely,
		parts: make([]seenPart, 1)}
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

// perPart returns each part's portion of a bound, rounded up.
func (s *lastSeen) perPart(all int) int { return (all + len(s.parts) - 1) / len(s.parts) }

func (s *lastSeen) part(id string) (*seenPart, uint64) {
	h := rules.Hash(id)
	return s.partOf(h), h
}

func (s *lastSeen) partOf(hash uint64) *seenPart { return &s.parts[hash%uint64(len(s.parts))] }

// begin notes that a bucket is about to be used, whatever the outcome of the call. It returns the
// store time until which the bucket is known to be in the store.
func (s *lastSeen) begin(b *exchange.Bucket) (known quantity.StoreTime) {
	return s.beginHashed(b, rules.Hash(b.ID))
}

// beginHashed is begin for a caller that knows the hash of the bucket's id.
func (s *lastSeen) beginHashed(b *exchange.Bucket, h uint64) (known quantity.StoreTime) {
	p := s.partOf(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	m, was := p.marks[h]
	if was {
		return m.known
	}
	now := s.now()
	if len(p.marks) >= s.perPart(s.limits.Buckets) {
		s.untracked.Add(1)
		raise(&s.since, int64(now))
		return 0
	}
	t := b.Terms(s.region)
	p.marks[h] = mark{until: t.Useful(t.CellAt(now) + 1),
		generation: s.generation.Load()}
	return 0
}

// note takes in a state that the store showed at a store time.
func (s *lastSeen) note(b *exchange.Bucket, state algorithms.State, at quantity.StoreTime) {
	t := b.Terms(s.region)
	s.noteHashed(b.ID, rules.Hash(b.ID), &t, state, at)
}

// noteHashed is note for a caller that knows the hash of the bucket's id.
func (s *lastSeen) noteHashed(id string, h uint64, t *algorithms.Terms, state algorithms.State,
	at quantity.StoreTime) {
	p := s.partOf(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, was := p.marks[h]; was {
		before := m
		if state.ExistsUntil > 0 {
			m.known = state.ExistsUntil
		}
		if m.until = max(m.until, t.Useful(state.Cell)); m != before {
			p.marks[h] = m
		}
	}
	// while it is shut, the state does not show what was used
	if t.Recovered && int64(state.Shut) <= int64(at) {
		p.uses.note(id, t, algorithms.Use{Cell: state.Cell, Units: state.Used, At: at})
	}
}

// usedBefore reports whether this node may have used a bucket before a loss. generation is the store's
// generation under which the node heard of the loss. The node may have if it first used the bucket
// under an earlier generation, or if the store showed it the bucket.
func (s *lastSeen) usedBefore(id string, generation uint64) bool {
	p, h := s.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	m, was := p.marks[h]
	return was && (m.generation < generation || m.known > 0)
}

// use returns what counted in a bucket when this node last saw it. It returns the zero Use if the
// node never saw the bucket, or if only the journal remembers it.
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
func (s *lastSeen) known(id string) quantity.StoreTime {
	p, h := s.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marks[h].known
}

// noteTenure notes the generation of the store, at a store time. Use before the first such time may
// be this node's own in an earlier life. With anew, the store may be another one, so no bucket is
// known to be in it.
func (s *lastSeen) noteTenure(generation uint64, now quantity.StoreTime, anew bool) {
	if s.since.Load() == math.MaxInt64 {
		s.since.Store(int64(now))
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

// checkpoints returns the uses that are worth writing: those that moved far since they were
// written, and those that moved less and have not moved since the last call. With last it returns
// all that moved. own has those of them that this node saw itself.
func (s *lastSeen) checkpoints(generation uint64, last bool) (all []journal.Checkpoint, own []copies.Use) {
	for p := range s.locked {
		all, own = p.uses.checkpoints(all, own, generation, last)
	}
	return all, own
}

// learn takes in what another node saw.
func (s *lastSeen) learn(all []copies.Use) {
	for _, u := range all {
		p, _ := s.part(u.Bucket)
		p.mu.Lock()
		p.uses.learn(u)
		p.mu.Unlock()
	}
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

// forget drops what no longer counts in any shard of the store, by the store's time. A million
// buckets take 30 ms, so it lets requests run after each part.
func (s *lastSeen) forget() {
	now := s.surely()
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		maps.DeleteFunc(p.marks,
			func(_ uint64, m mark) bool { return max(m.known, m.until) <= now })
		p.uses.forget(now)
		p.mu.Unlock()
		runtime.Gosched()
	}
}

// counts returns how many buckets the node remembers to have used, how many of them it remembers
// the use of, and how many of these uses are not in the journal yet.
func (s *lastSeen) counts() (buckets, uses, unwritten int) {
	for p := range s.locked {
		buckets, uses, unwritten = buckets+len(p.marks), uses+len(p.uses.all),
			unwritten+len(p.uses.moved)
	}
	return buckets, uses, unwritten
}

// WatchMemory warns if there were buckets that could not be remembered for want of room. It is
// called every ten seconds.
func (e *Engine) WatchMemory() {
	s := e.seen
	if all := s.untracked.Load(); all > s.told {
		e.config.Log.Warn("more buckets are used than this node remembers: that one of them is deleted goes unnoticed, and after a loss they stay closed; raise remember",
			"remember", s.limits.Buckets, "calls", all-s.told)
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
