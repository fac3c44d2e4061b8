package store

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// session is a node's work with its region's store: how the store is divided, under which generation and on whose data
// the node opened it, and how late it has seen it to be. A Store and a Model have this in common. Safe for concurrent
// use if its tokens are.
type session struct {
	tokens    tokens
	address   Address
	shards    Shards
	now       func() time.Time         // the node's wall clock
	newSecret func() string            // returns another each time
	held      atomic.Pointer[standing] // nil: not open
	seen      map[Shard]*atomic.Int64  // the latest time that each shard's scripts answered with
	reserve   atomic.Pointer[func(now int64)]
}

// tokens runs the scripts of a store's tokens, of which each shard has one. Every error is an *Error, or says what the
// token has that cannot be.
type tokens interface {
	// look says how all shards are found, in order, and changes nothing.
	look(ctx context.Context, node string) (looks, error)
	openToken(ctx context.Context, shard Shard, c algorithms.Open) (algorithms.Opened, error)
	adoptToken(ctx context.Context, shard Shard, c algorithms.Adopt) (algorithms.Adopted, error)
	noteToken(ctx context.Context, shard Shard, c algorithms.Note) (algorithms.Noted, error)
	beatToken(ctx context.Context, shard Shard, c algorithms.Beat) (algorithms.Beaten, error)
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

// guard fills in what the caller of a script need not know; the epoch is that of the terms it calls with. A caller that
// says under which generation its call makes sense has it refused under any other.
func (s *session) guard(key string, g algorithms.Fence) algorithms.Fence {
	if g.Generation == 0 {
		g.Generation = s.standing().generation
	}
	g.Clock, g.Node = s.now().UnixMicro(), s.standing().node
	if seen := s.seen[ShardOf(key)]; seen != nil {
		g.Seen = seen.Load()
	}
	return g
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
