package lab

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/memory/store"
)

// Busy is a store's server that does one thing at a time and takes time for it, in virtual time. A
// reply after the deadline is an error, though the scripts have run. Safe for concurrent use.
type Busy struct {
	store.Servers
	// Script is the time of a script call on one bucket, Join that of each further request in it,
	// and Trip that of the way there and back.
	Script, Join, Trip time.Duration
	Late               atomic.Int64 // round trips whose reply came too late
	Decided            atomic.Int64 // requests

	mu   sync.Mutex
	free time.Time // when the server has done all that came so far
	down bool      // it does not answer
}

// NewBusy returns a server that needs 300 us for a script call, so that a test need not ask so
// often to overload it.
func NewBusy(s store.Servers) *Busy {
	return &Busy{Servers: s, Script: 300 * time.Microsecond, Join: 35 * time.Microsecond,
		Trip: 100 * time.Microsecond}
}

// Exec implements store.Servers.
func (s *Busy) Exec(ctx context.Context, calls []store.Call) []store.Reply {
	if s.stopped() {
		return s.unheard(time.Now(), len(calls))
	}
	s.mu.Lock()
	now := time.Now()
	if s.free.Before(now) {
		s.free = now
	}
	decides := false
	for _, c := range calls {
		if op, ok := c.Op.(*store.Op[algorithms.Items, algorithms.ItemsDecided]); ok {
			for _, item := range op.Call.Each {
				s.free = s.free.Add(s.Script*time.Duration(len(item.Buckets)) +
					s.Join*time.Duration(len(item.Costs)-1))
				s.Decided.Add(int64(len(item.Costs)))
			}
			decides = true
		}
	}
	replies := s.Servers.Exec(ctx, calls)
	takes := s.free.Sub(now) + s.Trip
	s.mu.Unlock()
	if !decides {
		return replies
	}
	if takes <= store.DefaultTimeout {
		time.Sleep(takes)
		if !s.stopped() {
			return replies
		}
	}
	return s.unheard(now, len(calls))
}

// unheard waits for the deadline of calls that were sent at a time, and returns that no reply came.
func (s *Busy) unheard(sent time.Time, calls int) []store.Reply {
	s.Late.Add(1)
	time.Sleep(time.Until(sent.Add(store.DefaultTimeout)))
	return slices.Repeat([]store.Reply{{Err: tooLate("script decide")}}, calls)
}

// Ping implements store.Servers.
func (s *Busy) Ping(ctx context.Context, shard store.Shard) error {
	if !s.stopped() {
		return s.Servers.Ping(ctx, shard)
	}
	time.Sleep(store.DefaultTimeout)
	return tooLate("ping")
}

func tooLate(what string) error {
	return store.Failed("busy", what, context.DeadlineExceeded)
}

// Stop has the server answer nothing any more, or answer again.
func (s *Busy) Stop(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *Busy) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}
