package lab

import (
	"context"
	"time"

	"github.com/quotad/quotad/region/memory/store"
)

// service simulates the time that a server takes for its scripts. The server runs one script after
// the other, so that calls wait for earlier ones. Not safe for concurrent use.
type service struct {
	each    time.Duration        // time for a call; 0: none
	elapsed func() time.Duration // a clock that never goes back
	free    time.Duration        // the time by that clock when the calls so far are done
}

// serve adds calls to the server's work, and returns a timeout error if their answers come too
// late.
func (s *service) serve(calls int) error {
	if s.each == 0 {
		return 0, nil
	}
	now := s.elapsed()
	s.free = max(s.free, now) + time.Duration(calls)*s.each
	if s.free-now > store.DefaultTimeout {
		err = context.DeadlineExceeded
	}
	return s.free - now, err
}
