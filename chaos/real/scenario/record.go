package scenario

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
)

// Record is everything that was seen of a run, and everything that it is judged by. Another driver
// may also fill one.
type Record struct {
	// Began is when the load began; all times of the scenario count from it.
	Began  time.Time
	Length time.Duration
	Seed   uint64
	// Answers are the answers to all requests that were sent. An admission that no store decided
	// has the outcome unknown and a sequence number. Buckets have the names of [Bucket.Name].
	Answers []oracle.Answer
	// Unsent counts the requests that no node accepted, by region. They are not answers.
	Unsent map[string]int64
	// Shed counts requests that fell due while too many waited for an answer. Behind counts those
	// that this machine was too slow to send. Both are by region. So much less was asked for than
	// the scenario says.
	Shed, Behind map[string]int64
	Events       []Event
	Health       []Health
	Facts        Facts
	// Bounds are the printed bounds, by limit.
	Bounds map[string]Bounds
}

// Event is a step that was done. It may have ended after the load.
type Event struct {
	Step Step
	// From and To are when it began and when it was done.
	From, To time.Duration
	Outcome  string
	Err      error
	// Effect is the result of Stage.Effect, if the step must have an effect.
	Effect int64
}

// longestWhy is the maximum length of Why, in bytes.
const longestWhy = 400

// Why returns the error of an event in one line, "" if there is none. A long error loses its
// middle, because it may contain the output of a process, of which the end is most useful.
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

// done returns the record in order. Nothing may be added afterwards.
func (r *recorder) done() *Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.record.Answers,
		func(a, b oracle.Answer) int { return a.Seen.Compare(b.Seen) })
	slices.SortStableFunc(r.record.Events,
		func(a, b Event) int { return cmp.Compare(a.From, b.From) })
	return &r.record
}

// of returns the answers about one bucket.
func (r *Record) of(bucket string) []oracle.Answer {
	return slices.DeleteFunc(slices.Clone(r.Answers),
		func(a oracle.Answer) bool { return a.Bucket != bucket })
}

// sent returns when a request was sent, since the load began.
func (r *Record) sent(a oracle.Answer) time.Duration { return a.Sent.Sub(r.Began) }

// local reports whether an answer is an admission without a store.
func local(a oracle.Answer) bool { return a.Outcome == oracle.Unknown && a.Sequence != 0 }

// decided reports whether an answer is a decision.
func decided(a oracle.Answer) bool { return a.Outcome != oracle.Unknown || local(a) }
