package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/tally"
)

// Name returns the name of a node, as REGION/NODE.
func Name(n *quotadv1.NodeView) string {
	return n.GetStatus().GetRegion() + "/" + n.GetStatus().GetNode()
}

// Nodes returns what nodes told, ordered by name and each node once, and which of the expected
// nodes and regions told nothing.
func Nodes(views []*quotadv1.View, expected []string) (nodes []*quotadv1.NodeView, silent []string) {
	for _, v := range views {
		if v.GetNode() != nil {
			nodes = append(nodes, v.GetNode())
		}
	}
	slices.SortFunc(nodes, func(a, b *quotadv1.NodeView) int { return cmp.Compare(Name(a), Name(b)) })
	nodes = slices.CompactFunc(nodes, func(a, b *quotadv1.NodeView) bool { return Name(a) == Name(b) })
	for _, name := range expected {
		if !slices.ContainsFunc(nodes, func(n *quotadv1.NodeView) bool {
			return Name(n) == name || n.GetStatus().GetRegion() == name
		}) {
			silent = append(silent, name)
		}
	}
	slices.Sort(silent)
	return nodes, silent
}

// Hottest returns the buckets with the most units of all nodes together, as [tally.Busiest] does.
func Hottest(nodes []*quotadv1.NodeView, most int) []tally.Hot {
	of := map[string]*tally.Hot{}
	for _, n := range nodes {
		for _, b := range n.GetHottest() {
			id := string(b.GetBucket())
			if of[id] == nil {
				of[id] = &tally.Hot{ID: id}
			}
			h := of[id]
			h.Units.Admitted += quantity.Units(b.GetAdmittedUnits())
			h.Units.Denied += quantity.Units(b.GetDeniedUnits())
			h.Missed += b.GetMissedUnits()
		}
	}
	all := make([]tally.Hot, 0, len(of))
	for _, h := range of {
		all = append(all, *h)
	}
	return tally.Busiest(all, most)
}

// Summary describes one of the hottest buckets. parts has what each region that answered holds. It
// returns nil if the id is not one of a bucket.
func Summary(h tally.Hot, parts []*quotadv1.BucketView) *quotadv1.BucketSummary {
	ref, err := policy.ParseBucketID(policy.BucketID(h.ID))
	if err != nil {
		return nil
	}
	s := &quotadv1.BucketSummary{Limit: ref.Name, Domain: ref.Domain, Descriptors: Descriptors(ref),
		AdmittedUnits: int64(h.Units.Admitted), DeniedUnits: int64(h.Units.Denied)}
	for _, p := range ByRegion(parts) {
		l := p.GetLedger()
		if l == nil {
			continue
		}
		s.LimitUnits = max(s.LimitUnits, l.GetLimitUnits())
		s.Used += l.GetUsed()
		s.Parts = append(s.Parts, &quotadv1.BucketPart{Region: p.GetRegion(),
			Entitlement: l.GetEntitlement(), Share: l.GetShare(), Used: l.GetUsed(), Free: l.GetFree()})
	}
	return s
}

// Descriptors returns what a bucket's id tells of the requests that it is for: its key, and the
// conditions of its limit. A long value is a digest. Values that are not UTF-8 are made so.
func Descriptors(ref policy.BucketRef) map[string]string {
	all := map[string]string{}
	for _, c := range ref.Match {
		all[c.Name] = strings.ToValidUTF8(c.Value, "\uFFFD")
	}
	for _, kv := range ref.Key {
		all[kv.Name] = strings.ToValidUTF8(kv.Value, "\uFFFD")
	}
	return all
}

// ByRegion makes one view of a bucket of those of each region's nodes, ordered by region: the
// ledger of a node whose store told it, the last request at any of them, what all of them hold, and
// which of them remember a denial.
func ByRegion(views []*quotadv1.BucketView) (regions []*quotadv1.BucketView) {
	of := map[string]*quotadv1.BucketView{}
	for _, v := range views {
		known := of[v.GetRegion()]
		if known == nil {
			of[v.GetRegion()] = v
			regions = append(regions, v)
			continue
		}
		if known.GetLedger() == nil && v.GetLedger() != nil {
			known.Ledger, known.Problem, known.Now, known.Node = v.GetLedger(), "", v.GetNow(), v.GetNode()
			known.ClosedUntil, known.Epoch = v.GetClosedUntil(), v.GetEpoch()
		}
		if at := v.GetLast().GetAt(); at != nil && (known.GetLast() == nil ||
			at.AsTime().After(known.GetLast().GetAt().AsTime())) {
			known.Last = v.GetLast()
		}
		known.PrefetchedUnits += v.GetPrefetchedUnits()
		known.Envoys = append(known.Envoys, v.GetEnvoys()...)
		known.RememberDenial = append(known.RememberDenial, v.GetRememberDenial()...)
		known.Degraded = degraded(known.GetDegraded(), v.GetDegraded())
	}
	slices.SortFunc(regions, func(a, b *quotadv1.BucketView) int {
		return cmp.Compare(a.GetRegion(), b.GetRegion())
	})
	for _, r := range regions {
		slices.Sort(r.RememberDenial)
	}
	return regions
}

// degraded adds regions to a list, each once.
func degraded(all, more []*quotadv1.DegradedTowards) []*quotadv1.DegradedTowards {
	for _, d := range more {
		if !slices.ContainsFunc(all, func(known *quotadv1.DegradedTowards) bool {
			return known.GetRegion() == d.GetRegion()
		}) {
			all = append(all, d)
		}
	}
	return all
}

// Words writes descriptors as a command line names them, by name.
func Words(descriptors map[string]string) string {
	var all []string
	for name, value := range descriptors {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
