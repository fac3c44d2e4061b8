package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// ErrUnknownStore says that this node has not opened the store, or that another has opened it anew
// or put a newer document in force there.
var ErrUnknownStore = errors.New("the store is not open under this node's generation")

// Refused is a call that the store answered with a status that is not OK: its script has changed no
// use and no row.
type Refused struct {
	Call   string // name of the script
	Status algorithms.Status
}

// LostBucket is a Refused because the store has lost a bucket, which must be restored first.
type LostBucket struct {
	Refused
	// of the bucket in the call; 0 for settling, which does not say it
	Place      int
	LostAt     quantity.StoreTime // store time of the loss
	AnsweredAt quantity.StoreTime // store time of the answer
}

// whyRefused says for each other status why a call was not done, and what happens next.
var whyRefused = map[algorithms.Status]struct{ why, next string }{
	algorithms.StatusUnknown: {ErrUnknownStore.Error(),
		"the node opens it again by itself: try again in a moment"},
	algorithms.StatusClock: {"its clock and the node's are more than an hour apart",
		"set both by NTP, then try again"},
	algorithms.StatusFinished: {"the cell is neither the current one nor the next, or too far ahead",
		"the exchange goes on with those"},
	algorithms.StatusFenced: {"the peer wrote its rows under a generation that is over",
		"the peer is asked again, under its new one"},
	algorithms.StatusImplausible: {"an amount is out of range, or more than there can be",
		"nothing of it counts; a mistake in quotad, here or at the peer: report it"},
	algorithms.StatusRecovering: {"the cell may have been spent before data was lost",
		"the exchange goes on with the next cell"},
	algorithms.StatusEarly: {"the peer gave units up later in the cell than it is here",
		"the store is told again when it is as late"},
	algorithms.StatusCalendar: {"its time is in a day, week, month or year that the call did not name",
		"the node knows its time now: try again"},
	algorithms.StatusCrowded: {"the bucket has rows with as many peers, or of as many nodes, as it can hold",
		"it takes others when the rows' cells are over"},
}

func (e *Refused) Error() string {
	said, known := whyRefused[e.Status]
	if !known {
		said.why = e.Status.String()
		said.next = "another program answers for quotad: look whose Redis it is"
	}
	return fmt.Sprintf("script %s: not done: %s; %s", e.Call, said.why, said.next)
}

// Is says that an answer of an unknown store is ErrUnknownStore.
func (e *Refused) Is(target error) bool {
	return target == ErrUnknownStore && e.Status == algorithms.StatusUnknown
}

func (e *LostBucket) Error() string {
	return fmt.Sprintf("script %s: not done: the store lost a bucket of the call at %s; "+
		"peers and other nodes are asked what they know of it: try again in a moment",
		e.Call, time.UnixMicro(int64(e.LostAt)).UTC().Format(time.RFC3339))
}

func (e *LostBucket) Unwrap() error { return &e.Refused }

// refused returns the error of a call that the store answered with head; nil with StatusOK.
func refused(script algorithms.Script, head algorithms.Head) error {
	if head.Status == algorithms.StatusOK {
		return nil
	}
	why := Refused{Call: script.Name, Status: head.Status}
	if head.Status == algorithms.StatusLost {
		return &LostBucket{Refused: why, Place: head.Lost, LostAt: head.LostAt,
			AnsweredAt: head.Now}
	}
	return &why
}

// Answered reports whether the store answered a call that ended with err: err is nil or a *Refused.
func Answered(err error) bool {
	if err == nil {
		return true
	}
	_, refused := errors.AsType[*Refused](err)
	return refused
}
