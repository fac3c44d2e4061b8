package api

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Overview is quotad.v1.OverviewResponse as JSON.
type Overview struct {
	Region  string          `json:"region"` // of the node that was asked
	Node    string          `json:"node"`
	At      time.Time       `json:"at"`
	Nodes   []NodeOverview  `json:"nodes"`
	Silent  []string        `json:"silent"` // nodes and regions that did not answer
	Hottest []BucketSummary `json:"hottest"`
	Chaos   bool            `json:"chaos"` // the node that was asked makes cuts (/v1/cut)
	// Loads are the requests a second that it has regions get; absent: it makes no load
	// (/v1/rehearse).
	Loads map[string]int `json:"loads,omitempty"`
}

// NodeOverview is what one node told of itself.
type NodeOverview struct {
	Region    string       `json:"region"`
	Node      string       `json:"node"`
	Version   string       `json:"version"`
	Started   time.Time    `json:"started"`
	At        time.Time    `json:"at"` // when it told this, by its clock
	Ready     bool         `json:"ready"`
	NotReady  string       `json:"not_ready,omitempty"` // why it is not ready
	Epoch     string       `json:"epoch"`
	Documents []string     `json:"documents"` // open in its region
	Waiting   []string     `json:"waiting"`   // regions that must acknowledge a document
	Refused   string       `json:"file_refused,omitempty"`
	Mates     int          `json:"mates"`
	Store     NodeStore    `json:"store"`
	Recovery  int64        `json:"recovering"`     // buckets that wait to be restored
	Journal   string       `json:"journal"`        // whole, not_whole or failed
	Local     int64        `json:"local_unbooked"` // units admitted without the store, to charge
	Peers     []PeerStatus `json:"peers"`
	Limits    []NodeUse    `json:"limits"`
}

// NodeStore is what one node told of its region's store.
type NodeStore struct {
	Kind            string        `json:"kind"`
	Address         string        `json:"address"`
	ID              string        `json:"id"`
	Nodes           int64         `json:"nodes"` // of the region, by configuration
	OutOfReach      int           `json:"out_of_reach"`
	Refusing        []string      `json:"refusing"` // kinds of errors with which it refuses calls
	Stopped         string        `json:"stopped,omitempty"`
	Rivals          int           `json:"rivals"`
	LastLoss        time.Time     `json:"last_loss,omitzero"`
	Losses          int64         `json:"losses"`
	MaxmemoryPolicy string        `json:"maxmemory_policy,omitempty"`
	ClockApart      *Milliseconds `json:"clock_apart_ms,omitempty"`
}

// NodeUse is what one node decided of one limit since its start.
type NodeUse struct {
	Limit      string       `json:"limit"`
	Domain     string       `json:"domain"`
	Algorithm  string       `json:"algorithm"`
	LimitUnits int64        `json:"limit_units"`
	Window     Milliseconds `json:"window_ms"`
	Key        []string     `json:"key"`
	Shadow     bool         `json:"shadow,omitempty"`
	Admitted   int64        `json:"admitted_units"`
	Denied     int64        `json:"denied_units"`
}

// BucketSummary is one of the hottest buckets.
type BucketSummary struct {
	Limit       string            `json:"limit"`
	Domain      string            `json:"domain"`
	Descriptors map[string]string `json:"descriptors"`
	LimitUnits  int64             `json:"limit_units"`
	Admitted    int64             `json:"admitted_units"` // over the last half minute to minute
	Denied      int64             `json:"denied_units"`
	Used        int64             `json:"used"`
	Parts       []BucketPart      `json:"parts"`
}

// BucketPart is what one region holds of a bucket.
type BucketPart struct {
	Region      string `json:"region"`
	Entitlement int64  `json:"entitlement"`
	Share       int64  `json:"share"`
	Used        int64  `json:"used"`
	Free        int64  `json:"free"`
}

// newOverview returns an overview as JSON, with whether this node makes cuts.
func (s *Server) newOverview(r *quotadv1.OverviewResponse) Overview {
	o := newOverview(r)
	o.Chaos = s.cutter != nil
	if s.rehearsal != nil {
		o.Loads = s.rehearsal.Loads()
	}
	return o
}

func newOverview(r *quotadv1.OverviewResponse) Overview {
	return Overview{Region: r.GetRegion(), Node: r.GetNode(), At: r.GetAt().AsTime(),
		Silent: listed(r.GetSilent()), Nodes: each(r.GetNodes(), newNodeOverview),
		Hottest: each(r.GetHottest(), newBucketSummary)}
}

func newBucketSummary(b *quotadv1.BucketSummary) BucketSummary {
	parts := each(b.GetParts(), func(p *quotadv1.BucketPart) BucketPart {
		return BucketPart{p.GetRegion(), p.GetEntitlement(), p.GetShare(), p.GetUsed(), p.GetFree()}
	})
	return BucketSummary{Limit: b.GetLimit(), Domain: b.GetDomain(),
		Descriptors: b.GetDescriptors(), LimitUnits: b.GetLimitUnits(),
		Admitted: b.GetAdmittedUnits(), Denied: b.GetDeniedUnits(), Used: b.GetUsed(),
		Parts: parts}
}

func newNodeOverview(n *quotadv1.NodeView) NodeOverview {
	s := n.GetStatus()
	o := NodeOverview{Region: s.GetRegion(), Node: s.GetNode(), Version: s.GetVersion(),
		Started: n.GetStarted().AsTime(), At: n.GetAt().AsTime(), Ready: s.GetReady(),
		NotReady: n.GetNotReady(), Epoch: s.GetEpoch(), Documents: listed(s.GetDocuments().GetOpen()),
		Refused: s.GetDocuments().GetFileRefused(), Waiting: []string{}, Mates: len(s.GetMates()),
		Store: newNodeStore(s.GetStore()), Recovery: s.GetRecovery().GetWaiting(),
		Journal: "not_whole", Local: s.GetLocal().GetUnbooked()}
	switch {
	case s.GetJournal().GetFailed():
		o.Journal = "failed"
	case s.GetJournal().GetWhole():
		o.Journal = "whole"
	}
	for _, d := range s.GetDocuments().GetRegions() {
		if d.GetWaited() != nil {
			o.Waiting = append(o.Waiting, d.GetRegion())
		}
	}
	o.Peers = each(s.GetPeers(), func(p *quotadv1.Peer) PeerStatus {
		return PeerStatus{p.GetRegion(), p.GetHeard(), Milliseconds(p.GetAge().AsDuration()),
			Milliseconds(p.GetRoundTrip().AsDuration()), p.GetDegraded(),
			milliseconds(p.GetClockApart())}
	})
	o.Limits = each(n.GetLimits(), func(l *quotadv1.LimitView) NodeUse {
		return NodeUse{l.GetLimit(), l.GetDomain(), l.GetAlgorithm(), l.GetLimitUnits(),
			Milliseconds(l.GetWindow().AsDuration()), listed(l.GetKey()), l.GetShadow(),
			l.GetAdmittedUnits(), l.GetDeniedUnits()}
	})
	return o
}

func newNodeStore(s *quotadv1.StoreStatus) NodeStore {
	return NodeStore{Kind: s.GetKind(), Address: s.GetAddress(), ID: s.GetId(), Nodes: s.GetNodes(),
		OutOfReach: len(s.GetOutOfReach()), Stopped: s.GetStopped(),
		Refusing: each(s.GetRefusing(), (*quotadv1.StoreRefusal).GetKind),
		Rivals:   len(s.GetRivals()), LastLoss: timeOf(s.GetLastLoss()), Losses: s.GetLosses(),
		MaxmemoryPolicy: s.GetMaxmemoryPolicy(), ClockApart: milliseconds(s.GetClockApart())}
}

// milliseconds returns nil for an absent duration.
func milliseconds(d *durationpb.Duration) *Milliseconds {
	return apart(d.AsDuration(), d != nil)
}

// timeOf returns the zero time for an absent time.
func timeOf(at *timestamppb.Timestamp) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.AsTime()
}
