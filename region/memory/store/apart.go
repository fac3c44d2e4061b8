package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// ClockApart is the kind of the refusals of a store whose clock is further than
// algorithms.MaxClockStep from the node's. The Redis itself refuses nothing.
const ClockApart = "CLOCK"

const nextClock = "set both clocks by NTP"

// ClockRefusal returns the refusal by which a call ended, if the clocks were the reason; else nil.
func ClockRefusal(err error) *Error {
	if r, is := errors.AsType[*Refused](err); is && r.Status == algorithms.StatusClock {
		return &Error{Call: r.Call, Kind: ClockApart, Next: nextClock, Err: err}
	}
	return nil
}

// ClocksAgree returns a refusal if a server's clock is too far from the node's, so that no call can
// be done there. The refusal says how far the clocks are apart.
func (s *session) ClocksAgree(ctx context.Context) error {
	all, err := s.look(ctx, "")
	if err != nil {
		return err
	}
	for _, l := range all {
		if l.tooFar() {
			said := fmt.Sprintf("its clock is %v %s this node's", max(l.apart, -l.apart).Round(time.Second),
				map[bool]string{true: "ahead of", false: "behind"}[l.apart > 0])
			return &Error{Server: l.at, Call: "look at its clock", Kind: ClockApart,
				Next: said + ": " + nextClock, Err: errors.New(said)}
		}
	}
	return nil
}

// tooFar reports whether a server's clock is too far from the node's.
func (l *look) tooFar() bool {
	return max(l.apart, -l.apart).Microseconds() > algorithms.MaxClockStep
}
