// Package report writes one self-contained HTML page about a rehearsal: what was
// done to a deployment, what it admitted against its limits meanwhile, and
// whether that was what had been asked for.
//
// The page needs no network, no script and no other file, so it can be mailed,
// kept with an incident and printed. It knows nothing of quotad: a driver fills a
// [Run] with plain data and calls [Write]. Whatever names and texts it holds is
// escaped, and characters that would be invisible or would turn the direction of
// writing are spelled out.
//
// All times of a Run are counted from Run.Began. All amounts are units of the
// limit that they belong to.
package report

import "time"

// Run is everything that the page says about one rehearsal. Every part may be
// empty; the page then leaves it out, or says that nothing was recorded.
type Run struct {
	// Title names the rehearsal, and About says in a sentence or two what it is
	// for and what should happen.
	Title, About string
	// Command is the command line that runs it again.
	Command string
	// Began is when the recording began; the page shows it in UTC.
	Began time.Time
	// Length is how long the recording lasted: the right end of every time axis.
	Length time.Duration
	// OK says whether every expectation was met, and Verdict says it in one
	// sentence.
	OK      bool
	Verdict string
	// Seed is that of the run's random choices.
	Seed uint64
	// Version is that of the quotad under test.
	Version string
	// Regions holds the names of the regions. Every list "per region" below is in
	// this order; one that is shorter counts as zero for the rest.
	Regions []string
	// Limits holds one entry for each bucket that was watched.
	Limits []Limit
	// Bands are the faults, as stretches of time.
	Bands []Band
	// Steps are what was done, in the order of time. If there are none, the bands
	// stand in for them.
	Steps []Step
	// Expectations are in the order in which they were stated.
	Expectations []Expectation
	// Notes are sentences that a reader should know, such as what was not judged.
	Notes []string
	// Facts describe the deployment and the machine.
	Facts []Fact
}

// Limit is what was recorded of one limit and key.
type Limit struct {
	// Name is the limit's, Key says which of its buckets this is.
	Name, Key string
	// Algorithm is the limit's kind by its policy name, such as "fixed_window".
	Algorithm string
	// Units is the limit, and Window the time it is for. Burst is the size of a
	// bucket or queue, 0 for the windows.
	Units, Burst int64
	Window       time.Duration
	// Slots are stretches of time in order, all of them together the run; about
	// one a second is good.
	Slots []Slot
	// Cells are what the ceiling is judged by, in the order of time. For a fixed
	// window these are the windows.
	Cells []Cell
	// Shares is what the regions claimed to hold, in the order of time.
	Shares []Share
	// Max is the most that any cell came to, without what got no answer.
	Max int64
	// Excess is by how much that is above the ceiling, at least 0.
	Excess int64
	// Allowed is the printed bound: the most that the faults of this run may have
	// put above the ceiling. 0 means that the ceiling holds exactly.
	Allowed int64
	// Allowance says in a sentence where Allowed comes from; "" if it is 0.
	Allowance string
	// Pooled is what one limiter of the whole limit would have admitted of the
	// same requests, and FalseDenials what of it was lost. Both 0: not known.
	Pooled, FalseDenials int64
}

// Slot is a stretch of time and what was sent in it; the lists are per region.
type Slot struct {
	At, Length time.Duration
	// Offered = Admitted + Denied + Unknown. Unknown is what got no answer.
	Offered, Admitted, Denied, Unknown []int64
}

// Cell is a labelled slice of time that the ceiling is judged by.
type Cell struct {
	// From may be negative, and From + Length after the run's end: a window may
	// be longer than the run.
	From, Length time.Duration
	// Admitted is per region, by the label of the decisions.
	Admitted []int64
	// Unknown is what may also have been admitted in the cell, by all regions.
	Unknown int64
	// Level is what was weighed against the ceiling at the worst instant of the
	// cell, where that is not the sum of Admitted and Unknown: the estimate of a
	// sliding counter, the sum of a sliding log's worst interval, the tokens
	// missing from a bucket, the backlog of a queue. It counts unknown outcomes
	// as admitted. For a fixed window it is 0.
	Level int64
}

// Share is what one region claimed to hold at an instant. It holds until the
// region's next.
type Share struct {
	At time.Duration
	// Region is an index of Run.Regions.
	Region int
	// Share and Entitlement are the region's rights in the cell, and its fixed
	// split of the limit.
	Share, Entitlement int64
	// Degraded says that the region was out of touch with another.
	Degraded bool
}

// Band is a stretch of time in which something was broken on purpose. To = From
// is an instant, such as a kill.
type Band struct {
	From, To time.Duration
	// Name is a few words, drawn into the charts; About is a sentence.
	Name, About string
}

// Step is something done to the deployment.
type Step struct {
	At time.Duration
	// Text says what was done, Outcome what came of it, if anything is to be said.
	Text, Outcome string
}

// Expectation is one thing that was asked of the run.
type Expectation struct {
	// Text says what, Want and Got give the figure asked for and the one
	// measured, with their units.
	Text, Want, Got string
	// OK says whether it was met.
	OK bool
}

// Fact is a line about the deployment or the machine.
type Fact struct {
	Name, Value string
}
