package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
)

// Ceiling is what the cells of one bucket admitted at most.
type Ceiling struct {
	Verdict oracle.Verdict
	// Certain is the most that a cell admitted for certain: without requests that got no answer,
	// and without those that were admitted without a store so near the edge of a window that nobody
	// knows which of the two they belong to. Cells is the number of cells.
	Certain int64
	Cells   int
	// Unanswered is the number of units of requests without an answer.
	Unanswered int64
	// Local are the regions that admitted without a store.
	Local []string
}

// Ceiling judges one bucket of a record.
func (s *Scenario) Ceiling(r *Record, b Bucket) (c Ceiling) {
	limit := b.judged()
	judge, certain := oracle.New(limit), oracle.New(limit)
	alone := map[string]bool{}
	for _, a := range r.of(b.Name()) {
		judge.Record(a)
		if decided(a) && !(local(a) && straddles(limit, a)) {
			certain.Record(a)
		}
		switch {
		case local(a):
			alone[a.Region] = true
		case !decided(a):
			c.Unanswered += a.Cost
		}
	}
	for _, region := range s.regionNames() {
		if alone[region] {
			c.Local = append(c.Local, region)
		}
	}
	v := certain.Verdict()
	c.Verdict, c.Certain, c.Cells = judge.Verdict(), v.MaxAdmitted, v.CellsChecked
	return c
}

// straddles says that the windows in which an answer may have been decided are several.
func straddles(limit oracle.Limit, a oracle.Answer) bool {
	return limit.CellOf(a.Sent.Add(-clockSlack).UnixMicro()) !=
		limit.CellOf(a.Seen.Add(clockSlack).UnixMicro())
}

// Allowed returns by how much the ceiling may be exceeded: the bounds printed for the mishaps of an
// expectation, and for decisions without a store if there were any. why explains the number.
func (s *Scenario) Allowed(r *Record, b Bucket, c Ceiling, despite []Mishap) (units int64,
	why string, err error) {
	mishaps := append([]Mishap(nil), despite...)
	for _, region := range c.Local {
		alone := Mishap{Cause: "local", When: "k of n nodes cut off, here all of them",
			Region: region}
		known := false
		for _, m := range despite {
			known = known || m == alone
		}
		if !known {
			mishaps = append(mishaps, alone)
		}
	}
	var terms []string
	for _, m := range mishaps {
		most, err := r.Bounds[b.Limit].of(m)
		if err != nil {
			return 0, "", err
		}
		units += most
		terms = append(terms, fmt.Sprintf("%d for %s in %s", most, m, m.Region))
	}
	return units, strings.Join(terms, ", "), nil
}

// ceiling judges by what is certain. Requests without an answer are reported, but they excuse
// nothing.
func (s *Scenario) ceiling(r *Record, e Expectation) Result {
	out := Result{Text: "nothing is admitted above the limit", OK: true}
	if e.Limit != "" {
		out.Text = "nothing is admitted above limit " + e.Limit
	}
	var want, got []string
	for _, b := range e.buckets(s.Watched()) {
		c := s.Ceiling(r, b)
		allowed, why, err := s.Allowed(r, b, c, e.Despite)
		if err != nil {
			return Result{Text: out.Text, Got: err.Error()}
		}
		allowed += e.Above
		v := c.Verdict
		if c.Cells == 0 || v.Misplaced+v.Duplicates > 0 || v.MaxKnown > v.Limit+allowed ||
			c.Certain > v.Limit+allowed {
			out.OK = false
		}
		most := fmt.Sprintf("%s: at most %d", b.Name(), v.Limit+allowed)
		if why != "" {
			most += " (" + why + ")"
		}
		want = append(want, most)
		got = append(got, tell(b, c))
	}
	out.Want, out.Got = strings.Join(want, "; "), strings.Join(got, "; ")
	return out
}

// tell describes the ceiling of a bucket.
func tell(b Bucket, c Ceiling) string {
	v := c.Verdict
	text := fmt.Sprintf("%s: %d of %d in %d cells", b.Name(), v.MaxKnown, v.Limit, c.Cells)
	if c.Certain > v.MaxKnown {
		text += fmt.Sprintf(", %d for certain with what was admitted without a store", c.Certain)
	}
	if c.Unanswered > 0 {
		text += fmt.Sprintf(", %d if all without an answer was admitted (%d units in the run)",
			v.MaxAdmitted, c.Unanswered)
	}
	if v.Misplaced+v.Duplicates > 0 {
		text += fmt.Sprintf(", %d answers not believable: %s", v.Misplaced+v.Duplicates,
			v.Violations[len(v.Violations)-1])
	}
	return text
}

// admitted compares what was admitted with one limiter for all regions.
func (s *Scenario) admitted(r *Record, e Expectation) Result {
	b := e.buckets(s.Watched())[0]
	out := Result{Text: "of what one limiter for all regions admits, this is admitted" +
		e.span(s.Duration), Want: fmt.Sprintf("at least %d%%", e.AtLeast)}
	judge := oracle.New(b.judged())
	for _, phase := range []struct {
		name string
		from time.Duration
	}{{"before", 0}, {"span", e.From}, {"after", e.To}} {
		if err := judge.Phase(phase.name, r.Began.Add(phase.from)); err != nil {
			return Result{Text: out.Text, Want: out.Want, Got: err.Error()}
		}
	}
	for _, a := range r.of(b.Name()) {
		judge.Record(asSeen(a, b.judged()))
	}
	for _, p := range judge.Summary() {
		if p.Name != "span" || p.Total.PooledAdmits == 0 {
			continue
		}
		share := 100 * (1 - p.Total.FalseDenialRate())
		out.Got = fmt.Sprintf("%.1f%%: %d units, it admits %d", share, p.Total.Admitted,
			p.Total.PooledAdmits)
		out.OK = share >= float64(e.AtLeast)
		return out
	}
	out.Got = "nothing was asked for"
	return out
}

// asSeen returns an answer as its caller saw it: admitted if it was admitted without a store, and
// denied if there was no answer. In both cases its time is when it was sent.
func asSeen(a oracle.Answer, limit oracle.Limit) oracle.Answer {
	if a.Outcome != oracle.Unknown {
		return a
	}
	a.At = a.Sent.UnixMicro()
	a.Cell = limit.CellOf(a.At)
	if local(a) {
		a.Outcome = oracle.Admitted
	} else {
		a.Outcome = oracle.Denied
	}
	return a
}

// split checks each whole window of a span.
func (s *Scenario) split(r *Record, e Expectation) Result {
	b := e.buckets(s.Watched())[0]
	most, limit := b.Splits[e.Region], b.judged()
	out := Result{Text: fmt.Sprintf("%s admits at most its fixed split of %s%s", e.Region, b.Name(),
		e.span(s.Duration)), Want: fmt.Sprintf("at most %d in each window", most)}
	if e.AtLeast > 0 {
		out.Want += fmt.Sprintf(", at least %d%% of it on average", e.AtLeast)
	}
	// The first and the last window that lie wholly in the span.
	first := limit.CellOf(r.Began.Add(e.From).UnixMicro()-1) + 1
	last := limit.CellOf(r.Began.Add(e.To).UnixMicro()) - 1
	if last < first {
		out.Got = "no whole window lies in the span"
		return out
	}
	cells, asked, alone := make([]int64, last-first+1), false, []string(nil)
	for _, a := range r.of(b.Name()) {
		if a.Region != e.Region || !decided(a) {
			continue
		}
		cell := a.Cell
		if local(a) {
			cell = limit.CellOf(a.Seen.UnixMicro())
		}
		if cell < first || cell > last {
			continue
		}
		if local(a) {
			alone = []string{e.Region}
		}
		asked = true
		if a.Outcome != oracle.Denied {
			cells[cell-first] += a.Cost
		}
	}
	if !asked {
		out.Got = fmt.Sprintf("no decision in %d windows", len(cells))
		return out
	}
	largest, sum := int64(0), int64(0)
	for _, units := range cells {
		largest, sum = max(largest, units), sum+units
	}
	full := most * int64(len(cells))
	// What a region admits without its store is beside its split.
	beside, why, err := s.Allowed(r, b, Ceiling{Local: alone}, nil)
	if err != nil {
		out.Got = err.Error()
		return out
	}
	if most += beside; why != "" {
		out.Want += fmt.Sprintf(" (and %s)", why)
	}
	out.Got = fmt.Sprintf("%d in the fullest of %d windows, %d%% on average", largest, len(cells),
		100*sum/max(full, 1))
	out.OK = largest <= most && 100*sum >= e.AtLeast*full
	return out
}
