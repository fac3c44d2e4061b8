package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Violation is one place where the history breaks the promise.
type Violation struct {
	// Excess is the number of units above the ceiling, rounded up; 0 for a violation of honesty.
	Excess int64
	// Certain is false if the violation exists only because requests of unknown outcome were
	// counted as admitted.
	Certain bool
	// Text is a sentence for humans.
	Text string
}

// String returns the sentence.
func (v Violation) String() string { return v.Text }

// Verdict is the judgement of the history so far. Numbers are in the units of the limit. Unknown
// outcomes count as admitted unless a field says otherwise.
type Verdict struct {
	// CellsChecked is the number of cells, over all buckets, in which an answer lies. An unknown
	// outcome counts for all cells in which it may lie, or only for the first of them if the
	// algorithm's state does not end with a cell. A verdict over no cells means nothing.
	CellsChecked int
	// Algorithm is that of the limit.
	Algorithm string
	// Limit is the ceiling of each cell: the burst of a bucket, or else the limit.
	Limit int64
	// MaxAdmitted is the highest tally of any cell, rounded up: units admitted in a fixed window,
	// the estimate of a sliding counter, the sum of an interval of a sliding log, the tokens
	// missing from a full bucket, or the backlog of a queue. MaxExcess is MaxAdmitted - Limit, at
	// least 0.
	MaxAdmitted, MaxExcess int64
	// MaxKnown is MaxAdmitted without unknown outcomes.
	MaxKnown int64
	// CellsOver counts the cells above the limit. CellsProvenOver counts those that are above it
	// even without unknown outcomes.
	CellsOver, CellsProvenOver int
	// Misplaced counts answers whose cell or store time cannot be true, and answers that cannot be
	// judged. Duplicates counts sequence numbers that were used again.
	Misplaced, Duplicates int
	// Classes counts the admitted answers whose class was judged, ClassesOver those that were above
	// what it may use of the region's share.
	Classes, ClassesOver int
	// Unchecked counts answers whose sequence number was too low to tell whether it is a duplicate.
	// Late counts answers replayed out of order. Neither fails the verdict, but Late makes the
	// false denials inexact.
	Unchecked, Late int
	// Violations holds the first few of each kind: cells above the limit, largest excess first,
	// then violations of honesty.
	Violations []Violation
}

// Holds reports whether the promise held: no cell is above the limit, with every unknown outcome
// counted as admitted, and no answer is dishonest.
func (v Verdict) Holds() bool {
	return v.CellsOver == 0 && v.honest()
}

// Proven reports whether the promise was certainly broken: by answers of known outcome alone, or by
// a dishonest one. If neither Holds nor Proven, the answer depends on unknown outcomes.
func (v Verdict) Proven() bool {
	return v.CellsProvenOver > 0 || !v.honest()
}

func (v Verdict) honest() bool { return v.Misplaced == 0 && v.Duplicates == 0 && v.ClassesOver == 0 }

// String returns the verdict in one line.
func (v Verdict) String() string {
	word := "ceiling held"
	switch {
	case v.CellsProvenOver > 0:
		word = "CEILING BROKEN"
	case v.ClassesOver > 0:
		word = "CLASSES BROKEN"
	case !v.honest():
		word = "ANSWERS NOT BELIEVABLE"
	case v.CellsOver > 0:
		word = "ceiling in doubt (unknown outcomes)"
	case v.CellsChecked == 0:
		word = "nothing to judge"
	}
	measured := "admitted on a limit of"
	if rule, ok := algorithms[v.Algorithm]; ok {
		measured = rule.measured
	}
	return fmt.Sprintf("%s: %d checks, %d above the limit, at most %d %s %d; %d misplaced, %d duplicate",
		word, v.CellsChecked, v.CellsOver, v.MaxAdmitted, measured, v.Limit, v.Misplaced,
		v.Duplicates)
}

// excess is a tally above the bound.
type excess struct {
	bucket  string
	ceiling ceiling
	tally   tally
}

// Verdict judges the history so far. Recording may go on afterwards.
func (j *Judge) Verdict() Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()

	v := Verdict{
		Algorithm:  j.limit.Algorithm,
		Limit:      j.rule.bound(j.limit),
		Misplaced:  j.misplaced,
		Duplicates: j.duplicates,
		Unchecked:  j.unchecked,
		Classes:    j.classes, ClassesOver: j.exceeded,
	}
	var over []excess
	for _, name := range slices.Sorted(maps.Keys(j.buckets)) {
		b := j.buckets[name]
		v.Late += b.replay.late
		for _, t := range b.ceiling.tallies() {
			if v.weigh(t) {
				over = append(over, excess{name, b.ceiling, t})
			}
		}
	}
	slices.SortStableFunc(over,
		func(a, b excess) int { return cmp.Compare(b.tally.all, a.tally.all) })
	for _, x := range over[:min(len(over), maxKept)] {
		v.Violations = append(v.Violations, Violation{
			Excess: x.tally.all - v.Limit, Certain: x.tally.known > v.Limit, Text: j.sentence(x),
		})
	}
	v.Violations = append(v.Violations, j.dishonest...)
	return v
}

// Levels returns the tally of each cell of a bucket: the most of what the limit bounds, in units.
func (j *Judge) Levels(name string) map[int64]int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	levels := map[int64]int64{}
	if b := j.buckets[name]; b != nil {
		for _, t := range b.ceiling.tallies() {
			levels[t.cell] = t.all
		}
	}
	return levels
}

// weigh adds one tally to the verdict, and reports whether it is above the bound.
func (v *Verdict) weigh(t tally) bool {
	v.MaxAdmitted = max(v.MaxAdmitted, t.all)
	v.CellsChecked++
	v.MaxKnown = max(v.MaxKnown, t.known)
	v.MaxExcess = max(0, v.MaxAdmitted-v.Limit)
	if t.known > v.Limit {
		v.CellsProvenOver++
	}
	if t.all <= v.Limit {
		return false
	}
	v.CellsOver++
	return true
}

// sentence describes a tally above the bound.
func (j *Judge) sentence(x excess) string {
	regions, unknown := x.ceiling.counted(x.tally)
	var units int64
	var by []string
	for _, region := range slices.Sorted(maps.Keys(regions)) {
		units = add(units, regions[region])
		by = append(by, fmt.Sprintf("%s %d", region, regions[region]))
	}
	doubt := ""
	if unknown > 0 {
		doubt = fmt.Sprintf(", %d of them of unknown outcome", unknown)
	}
	return fmt.Sprintf("bucket %q, cell %d: %s%s (%s)",
		x.bucket, x.tally.cell, j.rule.exceeded(j.limit, x.tally, units), doubt,
		strings.Join(by, ", "))
}
