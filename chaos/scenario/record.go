package scenario

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/oracle"
)

// Record is all that was seen of a run, and all that it is judged by. A driver of
// its own may fill one as well.
type Record struct {
	// Began is when the load began; all times of the scenario count from it.
	Began  time.Time
	Length time.Duration
	Seed   uint64
	// Answers are all requests that were sent. A decision that no store took is of
	// unknown outcome with a sequence number, if it admitted. Buckets are called
	// as [Bucket.Name] says.
	Answers []oracle.Answer
	// Unsent counts requests that no node accepted, by region. They are no answers.
	Unsent map[string]int64
	// Shed counts requests that fell due while too many waited for an answer, and
	// Behind those that this machine was too slow to send, by region: so much less
	// was asked for than the scenario says.
	Shed, Behind map[string]int64
	Events       []Event
	Health       []Health
	Facts        Facts
	// Bounds are the printed bounds, by limit.
	Bounds map[string]Bounds
}

// Event is a step that was done. It may have ended after the load did.
type Event struct {
	Step Step
	// From and To are when it began and was done.
	From, To time.Duration
	Outcome  string
	Err      error
	// Effect is what Stage.Effect says of the step, where it is to have one.
	Effect int64
}

// longestWhy bounds what is told of an error, in bytes.
const longestWhy = 400

// Why is the error of an event on one line, with its middle left out if it is
// long: it may hold the output of a process, whose end says the most. It is empty
// if there is none.
func (e Event) Why() string {
	if e.Err == nil {
		return ""
	}
	text := strings.Join(strings.Fields(e.Err.Error()), " ")
	if len(text) > longestWhy {
		text = strings.ToValidUTF8(text[:longestWhy/2]+" ... "+text[len(text)-longestWhy/2:], "")
	}
	return text
}

// recorder fills a record. Safe for concurrent use.
type recorder struct {
	mu     sync.Mutex
	record Record
}

func (r *recorder) answer(a oracle.Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Answers = append(r.record.Answers, a)
}

func (r *recorder) unsent(region string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Unsent[region]++
}

func (r *recorder) health(h Health) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Health = append(r.record.Health, h)
}

func (r *recorder) event(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Events = append(r.record.Events, e)
}

// done returns the record in order; nothing may be added any more.
func (r *recorder) done() *Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.record.Answers, func(a, b oracle.Answer) int { return a.Seen.Compare(b.Seen) })
	slices.SortStableFunc(r.record.Events, func(a, b Event) int { return cmp.Compare(a.From, b.From) })
	return &r.record
}

// of are the answers about one bucket.
func (r *Record) of(bucket string) []oracle.Answer {
	return slices.DeleteFunc(slices.Clone(r.Answers), func(a oracle.Answer) bool { return a.Bucket != bucket })
}

// sent is when a request was, as the scenario counts.
func (r *Record) sent(a oracle.Answer) time.Duration { return a.Sent.Sub(r.Began) }

// local says whether an answer admitted without a store.
func local(a oracle.Answer) bool { return a.Outcome == oracle.Unknown && a.Sequence != 0 }

// decided says whether an answer is a decision.
func decided(a oracle.Answer) bool { return a.Outcome != oracle.Unknown || local(a) }
