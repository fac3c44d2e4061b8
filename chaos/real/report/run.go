// Package report writes one self-contained HTML page about a rehearsal: what was done to a
// deployment, what the deployment admitted meanwhile against its limits, and whether that was as
// expected.
//
// The page needs no network, no script and no other file, so it can be mailed, archived with an
// incident, and printed. It knows nothing of quotad: a driver fills a [Run] with plain data and
// calls [Write]. [Scatter] is a single chart, as an SVG file. All names and texts are escaped. Characters that would be invisible, or would
// change the direction of writing, are spelled out.
//
// All times of a Run are counted from Run.Began. All amounts are in units of the limit that they
// belong to.
package report

import "time"

// Run is everything that the page says about one rehearsal. Any part may be empty. The page then
// leaves it out, or says that nothing was recorded.
type Run struct {
	// Title names the rehearsal. About says in a sentence or two what it is for and what should
	// happen.
	Title, About string
	// Command is the command line that runs it again.
	Command string
	// Began is when the recording began; the page shows it in UTC.
	Began time.Time
	// Length is how long the recording lasted. It is the right end of every time axis.
	Length time.Duration
	// OK reports whether every expectation was met. Verdict says it in one sentence.
	OK      bool
	Verdict string
	// Seed is the seed of the run's random choices.
	Seed uint64
	// Version is that of the quotad under test.
	Version string
	// Regions are the names of the regions. Every list "per region" below is in this order. In a
	// shorter list the missing values are zero.
	Regions []string
	// Limits holds one entry for each bucket that was watched.
	Limits []Limit
	// Bands are the faults, with their times.
	Bands []Band
	// Steps are what was done, in the order of time. If there are none, the page lists the bands
	// instead.
	Steps []Step
	// Expectations are in the order in which they were stated.
	Expectations []Expectation
	// Notes are sentences for the reader, such as what was not judged.
	Notes []string
	// Facts describe the deployment and the machine.
	Facts []Fact
}

// Limit is the record of one limit and key.
type Limit struct {
	// Name is the limit's name. Key says which of its buckets this is.
	Name, Key string
	// Algorithm is the limit's kind by its policy name, such as "fixed_window".
	Algorithm string
	// Units is the limit for each window. Burst is the size of a bucket or queue, 0 for the window
	// algorithms.
	Units, Burst int64
	Window       time.Duration
	// Slots cover the run in order, without gaps. About one a second is a good number. Of fixed
	// windows of a second each has what was admitted in one window, by the label of the decisions.
	Slots []Slot
	// Cells are the cells by which the ceiling is judged, in the order of time. For a fixed window
	// these are the windows.
	Cells []Cell
	// Shares is what the regions claimed to hold, in the order of time.
	Shares []Share
	// Max is the most that any cell came to, without requests that got no answer.
	Max int64
	// Excess is by how much Max exceeds the ceiling, at least 0.
	Excess int64
	// Allowed is the printed bound: the most by which the faults of this run may have exceeded the
	// ceiling. If 0, the ceiling holds exactly.
	Allowed int64
	// Allowance says in a sentence where Allowed comes from; "" if it is 0.
	Allowance string
	// Pooled is what one limiter of the whole limit would have admitted of the same requests.
	// FalseDenials is the part of it that was lost. If both are 0, they are not known.
	Pooled, FalseDenials int64
}

// Slot is a stretch of time with the requests sent in it. Its lists are per region.
type Slot struct {
	At, Length time.Duration
	// Offered = Admitted + Denied + Unknown. Unknown are requests that got no answer.
	Offered, Admitted, Denied, Unknown []int64
}

// Cell is a labelled slice of time that the ceiling is judged by.
type Cell struct {
	// From may be negative, and From + Length may be after the run's end: a window may be longer
	// than the run.
	From, Length time.Duration
	// Admitted is per region, by the label of the decisions.
	Admitted []int64
	// Unknown is what all regions may also have admitted in the cell.
	Unknown int64
	// Level is the quantity that the ceiling bounds, at the worst instant of the cell, if it is not
	// the sum of Admitted and Unknown: the estimate of a sliding counter, the sum of a sliding
	// log's worst interval, the tokens missing from a bucket, or the backlog of a queue. It counts
	// unknown outcomes as admitted. For a fixed window it is 0.
	Level int64
}

// Share is what one region claimed to hold at an instant. It is valid until the region's next
// claim.
type Share struct {
	At time.Duration
	// Region is an index of Run.Regions.
	Region int
	// Share is the region's rights in the cell, and Entitlement its fixed split of the limit.
	Share, Entitlement int64
	// Degraded says that the region was out of touch with another.
	Degraded bool
}

// Band is a time during which something was broken on purpose. If To = From it is an instant, such
// as a kill.
type Band struct {
	From, To time.Duration
	// Name is a few words, drawn into the charts. About is a sentence.
	Name, About string
}

// Step is something done to the deployment.
type Step struct {
	At time.Duration
	// Text says what was done. Outcome describes the result, and may be empty.
	Text, Outcome string
}

// Expectation is one expectation of the run.
type Expectation struct {
	// Text says what was expected. Want and Got are the expected and the measured figure, with
	// their units.
	Text, Want, Got string
	// OK reports whether it was met.
	OK bool
}

// Fact is a line about the deployment or the machine.
type Fact struct {
	Name, Value string
}
