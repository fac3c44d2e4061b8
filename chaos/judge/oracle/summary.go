package oracle

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
)

// phase is a part of the run, from its beginning to the beginning of the next phase.
type phase struct {
	name string
	from time.Time
}

// Row counts the requests sent to one region in one phase, or to all regions. It is in units unless
// a field says otherwise. Offered = Admitted + Denied + Unknown.
type Row struct {
	Region  string
	Answers int64 // number of requests
	Offered int64
	// Admitted, Denied and Unknown are Offered by outcome.
	Admitted, Denied, Unknown int64
	// PooledAdmits is what one limiter with the whole limit admits of Offered.
	PooledAdmits int64
	// FalseDenials is what that limiter admits and we lost, by the rules of the package comment.
	FalseDenials int64
	// Degraded is the number of answers given while a region was out of touch.
	Degraded int64
	// Entitlement and Share are what the region claimed in the latest sent answer of known outcome;
	// in a total, the sums of the regions.
	Entitlement, Share int64
}

// FalseDenialRate returns FalseDenials as a part of PooledAdmits, 0 to 1; 0 if PooledAdmits is 0.
func (r Row) FalseDenialRate() float64 {
	if r.PooledAdmits == 0 {
		return 0
	}
	return float64(r.FalseDenials) / float64(r.PooledAdmits)
}

// Phase is one part of the run.
type Phase struct {
	// Name is as given to Judge.Phase, or "" for requests sent before the first phase.
	Name string
	// From and To bound the phase: its requests were sent at From or later, and before To. The
	// first phase begins with the earliest answer, and the last ends with the latest.
	From, To time.Time
	// Regions has a row for each region that was sent requests, by name.
	Regions []Row
	// Total is the sum of Regions.
	Total Row
}

// Phase begins a phase of the run. Answers recorded from now on whose requests were sent at from or
// later, on the judge's clock, count in it. Phases must be given in order of time, each before the
// first of its answers is recorded.
func (j *Judge) Phase(name string, from time.Time) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if last := j.phases[len(j.phases)-1]; from.Before(last.from) {
		return fmt.Errorf("oracle: phase %q begins %v before phase %q: give the phases in order of time", name, last.from.Sub(from), last.name)
	}
	j.phases = append(j.phases, phase{name: name, from: from})
	return nil
}

// phaseOf returns the index of the phase in which a request was sent. If two phases begin at the
// same time, it is the later one.
func (j *Judge) phaseOf(sent time.Time) int {
	return max(0, sort.Search(len(j.phases),
		func(i int) bool { return j.phases[i].from.After(sent) })-1)
}

// count adds one answer to its row.
func (j *Judge) count(s slot, a Answer) {
	r, ok := j.rows[s]
	if !ok {
		r = &Row{Region: s.region}
		j.rows[s] = r
	}
	r.Answers++
	r.Offered = add(r.Offered, a.Cost)
	switch a.Outcome {
	case Admitted:
		r.Admitted = add(r.Admitted, a.Cost)
	case Denied:
		r.Denied = add(r.Denied, a.Cost)
	case Unknown:
		r.Unknown = add(r.Unknown, a.Cost)
		return
	}
	if a.Degraded {
		r.Degraded++
	}
	if !a.Sent.Before(j.lastShare[s]) {
		j.lastShare[s] = a.Sent
		r.Entitlement, r.Share = a.Entitlement, a.Share
	}
}

// Summary returns the history so far by phase and region, over all buckets. Named phases without
// answers are included, without rows. Recording may go on afterwards.
func (j *Judge) Summary() []Phase {
	j.mu.Lock()
	defer j.mu.Unlock()

	rows := make(map[slot]*Row, len(j.rows))
	for s, r := range j.rows {
		copied := *r
		rows[s] = &copied
	}
	for _, b := range j.buckets {
		done := b.replay.finished()
		for s, n := range done.pooled {
			rows[s].PooledAdmits = add(rows[s].PooledAdmits, n)
		}
		for s, n := range done.falseDenials() {
			rows[s].FalseDenials = add(rows[s].FalseDenials, n)
		}
	}
	return j.layOut(rows)
}

// layOut orders the rows by phase and adds up the totals.
func (j *Judge) layOut(rows map[slot]*Row) []Phase {
	phases := make([]Phase, len(j.phases))
	for i, p := range j.phases {
		phases[i] = Phase{Name: p.name, From: p.from, To: j.latest}
		if i > 0 {
			phases[i-1].To = p.from
		}
	}
	phases[0].From = j.first
	slots := slices.SortedFunc(maps.Keys(rows),
		func(a, b slot) int { return strings.Compare(a.region, b.region) })
	for _, s := range slots {
		p := &phases[s.phase]
		p.Regions = append(p.Regions, *rows[s])
		p.Total = p.Total.plus(*rows[s])
	}
	if len(phases[0].Regions) == 0 {
		phases = phases[1:]
	}
	return phases
}

// plus adds the numbers of another row and keeps the name.
func (r Row) plus(o Row) Row {
	r.Answers += o.Answers
	r.Offered = add(r.Offered, o.Offered)
	r.Admitted = add(r.Admitted, o.Admitted)
	r.Denied = add(r.Denied, o.Denied)
	r.Unknown = add(r.Unknown, o.Unknown)
	r.PooledAdmits = add(r.PooledAdmits, o.PooledAdmits)
	r.FalseDenials = add(r.FalseDenials, o.FalseDenials)
	r.Degraded += o.Degraded
	r.Entitlement += o.Entitlement
	r.Share += o.Share
	return r
}
