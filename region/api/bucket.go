package api

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region"
)

// Bucket is region.Bucket as JSON.
type Bucket struct {
	Limit       string          `json:"limit"`
	LimitUnits  int64           `json:"limit_units"`
	Algorithm   algorithms.Kind `json:"algorithm"`
	Entitlement int64           `json:"entitlement"`
	// Burst is this region's part of the burst. Absent unless the limit is a token_bucket or
	// leaky_bucket.
	Burst     *int64   `json:"burst,omitempty"`
	Share     int64    `json:"share"`
	NextShare int64    `json:"next_share"`
	Cell      int64    `json:"cell"`
	Used      int64    `json:"used"`
	Fading    int64    `json:"fading"`
	Free      int64    `json:"free"`
	Rights    []Rights `json:"rights"`
}

type Rights struct {
	Cell     int64  `json:"cell"`
	Region   string `json:"region"`
	Lent     int64  `json:"lent"`
	Returned int64  `json:"returned"`
	Borrowed int64  `json:"borrowed"`
	Regained int64  `json:"regained"`

	// Absent unless the limit is a token_bucket, the only kind whose burst is lent.
	BurstLent     *int64 `json:"burst_lent,omitempty"`
	BurstBorrowed *int64 `json:"burst_borrowed,omitempty"`
}

func newBucket(b region.Bucket) Bucket {
	found := b.Inspected
	a := Bucket{Limit: b.Limit.Name, LimitUnits: b.Limit.Limit, Algorithm: b.Terms.Kind, Entitlement: b.Terms.Entitlement,
		Share: found.Share, NextShare: found.NextShare, Cell: found.Cell, Used: found.Used, Fading: found.Fading, Free: found.Free,
		Rights: []Rights{}}
	if b.Terms.Kind.Bucket() {
		a.Burst = &b.Terms.Burst
	}
	for _, r := range found.Rows {
		rights := Rights{Cell: r.Cell, Region: r.Peer, Lent: r.Lent, Returned: r.Returned, Borrowed: r.Borrowed, Regained: r.Regained}
		if b.Terms.Kind == algorithms.TokenBucket {
			rights.BurstLent, rights.BurstBorrowed = &r.BurstLent, &r.BurstBorrowed
		}
		a.Rights = append(a.Rights, rights)
	}
	return a
}
