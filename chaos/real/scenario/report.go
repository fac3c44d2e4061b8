package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/real/report"
	"github.com/quotad/quotad/quantity"
)

// Report returns the content of the page about a run. command is the command line that plays it
// again, and version that of the quotad under test.
func (s *Scenario) Report(r *Record, results []Result, command, version string) report.Run {
	run := report.Run{Title: s.Name, About: s.About, Command: command, Began: r.Began,
		Length: r.Length, OK: OK(results),
		Verdict: "All that was expected was met.", Seed: r.Seed, Version: version,
		Regions: s.regionNames(), Bands: r.bands()}
	missed := 0
	for _, one := range results {
		if !one.OK {
			missed++
		}
		run.Expectations = append(run.Expectations, report.Expectation{Text: one.Text,
			Want: one.Want, Got: one.Got, OK: one.OK})
	}
	if missed > 0 {
		run.Verdict = fmt.Sprintf("%d of %d expectations were not met.", missed, len(results))
	}
	for _, e := range r.Events {
		step := report.Step{At: e.From, Text: e.Step.String(), Outcome: e.Outcome}
		if e.Err != nil {
			step.Outcome = e.Why()
		}
		run.Steps = append(run.Steps, step)
	}
	for _, b := range s.Watched() {
		run.Limits = append(run.Limits, s.reportLimit(r, b))
	}
	for _, fact := range r.Facts.Text {
		run.Facts = append(run.Facts, report.Fact{Name: fact[0], Value: fact[1]})
	}
	for _, region := range run.Regions {
		if n := r.Unsent[region]; n > 0 {
			run.Notes = append(run.Notes,
				fmt.Sprintf("%d requests to %s were never sent, because no node accepted the connection; they count for nothing.", n, region))
		}
		if n := r.Shed[region]; n > 0 {
			run.Notes = append(run.Notes,
				fmt.Sprintf("%d requests to %s fell due while %d waited for an answer, and were not sent: so much less was asked for than the scenario says.", n, region, maxUnderWay))
		}
		if n := r.Behind[region]; n > 0 {
			run.Notes = append(run.Notes,
				fmt.Sprintf("%d requests to %s were not sent in time, because this machine was too slow.", n, region))
		}
	}
	return run
}

// reportLimit returns the record of one bucket for the page.
func (s *Scenario) reportLimit(r *Record, b Bucket) report.Limit {
	c := s.Ceiling(r, b)
	l := report.Limit{Name: b.Limit, Key: b.Key, Algorithm: b.Algorithm, Units: b.Units,
		Burst: b.Burst, Window: b.Window,
		Max: c.Certain, Excess: max(c.Certain-c.Verdict.Limit, 0)}
	for _, e := range s.Expect {
		if e.That != "ceiling" || !slices.ContainsFunc(e.buckets(s.Watched()),
			func(o Bucket) bool { return o.Name() == b.Name() }) {
			continue
		}
		if units, why, err := s.Allowed(r, b, c, e.Despite); err == nil && units > l.Allowed {
			l.Allowed, l.Allowance = units, "As quotad limits bound prints: "+why+"."
		}
	}
	judge := oracle.New(b.judged())
	answers := r.of(b.Name())
	for _, a := range answers {
		judge.Record(a)
	}
	for _, p := range judge.Summary() {
		l.Pooled += p.Total.PooledAdmits
		l.FalseDenials += p.Total.FalseDenials
	}
	l.Slots, l.Shares = s.slots(r, b, answers), s.shares(r, answers)
	if b.Algorithm == "fixed_window" {
		l.Cells = s.cells(r, b, answers)
	}
	return l
}

// slotLength is the length of the slots of a page.
const slotLength = time.Second

// slots counts answers by second and region. Where windows are fixed and of a second, the slots are
// these windows, and what was admitted is counted for the window that the decision names.
func (s *Scenario) slots(r *Record, b Bucket, answers []oracle.Answer) []report.Slot {
	regions := s.regionNames()
	begins, n, first := time.Duration(0), int((r.Length+slotLength-1)/slotLength), int64(0)
	byWindow := b.Algorithm == "fixed_window" && b.Window == slotLength
	if byWindow {
		limit := b.judged()
		first = limit.CellOf(r.Began.UnixMicro())
		n = int(limit.CellOf(r.Began.Add(r.Length).UnixMicro())-first) + 1
		begins = s.opens(b, first).Sub(r.Began)
	}
	all := make([]report.Slot, n)
	for i := range all {
		all[i] = report.Slot{At: begins + time.Duration(i)*slotLength, Length: slotLength,
			Offered:  make([]int64, len(regions)),
			Admitted: make([]int64, len(regions)), Denied: make([]int64, len(regions)),
			Unknown: make([]int64, len(regions))}
	}
	for _, a := range answers {
		i, at := slices.Index(regions, a.Region), int((r.sent(a)-begins)/slotLength)
		if i < 0 || at < 0 || at >= len(all) {
			continue
		}
		all[at].Offered[i] += a.Cost
		switch {
		case a.Outcome == oracle.Denied:
			all[at].Denied[i] += a.Cost
		case decided(a):
			if byWindow && !local(a) && a.Cell >= first && a.Cell < first+int64(n) {
				at = int(a.Cell - first)
			}
			all[at].Admitted[i] += a.Cost
		default:
			all[at].Unknown[i] += a.Cost
		}
	}
	return all
}

// shares returns what regions claimed to hold, each time that it changed.
func (s *Scenario) shares(r *Record, answers []oracle.Answer) (all []report.Share) {
	regions := s.regionNames()
	last := map[string]report.Share{}
	for _, a := range answers {
		i := slices.Index(regions, a.Region)
		if i < 0 || !decided(a) || local(a) || a.Entitlement == 0 && a.Share == 0 {
			continue
		}
		now := report.Share{Region: i, Share: a.Share, Entitlement: a.Entitlement,
			Degraded: a.Degraded}
		if before, known := last[a.Region]; known && before == now {
			continue
		}
		last[a.Region] = now
		now.At = r.sent(a)
		all = append(all, now)
	}
	return all
}

// opens returns when a window of a bucket begins.
func (s *Scenario) opens(b Bucket, cell int64) time.Time {
	if c, ok := s.limit(b.Limit).Calendar(); ok {
		return time.UnixMicro(int64(c.Opens(quantity.Cell(cell))))
	}
	return time.UnixMicro(cell * b.Window.Microseconds())
}

// cells counts what windows admitted, by their labels.
func (s *Scenario) cells(r *Record, b Bucket, answers []oracle.Answer) []report.Cell {
	limit, regions := b.judged(), s.regionNames()
	first, last := limit.CellOf(r.Began.UnixMicro()),
		limit.CellOf(r.Began.Add(r.Length).UnixMicro())
	all := make([]report.Cell, last-first+1)
	for i := range all {
		from, to := s.opens(b, first+int64(i)), s.opens(b, first+int64(i)+1)
		all[i] = report.Cell{From: from.Sub(r.Began), Length: to.Sub(from),
			Admitted: make([]int64, len(regions))}
	}
	for _, a := range answers {
		i := slices.Index(regions, a.Region)
		if i < 0 || a.Outcome == oracle.Denied {
			continue
		}
		if a.Outcome == oracle.Admitted {
			if a.Cell >= first && a.Cell <= last {
				all[a.Cell-first].Admitted[i] += a.Cost
			}
			continue
		}
		from, to := limit.CellOf(a.Sent.Add(-clockSlack).UnixMicro()),
			limit.CellOf(a.Seen.Add(clockSlack).UnixMicro())
		if local(a) && from == to && from >= first && to <= last {
			all[from-first].Admitted[i] += a.Cost // certainly in this cell, though without a store
			continue
		}
		for cell := max(from, first); cell <= min(to, last); cell++ {
			all[cell-first].Unknown += a.Cost
		}
	}
	return all
}
