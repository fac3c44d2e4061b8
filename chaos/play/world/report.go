package world

import (
	"fmt"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/policy"
)

// Report is the result of a story. Its JSON form is what `quotad demo -o json` prints.
type Report struct {
	Limit     int64          `json:"limit"`
	Window    string         `json:"window"`
	Algorithm string         `json:"algorithm"`
	Seed      uint64         `json:"seed"`
	Regions   []RegionReport `json:"regions"`
	Phases    []PhaseReport  `json:"phases"`
	Ceiling   Ceiling        `json:"ceiling"`
	// Failures say what was admitted above a limit: the promise is broken. NotShown says what else
	// the story is there for and did not come to. OK: neither has any.
	Failures []string `json:"failures"`
	NotShown []string `json:"not_shown"`
	// Lacked says what the machine lacked, if that may be why.
	Lacked []string `json:"lacked"`
	OK     bool     `json:"ok"`
}

// RegionReport is a region and its fixed split of the limit.
type RegionReport struct {
	Name        string `json:"name"`
	Entitlement int64  `json:"entitlement"`
}

// PhaseReport is about one phase. Its maps are by region, in units over the phase.
type PhaseReport struct {
	Name     string             `json:"name"`
	Seconds  float64            `json:"seconds"`
	Offered  map[string]int64   `json:"offered"`
	Admitted map[string]int64   `json:"admitted"`
	ShareEnd map[string]int64   `json:"share_end"`
	Degraded map[string]float64 `json:"degraded"` // degraded part of the answers
	// RebalanceMS is the time from the region's shortage, or from the heal, until the skewed
	// region's share was 95 % of the water-fill. It is 0 if the region was not short before it got
	// there, and absent if its share should not grow in this phase. FirstUnitsMS is the same for
	// the first borrowed unit.
	RebalanceMS     *float64 `json:"rebalance_ms,omitempty"`
	FirstUnitsMS    *float64 `json:"first_units_ms,omitempty"`
	FalseDenials    int64    `json:"false_denials"`
	FalseDenialRate float64  `json:"false_denial_rate"`
}

// Ceiling is the verdict of the outside judge.
type Ceiling struct {
	CellsChecked int   `json:"cells_checked"`
	MaxAdmitted  int64 `json:"max_admitted"`
	Limit        int64 `json:"limit"`
	MaxExcess    int64 `json:"max_excess"`
	// ExcessTerms are the amounts above the limit that this setting allows; none here.
	ExcessTerms []string `json:"excess_terms"`
}

func (p *play) report() Report {
	v := p.judge.Verdict()
	r := Report{Limit: p.limit, Window: demoWindow.String(), Algorithm: p.Algorithm, Seed: p.Seed,
		Failures: []string{}, NotShown: []string{}, Lacked: p.lacked(),
		Ceiling: Ceiling{CellsChecked: v.CellsChecked, MaxAdmitted: v.MaxAdmitted, Limit: v.Limit,
			MaxExcess:   v.MaxExcess,
			ExcessTerms: []string{}}}
	for _, now := range p.watch.lastCell("", 0, time.Now()).Regions {
		r.Regions = append(r.Regions, RegionReport{Name: now.Name, Entitlement: now.Entitlement})
	}
	lengths := p.seconds()
	for _, ph := range p.judge.Summary() {
		if ph.Name == "" {
			continue // answers from before the story
		}
		i := len(r.Phases)
		r.Phases = append(r.Phases, phaseReport(ph, lengths[i], p.watch.stages[i]))
	}
	if !v.Holds() {
		for _, violation := range v.Violations {
			r.Failures = append(r.Failures, violation.String())
		}
	}
	above, below := p.fell(p.limit * demoRegions[0].Weight / 100)
	r.Failures = append(r.Failures, above...)
	r.NotShown = append(append(r.NotShown, below...), p.cameBack()...)
	r.OK = len(r.Failures)+len(r.NotShown) == 0
	return r
}

// longStandstill is a pause of the whole process that may be why a story does not show something:
// calls between regions, and to a Redis, time out meanwhile.
const longStandstill = 100 * time.Millisecond

// lacked says what the machine lacked.
func (p *play) lacked() []string {
	lacked := []string{}
	if still := p.still.longest(); still >= longStandstill {
		lacked = append(lacked, fmt.Sprintf("processor time: this process stood still for up to %v",
			still.Round(time.Millisecond)))
	}
	if n := p.alone.Load(); n > 0 {
		lacked = append(lacked, fmt.Sprintf(
			"answers of the Redis in time: %d of %d requests were decided without one, or not at all",
			n, p.answers.Load()))
	}
	return lacked
}

func phaseReport(ph oracle.Phase, length time.Duration, s *stage) PhaseReport {
	out := PhaseReport{Name: ph.Name, Seconds: length.Seconds(), Offered: map[string]int64{},
		Admitted: map[string]int64{},
		ShareEnd: map[string]int64{}, Degraded: map[string]float64{},
		FalseDenials: ph.Total.FalseDenials, FalseDenialRate: ph.Total.FalseDenialRate()}
	for _, row := range ph.Regions {
		out.Offered[row.Region], out.Admitted[row.Region] = row.Offered, row.Admitted
		out.ShareEnd[row.Region] = row.Share
		out.Degraded[row.Region] = float64(row.Degraded) / float64(max(row.Answers, 1))
	}
	if s.grows() {
		start := s.short
		if s.name == "heal" {
			start = s.from
		}
		out.FirstUnitsMS, out.RebalanceMS = since(start, s.gained), since(start, s.reached)
	}
	return out
}

// grows reports whether the skewed region's share should grow in this phase.
func (s *stage) grows() bool { return s.name == "skew" || s.name == "heal" }

// since returns the milliseconds from the shortage to a moment: 0 if the moment came before the
// shortage, nil if it never came.
func since(short, moment time.Time) *float64 {
	if moment.IsZero() {
		return nil
	}
	ms := 0.0
	if !short.IsZero() && moment.After(short) {
		ms = float64(moment.Sub(short).Microseconds()) / 1000
	}
	return &ms
}

// fell checks the region that was cut off. It returns what is above its fixed split, and what is
// below it. From the first whole cell on it must admit at most its fixed split; a bucket's region may
// in addition spend once what its own part of the burst holds. From the second whole cell on it must
// admit nearly all of its fixed split. For fixed windows that is checked in each cell, for the other
// kinds over all cells together.
func (p *play) fell(entitlement int64) (above, below []string) {
	cells := p.watch.whole(p.watch.stages[2].from, p.watch.stages[4].from)
	saved := entitlement * p.ceiling().Burst / p.limit
	for i, cell := range cells {
		if saved += entitlement - cell.Admitted; saved < 0 {
			above = append(above,
				fmt.Sprintf("%s admitted %d in whole cell %d after it was cut off, above its fixed split of %d", cutRegion, cell.Admitted, i+1, entitlement))
		}
		saved = min(max(saved, 0), entitlement*p.ceiling().Burst/p.limit)
	}
	step, least := 1, int64(95)
	switch kind := policy.Algorithm(p.Algorithm); {
	case kind.Sliding():
		step, least = len(cells), 90
	case kind.Bucket():
		step = len(cells)
	}
	for from := 1; from < len(cells); from += step {
		var admitted, want int64
		for _, cell := range cells[from:min(from+step, len(cells))] {
			admitted += cell.Admitted
			want += min(entitlement, cell.Offered)
		}
		if admitted*100 < want*least {
			below = append(below,
				fmt.Sprintf("%s admitted only %d of %d that its fixed split of %d would have from whole cell %d after it was cut off, below %d %%", cutRegion, admitted, want, entitlement, from+1, least))
		}
	}
	return above, below
}

// healWithin is how soon after the heal the skewed region must be back.
const healWithin = 5 * time.Second

// cameBack checks that the skewed region is back at 95 % of its demand within healWithin of the
// heal.
func (p *play) cameBack() []string {
	heal := p.watch.stages[4]
	var admitted, want int64
	for _, cell := range p.watch.whole(heal.from.Add(healWithin), heal.from.Add(p.seconds()[4])) {
		admitted += cell.Admitted
		want += min(cell.Offered, heal.target)
	}
	if want == 0 || admitted*20 < want*19 {
		return []string{fmt.Sprintf(
			"shares did not come back: from %s after the heal on %s admitted %d, below 95 %% of the %d that one pooled limiter would have", healWithin, cutRegion, admitted, want)}
	}
	return nil
}
