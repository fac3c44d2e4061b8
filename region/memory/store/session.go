package store

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// session is a node's work with its region's store: how the store is divided, under which
// generation and on whose data the node opened it, and the latest time that the node has seen it
// show. Safe for concurrent use if its servers are.
type session struct {
	servers   Servers
	address   Address
	shards    Shards
	now       func() time.Time         // the node's wall clock
	newSecret func() string            // returns a new secret each time
	timeout   time.Duration            // bounds each round trip
	opened    atomic.Pointer[identity] // nil: not open
	seen      map[Shard]*atomic.Int64  // the latest time that each shard's scripts answered with
	reserve   atomic.Pointer[func(now quantity.StoreTime)]
	named     atomic.Pointer[map[string]quantity.StoreTime] // see Named
	withheld  atomic.Bool                                   // see Withhold
	pledges   pledges                                       // see Confirm
	retired   atomic.Uint64                                 // no answer under this generation or an earlier one counts, see Confirm
}

// newSeen returns a zero time for each shard: none has shown a time yet.
func newSeen(shards Shards) map[Shard]*atomic.Int64 {
	seen := make(map[Shard]*atomic.Int64, len(shards))
	for _, shard := range shards {
		seen[shard] = &atomic.Int64{}
	}
	return seen
}

// Shards returns the store's shards. All keys of a call must be in one shard.
func (s *session) Shards() Shards { return s.shards }

// Shard returns the shard that holds all keys of an entity.
func (s *session) Shard(entity string) Shard { return s.shards.Of(entity) }

// Generation returns the generation that scripts run under; 0 before Open.
func (s *session) Generation() uint64 { return s.identity().generation }

// Origin returns which store was opened; zero before Open.
func (s *session) Origin() Origin { return s.identity().origin }

// Withhold sets whether scripts are kept from the store. While they are, each guarded call ends at
// once, as if the store did not know this node. Open works as usual.
func (s *session) Withhold(on bool) { s.withheld.Store(on) }

// Begun returns the store time at which a shard's generation began. It is not before any time that
// the shard had shown; 0 before Open.
func (s *session) Begun(shard Shard) quantity.StoreTime { return s.identity().begun[shard] }

// LostAt returns the store time at which a shard last lost data; 0: never that it knows.
func (s *session) LostAt(shard Shard) quantity.StoreTime { return s.identity().lostAt[shard] }

// Lost returns the generation that scripts run under, and the store time at which any shard last lost data
// before; 0: none did that it knows.
func (s *session) Lost() (generation uint64, at quantity.StoreTime) {
	id := s.identity()
	for _, lost := range id.lostAt {
		at = max(at, lost)
	}
	return id.generation, at
}

// Secret returns the secret that seals the receipts of this generation, the same for all nodes of
// the region; empty before Open.
func (s *session) Secret() string { return s.identity().secret }

func (s *session) identity() *identity {
	if id := s.opened.Load(); id != nil {
		return id
	}
	return &notOpen
}

// notOpen is the standing of a store that was not opened.
var notOpen identity

// fence fills in a call's fence, except for the epoch, which belongs to the terms of the call. If
// the caller names a generation, the call is refused under any other.
func (s *session) fence(shard Shard, id *identity, f algorithms.Fence) algorithms.Fence {
	if f.Generation == 0 {
		f.Generation = id.generation
	}
	f.Clock, f.Node = quantity.StoreTime(s.now().UnixMicro()), id.node
	if seen := s.seen[shard]; seen != nil {
		f.Seen = quantity.StoreTime(seen.Load())
	}
	return f
}

// saw notes a time that a shard has shown. A later loss of the shard's data is then not dated
// before that time, and a copy of the shard that does not know the time is recognised as older.
func (s *session) saw(shard Shard, now quantity.StoreTime) {
	seen := s.seen[shard]
	for seen != nil {
		before := quantity.StoreTime(seen.Load())
		if now <= before {
			return
		}
		if seen.CompareAndSwap(int64(before), int64(now)) {
			break
		}
	}
	if reserve := s.reserve.Load(); reserve != nil {
		(*reserve)(now)
	}
}

// Latest returns the latest time that any shard's script answered with; 0: none has. It never goes
// back.
func (s *session) Latest() (at quantity.StoreTime) {
	for _, seen := range s.seen {
		at = max(at, quantity.StoreTime(seen.Load()))
	}
	return at
}

// Seen returns the latest time that each shard answered with, in order of the shards; 0: it has not
// answered yet.
func (s *session) Seen() []quantity.StoreTime {
	all := make([]quantity.StoreTime, len(s.shards))
	for i, shard := range s.shards {
		all[i] = quantity.StoreTime(s.seen[shard].Load())
	}
	return all
}

// Surely returns a time that every shard has shown; 0: some shard has not answered yet.
func (s *session) Surely() quantity.StoreTime {
	at := quantity.StoreTime(math.MaxInt64)
	for _, seen := range s.seen {
		at = min(at, quantity.StoreTime(seen.Load()))
	}
	return at
}

// atOnce is how many shards each works on at a time: fewer than a connection pool has connections.
const atOnce = 4

// each runs f for all shards, atOnce at a time, and returns the first shard's error, in order.
// Mostly all shards fail alike.
func (s *session) each(f func(i int, shard Shard) error) error {
	if len(s.shards) == 1 {
		return f(0, s.shards[0])
	}
	errs := make([]error, len(s.shards))
	var all sync.WaitGroup
	for first := range min(atOnce, len(s.shards)) {
		all.Go(func() {
			for i := first; i < len(s.shards); i += atOnce {
				errs[i] = f(i, s.shards[i])
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}
