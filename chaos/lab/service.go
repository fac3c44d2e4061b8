package lab

import (
	"context"
	"time"

	"github.com/quotad/quotad/region/store"
)

// service is the time that a simulated server takes for its scripts: it does one after the other, so that calls wait for
// those before them. Not safe for concurrent use.
type service struct {
	each    time.Duration        // for a call; 0: none
	elapsed func() time.Duration // a clock that never goes back
	free    time.Duration        // on it, when all that came so far is done
}

// setService has each call take so long from now on, by a clock that never goes back. A round trip that is not done within
// the deadline times out, though its calls run: a node learns only that, as from a Redis under load.
func (s *service) setService(each time.Duration, elapsed func() time.Duration) {
	s.each, s.elapsed = each, elapsed
}

// serve does some calls, and says whether their answers come too late.
func (s *service) serve(calls int) error {
	if s.each == 0 {
		return nil
	}
	now := s.elapsed()
	s.free = max(s.free, now) + time.Duration(calls)*s.each
	if s.free-now > store.DefaultTimeout {
		return context.DeadlineExceeded
	}
	return nil
}
