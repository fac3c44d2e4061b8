package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/quotad/quotad/chaos/oracle"
)

// Stage is a deployment that a scenario is played on. Its methods are safe for
// concurrent use.
type Stage interface {
	// Can says why a step cannot be done here, or nil. It is asked of every step
	// before anything is done.
	Can(Step) error
	// Do does a step, and returns when it is done or ctx ends. outcome says what
	// came of it, and may be empty. It is never called with the word load.
	Do(ctx context.Context, s Step) (outcome string, err error)
	// Ask sends a request to a node of a region, to each in turn as turn counts,
	// and returns what its caller saw of it. It is false if the request was never
	// sent.
	Ask(ctx context.Context, region string, turn uint64, q Question) (oracle.Answer, bool)
	// Watch tells of every change in whether a node may be sent requests, and of
	// every end of a node that no step asked for, until ctx ends.
	Watch(ctx context.Context, note func(Health))
	// Effect is how many packets and pieces of streams a step of the words cut,
	// flap, lose or delay has lost, held up or slowed down since it was done, as far
	// as the stage can tell. It is asked for at the end.
	Effect(Step) int64
	// Facts describe the deployment, for a report. They may be asked for at the
	// end.
	Facts() Facts
}

// ErrNotStarted says that a stage cannot do a step because it started nothing of
// what the step is about.
var ErrNotStarted = errors.New("not possible against a deployment that was not started here")

// Question is a request to be decided, and what it is judged by.
type Question struct {
	Domain      string
	Descriptors map[string]string
	Cost        int64
	// Bucket is its name in the record, and Limit what the bucket is held against.
	Bucket string
	Limit  oracle.Limit
}

// Health is what is seen of a node from outside.
type Health struct {
	At     time.Time
	Region string
	Node   int // from 1
	// Ready says that the node may be sent requests.
	Ready bool
	// Ended says that its process ended by itself; Why is the last line of its output.
	Ended bool
	Why   string
}

// Facts describe a stage.
type Facts struct {
	Text [][2]string // name and value
}
