package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quotad/quotad/region/memory/store"
)

// Server is how one of the servers behaves that hold a Twin's shards.
type Server struct {
	// Far is how long a message takes to it, and how long one back, if the Way lets time pass.
	Far time.Duration
	// Each is how long it takes for a call. It runs one after the other, so that calls wait for earlier
	// ones. 0: no time.
	Each time.Duration
	// Silent says that nothing reaches it, and callers wait in vain.
	Silent bool
}

// service is a server at work. Not safe for concurrent use.
type service struct {
	Server
	free time.Duration // when the calls so far are done, by Twin.elapsed
}

// SetServers has these servers hold the shards from now on: the first shard is on the first, and so on
// in turn. elapsed is a clock that never goes back. Where the answer is not there by the deadline the
// round trip times out, though its calls run unless the server is silent. The node learns no more than
// that, as from a Redis under load. Calls that wait take the new time.
func (s *Twin) SetServers(elapsed func() time.Duration, all ...Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elapsed = elapsed
	s.servers = append(s.servers, make([]service, len(all))...)[:len(all)]
	for i, to := range all {
		s.servers[i].becomes(to, elapsed())
	}
}

// becomes has a server behave so from now on.
func (s *service) becomes(to Server, now time.Duration) {
	if s.Each > 0 && s.free > now {
		s.free = now + time.Duration(float64(s.free-now)/float64(s.Each)*float64(to.Each))
	}
	s.Server = to
}

// on returns which of the servers holds a shard.
func (s *Twin) on(shard store.Shard) int {
	return max(slices.Index(s.shards, shard), 0) % len(s.servers)
}

// nameOf returns the name of the server that holds a shard.
func (s *Twin) nameOf(shard store.Shard) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.servers) == 1 {
		return inMemory
	}
	return fmt.Sprintf("%s %d", inMemory, s.on(shard)+1)
}

// serve adds calls to the server's work, and returns when that is done, from now on, and a timeout
// error if their answers come too late.
func (s *service) serve(calls int, elapsed func() time.Duration) (takes time.Duration, err error) {
	if s.Each == 0 {
		return 0, nil
	}
	now := elapsed()
	s.free = max(s.free, now) + time.Duration(calls)*s.Each
	if s.free-now > store.DefaultTimeout {
		err = context.DeadlineExceeded
	}
	return s.free - now, err
}
