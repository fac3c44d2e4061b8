package region

import (
	"hash/maphash"
	"maps"
	"sync"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/journal"
)

const (
	// mostSeen bounds the buckets remembered; further ones are not, and count as never seen.
	mostSeen  = 100_000
	seenParts = 64
	// checkpointPart is the part of a region's entitlement by which use must have moved for a checkpoint to be worth an
	// fsync; what has moved less is written when it rests.
	checkpointPart = 100
	// rests is how long use must stand still to be written whatever it has moved, in microseconds.
	rests = 1_000_000
)

// seen is what this node last saw of each bucket: it tells a store that a bucket which is not there was deleted, and it
// restores the use of a bucket that was lost. Safe for concurrent use.
type seen struct {
	seed  maphash.Seed
	parts [seenParts]seenPart // buckets by hash, each with a lock of its own
}

type seenPart struct {
	mu    sync.Mutex
	all   map[string]*sight
	moved map[string]struct{} // ids of buckets whose use is not that of their checkpoint
}

// sight is one bucket.
type sight struct {
	bucket  *exchange.Bucket
	use     algorithms.Use
	known   int64 // store time until which it is known to be in the store
	written algorithms.Use
}

func newSeen() *seen {
	s := &seen{seed: maphash.MakeSeed()}
	for i := range s.parts {
		s.parts[i].all, s.parts[i].moved = map[string]*sight{}, map[string]struct{}{}
	}
	return s
}

func (s *seen) part(id string) *seenPart {
	return &s.parts[maphash.String(s.seed, id)%seenParts]
}

// note takes in a state of the store, as of a store time.
func (s *seen) note(b *exchange.Bucket, state algorithms.State, at int64) {
	p := s.part(b.ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.all[b.ID]
	if one == nil {
		if len(p.all) >= mostSeen/seenParts {
			return
		}
		one = &sight{}
		p.all[b.ID] = one
	}
	one.bucket = b
	if state.Known > 0 {
		one.known = state.Known
	}
	if at < one.use.At {
		return
	}
	one.use = algorithms.Use{Cell: state.Cell, Units: state.Used, At: at}
	if b.Recovered && (one.use.Cell != one.written.Cell || one.use.Units != one.written.Units) {
		p.moved[b.ID] = struct{}{}
	}
}

// known returns the store time until which a bucket is known to be in the store.
func (s *seen) known(id string) int64 {
	p := s.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.all[id]; one != nil {
		return one.known
	}
	return 0
}

// use returns what counted in a bucket when it was last seen; the zero Use: it was not.
func (s *seen) use(id string) algorithms.Use {
	p := s.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.all[id]; one != nil {
		return one.use
	}
	return algorithms.Use{}
}

// standAnew forgets what is known to be in the store, for another one may stand there.
func (s *seen) standAnew() {
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		for _, one := range p.all {
			one.known = 0
		}
		p.mu.Unlock()
	}
}

// checkpoints returns what is worth writing at a time: use that moved far, or rests.
func (s *seen) checkpoints(now int64, region string, generation uint64) []journal.Checkpoint {
	var all []journal.Checkpoint
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		for id := range p.moved {
			one := p.all[id]
			t := one.bucket.Terms(region)
			far := one.use.Cell != one.written.Cell || max(one.use.Units-one.written.Units, one.written.Units-one.use.Units)*checkpointPart > t.Entitlement
			if !far && now-one.use.At < rests {
				continue
			}
			one.written = one.use
			delete(p.moved, id)
			all = append(all, journal.Checkpoint{Bucket: id, Cell: one.use.Cell, Used: one.use.Units, At: one.use.At,
				Until: t.Weighs(one.use.Cell), Generation: generation})
		}
		p.mu.Unlock()
	}
	return all
}

// unwritten takes back that checkpoints were written: those that moved since need not be told of.
func (s *seen) unwritten(all []journal.Checkpoint) {
	for _, c := range all {
		p := s.part(c.Bucket)
		p.mu.Lock()
		if one := p.all[c.Bucket]; one != nil {
			one.written = algorithms.Use{}
			p.moved[c.Bucket] = struct{}{}
		}
		p.mu.Unlock()
	}
}

// forget drops the buckets of which nothing weighs any more at a store time.
func (s *seen) forget(now int64, region string) {
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		maps.DeleteFunc(p.all, func(id string, one *sight) bool {
			over := one.known <= now && one.bucket.Terms(region).Weighs(one.use.Cell) <= now
			if over {
				delete(p.moved, id)
			}
			return over
		})
		p.mu.Unlock()
	}
}
