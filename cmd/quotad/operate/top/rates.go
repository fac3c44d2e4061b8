// Package top shows the limits and buckets with the most units, live.
//
// rates.go turns two overviews into rates, table.go writes them, and screen.go draws them again
// and again.
package top

import (
	"cmp"
	"slices"
	"time"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/front/asjson"
)

// Limit is what happened to one limit between two overviews, in all regions.
type Limit struct {
	Limit    string             `json:"limit"`
	Domain   string             `json:"domain"`
	Units    int64              `json:"limit_units"` // that it allows in a window, worldwide
	Window   float64            `json:"window_seconds"`
	Admitted float64            `json:"admitted_per_second"`
	Denied   float64            `json:"denied_per_second"`
	Regions  map[string]float64 `json:"admitted_per_second_by_region"`
}

// Report is what top shows.
type Report struct {
	At      time.Time `json:"at"`
	Regions []string  `json:"regions"`
	Nodes   int       `json:"nodes"`  // that answered
	Silent  []string  `json:"silent"` // nodes and regions that did not
	Limits  []Limit   `json:"limits"` // those with the most units first
	Buckets []Bucket  `json:"buckets"`
}

// Bucket is one of the buckets with the most units.
type Bucket struct{ *quotadv1.BucketSummary }

// MarshalJSON implements json.Marshaler.
func (b Bucket) MarshalJSON() ([]byte, error) { return asjson.Marshal(b), nil }

// Of returns what happened between two overviews. A node that is new in the second, or was started
// anew, counts from its start.
func Of(before, after *quotadv1.OverviewResponse) Report {
	r := Report{At: after.At.AsTime(), Nodes: len(after.Nodes), Silent: append([]string{}, after.Silent...),
		Buckets: []Bucket{}, Limits: []Limit{}}
	for _, b := range after.Hottest {
		r.Buckets = append(r.Buckets, Bucket{b})
	}
	type name struct{ domain, limit string }
	of := map[name]*Limit{}
	for _, n := range after.Nodes {
		if !slices.Contains(r.Regions, n.Region) {
			r.Regions = append(r.Regions, n.Region)
		}
		earlier, since := earlierOf(before, n)
		seconds := n.At.AsTime().Sub(since).Seconds()
		if seconds <= 0 {
			continue
		}
		for _, u := range n.Limits {
			l := of[name{u.Domain, u.Limit}]
			if l == nil {
				l = &Limit{Limit: u.Limit, Domain: u.Domain, Units: u.LimitUnits,
					Window: u.Window.AsDuration().Seconds(), Regions: map[string]float64{}}
				of[name{u.Domain, u.Limit}] = l
			}
			was := earlier[u.Limit]
			admitted := float64(u.AdmittedUnits-was.GetAdmittedUnits()) / seconds
			l.Admitted += admitted
			l.Denied += float64(u.DeniedUnits-was.GetDeniedUnits()) / seconds
			l.Regions[n.Region] += admitted
		}
	}
	for _, l := range of {
		r.Limits = append(r.Limits, *l)
	}
	slices.SortFunc(r.Limits, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(b.Admitted+b.Denied, a.Admitted+a.Denied),
			cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Domain, b.Domain))
	})
	return r
}

// earlierOf returns what a node had decided in an earlier overview, by limit, and when that was. Of
// a node that was not in it or was started since, it is nothing, at its start.
func earlierOf(before *quotadv1.OverviewResponse, n *quotadv1.NodeOverview) (by map[string]*quotadv1.LimitView, at time.Time) {
	by = map[string]*quotadv1.LimitView{}
	for _, b := range before.Nodes {
		if b.Region == n.Region && b.Node == n.Node && b.Started.AsTime().Equal(n.Started.AsTime()) {
			for _, u := range b.Limits {
				by[u.Limit] = u
			}
			return by, b.At.AsTime()
		}
	}
	return by, n.Started.AsTime()
}
