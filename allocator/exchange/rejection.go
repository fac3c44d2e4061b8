package exchange

import "github.com/quotad/quotad/algorithms"

// Rejection says why this region did not credit a row that a peer announced.
type Rejection uint8

// The reasons.
const (
	// The reply came from another region than the one called, or has the wrong number of grants.
	RejectedRegion Rejection = iota
	// The terms of the limit have changed since the row was asked for.
	RejectedTerms
	// The row was written for another generation of our store, or under one that is fenced or not
	// believed.
	RejectedGeneration
	// The row's cell is over or too far ahead.
	RejectedFinished
	// The row is of another cell than asked about, or more than can have been lent.
	RejectedImplausible
	rejections
)

// Rejections are all reasons.
var Rejections = []Rejection{RejectedRegion, RejectedTerms, RejectedGeneration, RejectedFinished,
	RejectedImplausible}

var rejectionNames = [rejections]string{"region", "terms", "generation", "finished", "implausible"}

func (r Rejection) String() string {
	if r >= rejections {
		return "unknown"
	}
	return rejectionNames[r]
}

// reject counts rows that were not credited.
func (m *Machine) reject(r Rejection, rows int) {
	m.stats.RowsRejected[r] += int64(rows)
	if r == RejectedImplausible || r == RejectedRegion {
		m.stats.Implausible++
	}
}

// rejectedBy counts a row that the store did not credit, by the store's status.
func (m *Machine) rejectedBy(s algorithms.Status) {
	switch s {
	case algorithms.StatusImplausible:
		m.reject(RejectedImplausible, 1)
	case algorithms.StatusFinished, algorithms.StatusRecovering:
		m.reject(RejectedFinished, 1)
	case algorithms.StatusFenced:
		m.reject(RejectedGeneration, 1)
	}
}
