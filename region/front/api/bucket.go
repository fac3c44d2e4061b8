package api

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
)

// Bucket is region.Bucket as JSON.
type Bucket struct {
	Limit       string          `json:"limit"`
	LimitUnits  quantity.Units  `json:"limit_units"`
	Algorithm   algorithms.Kind `json:"algorithm"`
	Entitlement quantity.Units  `json:"entitlement"`
	// Burst is this region's part of the burst. Absent unless the limit is a token_bucket or
	// leaky_bucket.
	Burst     *quantity.Units `json:"burst,omitempty"`
	Share     quantity.Units  `json:"share"`
	NextShare quantity.Units  `json:"next_share"`
	Cell      quantity.Cell   `json:"cell"`
	Used      quantity.Units  `json:"used"`
	Fading    quantity.Units  `json:"fading"`
	Free      quantity.Units  `json:"free"`
	Rights    []Rights        `json:"rights"`
	// Assigned and NextAssigned are what nodes hold of share and next_share to assign it to Envoys.
	Assigned     quantity.Units `json:"assigned,omitempty"`
	NextAssigned quantity.Units `json:"next_assigned,omitempty"`
	// ClosedUntil is when a bucket that is closed after a loss of the store's data is opened again;
	// absent: it is open.
	ClosedUntil time.Time `json:"closed_until,omitzero"`
}

// Rights is what a region has lent to another and borrowed from it, of one cell.
type Rights struct {
	Cell     quantity.Cell  `json:"cell"`
	Region   string         `json:"region"`
	Lent     quantity.Units `json:"lent"`
	Returned quantity.Units `json:"returned"`
	Borrowed quantity.Units `json:"borrowed"`
	Regained quantity.Units `json:"regained"`

	// Absent from an explanation, and unless the limit is a token_bucket, the only kind whose burst
	// is lent.
	BurstLent     *quantity.Units `json:"burst_lent,omitempty"`
	BurstBorrowed *quantity.Units `json:"burst_borrowed,omitempty"`
}

func newBucket(b region.Bucket) Bucket {
	found := b.Inspected
	a := Bucket{Limit: b.Limit.Name, LimitUnits: b.Limit.Limit, Algorithm: b.Terms.Kind,
		Entitlement: b.Terms.Entitlement,
		Share:       found.Share, NextShare: found.NextShare, Cell: found.Cell, Used: found.Used,
		Fading: found.Fading, Free: found.Free,
		Rights: []Rights{}, ClosedUntil: b.ClosedUntil.UTC(),
		Assigned: found.Assigned(found.Cell), NextAssigned: found.Assigned(found.Cell + 1)}
	if b.Terms.Kind.Bucket() {
		a.Burst = &b.Terms.Burst
	}
	for _, r := range found.Traded() {
		rights := Rights{Cell: r.Cell, Region: r.Peer, Lent: r.Lent, Returned: r.Returned,
			Borrowed: r.Borrowed, Regained: r.Regained}
		if b.Terms.Kind == algorithms.TokenBucket {
			rights.BurstLent, rights.BurstBorrowed = &r.BurstLent, &r.BurstBorrowed
		}
		a.Rights = append(a.Rights, rights)
	}
	return a
}
