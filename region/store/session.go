package store

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// session is a node's work with its region's store: how the store is divided, under which generation and on whose data
// the node opened it, and how late it has seen it to be. Safe for concurrent use if its servers are.
type session struct {
	servers   Servers
	address   Address
	shards    Shards
	now       func() time.Time         // the node's wall clock
	newSecret func() string            // returns another each time
	timeout   time.Duration            // bounds each round trip
	held      atomic.Pointer[standing] // nil: not open
	seen      map[Shard]*atomic.Int64  // the latest time that each shard's scripts answered with
	reserve   atomic.Pointer[func(now int64)]
}

// newSeen returns that no shard has shown a time yet.
func newSeen(shards Shards) map[Shard]*atomic.Int64 {
	seen := make(map[Shard]*atomic.Int64, len(shards))
	for _, shard := range shards {
		seen[shard] = &atomic.Int64{}
	}
	return seen
}

// ErrNotOpen says that a store has not been opened by this node, or has been opened anew by another.
var ErrNotOpen = errors.New("the store is not open under this node's generation")

// Shards returns how the store is divided: all keys of a call must be in one shard.
func (s *session) Shards() Shards { return s.shards }

// Shard returns the shard that all keys of an entity are in.
func (s *session) Shard(entity string) Shard { return s.shards.Of(entity) }

// Generation returns the generation that scripts run under; 0 before Open.
func (s *session) Generation() uint64 { return s.standing().generation }

// Begun returns the store time at which a shard's generation began, not before any that the shard had shown; 0
// before Open.
func (s *session) Begun(shard Shard) int64 { return s.standing().begun[shard] }

// LostAt returns the store time at which a shard last lost data; 0: never that it knows.
func (s *session) LostAt(shard Shard) int64 { return s.standing().lostAt[shard] }

// Secret returns what seals the receipts of this generation, the same for all nodes of the region; empty before Open.
func (s *session) Secret() string { return s.standing().secret }

func (s *session) standing() *standing {
	if held := s.held.Load(); held != nil {
		return held
	}
	return &notOpen
}

// notOpen is what is known of a store that was not opened: nothing.
var notOpen standing

// fence fills in what the caller of a script need not know; the epoch is that of the terms it calls with. A caller that
// says under which generation its call makes sense has it refused under any other.
func (s *session) fence(shard Shard, held *standing, f algorithms.Fence) algorithms.Fence {
	if f.Generation == 0 {
		f.Generation = held.generation
	}
	f.Clock, f.Node = s.now().UnixMicro(), held.node
	if seen := s.seen[shard]; seen != nil {
		f.Seen = seen.Load()
	}
	return f
}

// saw notes a time of a shard. A loss of its data is then not taken to be earlier, and an older copy of the shard is
// noticed by it.
func (s *session) saw(shard Shard, now int64) {
	seen := s.seen[shard]
	for seen != nil {
		before := seen.Load()
		if now <= before {
			return
		}
		if seen.CompareAndSwap(before, now) {
			break
		}
	}
	if reserve := s.reserve.Load(); reserve != nil {
		(*reserve)(now)
	}
}

// Latest returns the latest time that any shard's script answered with; 0: none has. It never goes back.
func (s *session) Latest() (at int64) {
	for _, seen := range s.seen {
		at = max(at, seen.Load())
	}
	return at
}

// Surely returns a time that every shard has shown; 0: one has not answered yet.
func (s *session) Surely() int64 {
	at := int64(math.MaxInt64)
	for _, seen := range s.seen {
		at = min(at, seen.Load())
	}
	return at
}

// atOnce is how many shards each works on at a time, less than a pool of connections has.
const atOnce = 4

// each runs f for all shards, some at a time, and returns the error of the first that has one: they mostly fail alike.
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
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
