package oracle

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// maxKept is the maximum number of violations of each kind that are kept as sentences. All are
// counted.
const maxKept = 20

// maxUnknownWindows is the maximum number of windows in which one unknown outcome may lie, because
// a fixed window charges them one by one. A request that was under way for longer was not recorded
// sensibly.
const maxUnknownWindows = 1 << 16

// Judge collects answers and judges them. Its methods are safe for concurrent use.
type Judge struct {
	limit Limit
	rule  algorithm
	slack int64 // µs
	// settle is how far behind the latest Seen the pooled oracle runs, in µs.
	settle int64

	mu         sync.Mutex
	buckets    map[string]*bucket
	nodes      map[nodeID]*sequences
	phases     []phase
	rows       map[slot]*Row
	lastShare  map[slot]time.Time // when the answer that set Row.Share was sent
	first      time.Time          // earliest Sent
	latest     time.Time          // latest Seen
	misplaced  int
	duplicates int
	unchecked  int
	dishonest  []Violation
	used       map[regionBucket]*used
	// classes counts the answers whose class was judged, exceeded those that were above it.
	classes, exceeded int
}

// nodeID names a node. Nodes of two regions may have the same name.
type nodeID struct{ region, node string }

// bucket is what is kept of one bucket.
type bucket struct {
	ceiling ceiling
	replay  *replay
}

// New returns a judge with an empty history. It panics if the limit is not valid; check limits from
// outside with Limit.Validate first.
func New(l Limit) *Judge {
	if err := l.Validate(); err != nil {
		panic(err)
	}
	if l.Settle == 0 {
		l.Settle = DefaultSettle
	}
	return &Judge{
		limit:     l,
		rule:      algorithms[l.Algorithm],
		slack:     l.ClockSlack.Microseconds(),
		settle:    l.Settle.Microseconds(),
		buckets:   map[string]*bucket{},
		nodes:     map[nodeID]*sequences{},
		phases:    []phase{{}},
		rows:      map[slot]*Row{},
		lastShare: map[slot]time.Time{},
	}
}

// Record adds one answer to the history. An answer that cannot be judged at all (no times, a cost
// out of range) fails the verdict as misplaced and enters no sum. One that is only misplaced is
// charged to the cell it claims, or, for kinds whose state does not end with a cell, at the store
// time it claims.
func (j *Judge) Record(a Answer) {
	j.mu.Lock()
	defer j.mu.Unlock()

	if why := j.absurd(a); why != "" {
		j.misplace(a, why)
		return
	}
	if j.first.IsZero() || a.Sent.Before(j.first) {
		j.first = a.Sent
	}
	if a.Seen.After(j.latest) {
		j.latest = a.Seen
	}
	b := j.bucket(a.Bucket)
	at, cell := a.At, a.Cell
	if a.Outcome == Unknown {
		at = a.Sent.UnixMicro()
		cell = j.limit.CellOf(at)
		b.ceiling.unknown(a, a.Sent.UnixMicro()-j.slack, a.Seen.UnixMicro()+j.slack)
	} else {
		j.checkPlace(a)
		j.checkSequence(a)
		j.checkClass(a)
		b.ceiling.answered(a, admitted(a))
		// A store time that cannot be true must not hold up the replay.
		at = min(max(at, a.Sent.UnixMicro()-j.slack), a.Seen.UnixMicro()+j.slack)
	}
	s := slot{phase: j.phaseOf(a.Sent), region: a.Region}
	j.count(s, a)
	b.replay.add(offered{
		at: at, cell: cell, cost: a.Cost, outcome: a.Outcome,
		slot: s, node: a.Node, sequence: a.Sequence,
	})
	b.replay.advance(j.latest.UnixMicro() - j.settle)
}

// admitted returns the units that an answer of known outcome counts towards the ceiling.
func admitted(a Answer) int64 {
	if a.Outcome == Admitted {
		return a.Cost
	}
	return 0
}

// absurd returns why an answer cannot be judged at all, or "".
func (j *Judge) absurd(a Answer) string {
	switch {
	case a.Outcome != Unknown && a.Outcome != Admitted && a.Outcome != Denied:
		return fmt.Sprintf("its %v is none that the judge knows", a.Outcome)
	case a.Cost < 0 || a.Cost > MaxCost:
		return fmt.Sprintf("its cost of %d is outside 0 to %d", a.Cost, int64(MaxCost))
	case a.Sent.IsZero() || a.Seen.IsZero():
		return "it does not say when it was sent and seen"
	case a.Seen.Before(a.Sent):
		return fmt.Sprintf("it was seen %v before it was sent", a.Sent.Sub(a.Seen))
	case a.Outcome == Unknown && (a.Seen.Sub(a.Sent)+2*j.limit.ClockSlack)/
		j.limit.Window >= maxUnknownWindows:
		return fmt.Sprintf("with an unknown outcome after %v it could lie in more than %d windows",
			a.Seen.Sub(a.Sent), maxUnknownWindows)
	}
	return ""
}

// checkPlace compares the label with the store time, and the store time with the judge's own clock.
func (j *Judge) checkPlace(a Answer) {
	if want := j.limit.CellOf(a.At); a.Cell != want {
		j.misplace(a, fmt.Sprintf("it claims cell %d, but its store time %d µs lies in cell %d",
			a.Cell, a.At, want))
		return
	}
	from, to := a.Sent.UnixMicro()-j.slack, a.Seen.UnixMicro()+j.slack
	switch {
	case a.At < from:
		j.misplace(a, fmt.Sprintf(
			"its store time %d µs is %d µs before it can have been decided (sent less a slack of %v)", a.At, distance(a.At, from), j.limit.ClockSlack))
	case a.At > to:
		j.misplace(a, fmt.Sprintf(
			"its store time %d µs is %d µs after it can have been decided (seen plus a slack of %v)", a.At, distance(to, a.At), j.limit.ClockSlack))
	}
}

// distance returns to - from for from <= to, or the largest number if that overflows: a claimed
// time may have any value.
func distance(from, to int64) int64 {
	if d := to - from; d >= 0 {
		return d
	}
	return math.MaxInt64
}

// checkSequence records the number of a decision, and checks that it is new.
func (j *Judge) checkSequence(a Answer) {
	id := nodeID{a.Region, a.Node}
	s, ok := j.nodes[id]
	if !ok {
		s = &sequences{}
		j.nodes[id] = s
	}
	switch s.add(a.Sequence) {
	case seenTwice:
		j.duplicates++
		j.accuse(a, fmt.Sprintf("node %s of region %s used sequence number %d twice", a.Node,
			a.Region, a.Sequence))
	case seenTooOld:
		j.unchecked++
	}
}

// misplace counts an answer whose label or store time cannot be true.
func (j *Judge) misplace(a Answer, why string) {
	j.misplaced++
	j.accuse(a, fmt.Sprintf("answer %d of node %s of region %s is misplaced: %s", a.Sequence,
		a.Node, a.Region, why))
}

// accuse keeps the first violations of honesty.
func (j *Judge) accuse(a Answer, text string) {
	if len(j.dishonest) < maxKept {
		j.dishonest = append(j.dishonest, Violation{Certain: true,
			Text: fmt.Sprintf("bucket %q: %s", a.Bucket, text)})
	}
}

func (j *Judge) bucket(name string) *bucket {
	b, ok := j.buckets[name]
	if !ok {
		b = &bucket{
			ceiling: j.rule.newCeiling(j.limit),
			replay:  newReplay(j.rule.newPool(j.limit), j.rule.memory(j.limit)),
		}
		j.buckets[name] = b
	}
	return b
}
