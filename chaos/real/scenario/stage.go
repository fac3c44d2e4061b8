package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
)

// Stage is a deployment on which a scenario is played. Its methods are safe for concurrent use.
type Stage interface {
	// Can returns the reason why a step cannot be done here, or nil. It is called for every step
	// before anything is done.
	Can(Step) error
	// Do does a step, and returns when it is done or ctx ends. outcome describes the result, and
	// may be empty. It is never called for the word load.
	Do(ctx context.Context, s Step) (outcome string, err error)
	// Ask sends a request to a node of a region, to the nodes in turn by turn, or to an Envoy, and
	// returns what its caller saw of it. It returns false if the request was never sent.
	Ask(ctx context.Context, region string, turn uint64, q Question) (oracle.Answer, bool)
	// Watch calls note for every change of a node's readiness, and for every end of a node that no
	// step caused, until ctx ends.
	Watch(ctx context.Context, note func(Health))
	// Effect returns how many packets and pieces of streams a step with the word cut, flap, lose or
	// delay has lost, stalled or delayed since it was done, as far as the stage knows. It is called
	// at the end.
	Effect(Step) int64
	// Facts returns facts about the deployment, for a report. It may be called only at the end.
	Facts() Facts
}

// ErrNotStarted says that a stage cannot do a step because the step concerns something that the
// stage did not start.
var ErrNotStarted = errors.New("not possible against a deployment that was not started here")

// Question is a request for a decision, and the limit that it is judged by.
type Question struct {
	Domain      string
	Descriptors map[string]string
	Cost        int64
	// Envoys are those of the region that decide it, in turn; empty: its nodes do.
	Envoys []int
	// Bucket is its name in the record, and Limit the limit that the bucket is judged by.
	Bucket string
	Limit  oracle.Limit
}

// Health is the state of a node as seen from outside.
type Health struct {
	At     time.Time
	Region string
	Node   int // from 1
	// Ready says that the node is ready for requests.
	Ready bool
	// Ended says that its process ended by itself. Why is the last line of its output.
	Ended bool
	Why   string
}

// Facts describes a deployment.
type Facts struct {
	Text   [][2]string // name and value
	Envoys []EnvoyFacts
}

// EnvoyFacts is what an Envoy was told.
type EnvoyFacts struct {
	Region string
	Envoy  int // from 1
	// Assigned counts assignments that were not the same as the one before.
	Assigned int
	Faults   []string // what it was told that Envoy does not understand
}
