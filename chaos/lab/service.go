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

// setService is Twin.SetService.
func (s *service) setService(each time.Duration, elapsed func() time.Duration) {
	if now := elapsed(); s.each > 0 && s.free > now {
		s.free = now + time.Duration(float64(s.free-now)/float64(s.each)*float64(each))
	}
	s.each, s.elapsed = each, elapsed
}

// serve adds calls to the server's work, and returns when that is done, from now on, and a timeout
// error if their answers come too late.
func (s *service) serve(calls int) (takes time.Duration, err error) {
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
