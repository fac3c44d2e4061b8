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
	Bucket string
	Cell   int64 // as labelled
	// Excess is by how many units the limit was exceeded; 0 for a violation of
	// honesty.
	Excess int64
	// Certain is false if the violation stands only because requests of unknown
	// outcome were counted as admitted.
	Certain bool
	// Text is a sentence for humans.
	Text string
}

// String returns the sentence.
func (v Violation) String() string { return v.Text }

// Verdict is the judgement over the history so far. Units are those of the
// limit; unknown outcomes count as admitted unless a field says otherwise.
type Verdict struct {
	// CellsChecked is the number of cells, over all buckets, to which an answer
	// belongs or may belong. A verdict over none of them says nothing.
	CellsChecked int
	// Limit is the ceiling of each cell.
	Limit int64
	// MaxAdmitted is the most that any cell admitted, MaxBucket and MaxCell say
	// where first, and MaxExcess is MaxAdmitted - Limit, at least 0.
	MaxAdmitted int64
	MaxBucket   string
	MaxCell     int64
	MaxExcess   int64
	// MaxKnown is the most that any cell admitted, unknown outcomes left out.
	MaxKnown int64
	// CellsOver counts the cells above the limit, CellsProvenOver those that are
	// above it with unknown outcomes left out.
	CellsOver, CellsProvenOver int
	// Misplaced counts answers whose cell or store time cannot be true, and
	// answers that cannot be judged; Duplicates counts sequence numbers used
	// again.
	Misplaced, Duplicates int
	// Unchecked counts answers whose sequence number was too far back to tell
	// whether it is a duplicate, and Late those replayed out of their order.
	// Neither fails the verdict; Late makes false denials inexact.
	Unchecked, Late int
	// Violations holds the first few of each kind: the cells above the limit,
	// largest excess first, then the violations of honesty.
	Violations []Violation
}

// Holds reports whether nothing speaks against the promise: no cell above the
// limit, with every unknown outcome counted as admitted, and no dishonest answer.
func (v Verdict) Holds() bool {
	return v.CellsOver == 0 && v.honest()
}

// Proven reports whether the promise was broken beyond doubt: by answers of
// known outcome alone, or by a dishonest one. If neither Holds nor Proven, the
// doubt lies in unknown outcomes.
func (v Verdict) Proven() bool {
	return v.CellsProvenOver > 0 || !v.honest()
}

func (v Verdict) honest() bool { return v.Misplaced == 0 && v.Duplicates == 0 }

// String is the verdict in one line.
func (v Verdict) String() string {
	word := "ceiling held"
	switch {
	case v.CellsProvenOver > 0:
		word = "CEILING BROKEN"
	case !v.honest():
		word = "ANSWERS NOT BELIEVABLE"
	case v.CellsOver > 0:
		word = "ceiling in doubt (unknown outcomes)"
	case v.CellsChecked == 0:
		word = "nothing to judge"
	}
	return fmt.Sprintf("%s: %d cells checked, %d above the limit, at most %d admitted on a limit of %d; %d misplaced, %d duplicate",
		word, v.CellsChecked, v.CellsOver, v.MaxAdmitted, v.Limit, v.Misplaced, v.Duplicates)
}

// Verdict judges the history so far. Recording may go on afterwards.
func (j *Judge) Verdict() Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()

	v := Verdict{
		Limit:      j.limit.Limit,
		Misplaced:  j.misplaced,
		Duplicates: j.duplicates,
		Unchecked:  j.unchecked,
	}
	var over []Violation
	for _, name := range slices.Sorted(maps.Keys(j.buckets)) {
		b := j.buckets[name]
		v.Late += b.replay.late
		for _, t := range b.ceiling.tallies() {
			if o, isOver := v.weigh(name, t); isOver {
				over = append(over, o)
			}
		}
	}
	slices.SortStableFunc(over, func(a, b Violation) int { return cmp.Compare(b.Excess, a.Excess) })
	v.Violations = append(v.Violations, over[:min(len(over), maxKept)]...)
	v.Violations = append(v.Violations, j.dishonest...)
	return v
}

// weigh takes one cell into the verdict, and returns the violation if it is one.
func (v *Verdict) weigh(bucket string, t tally) (Violation, bool) {
	all := add(t.known, t.unknown)
	if v.CellsChecked == 0 || all > v.MaxAdmitted {
		v.MaxAdmitted, v.MaxBucket, v.MaxCell = all, bucket, t.cell
	}
	v.CellsChecked++
	v.MaxKnown = max(v.MaxKnown, t.known)
	v.MaxExcess = max(0, v.MaxAdmitted-v.Limit)
	if all <= v.Limit {
		return Violation{}, false
	}
	v.CellsOver++
	if t.known > v.Limit {
		v.CellsProvenOver++
	}
	return Violation{
		Bucket: bucket, Cell: t.cell, Excess: all - v.Limit, Certain: t.known > v.Limit,
		Text: v.sentence(bucket, t, all),
	}, true
}

// sentence words a cell above the limit.
func (v *Verdict) sentence(bucket string, t tally, all int64) string {
	var by []string
	for _, region := range slices.Sorted(maps.Keys(t.regions)) {
		by = append(by, fmt.Sprintf("%s %d", region, t.regions[region]))
	}
	doubt := ""
	if t.unknown > 0 {
		doubt = fmt.Sprintf(", %d of them of unknown outcome", t.unknown)
	}
	return fmt.Sprintf("bucket %q, cell %d: %d units admitted on a limit of %d, %d too many%s (%s)",
		bucket, t.cell, all, v.Limit, all-v.Limit, doubt, strings.Join(by, ", "))
}
