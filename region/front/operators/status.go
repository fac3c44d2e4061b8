package operators

import (
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/memory/tenure"
)

// status answers with all that the node knows of itself.
func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	known := s.node.Status()
	answer := statusMessage(known, s.life.Ready())
	answer.Unproven, answer.Members = asjson.Some(known.Unproven), known.Members
	if book := s.options.Roles; book != nil {
		answer.Roles = &quotadv1.RolesStatus{Callers: int64(book.Callers().Count()), Refused: asjson.Some(book.Fault())}
	}
	answer.Counters = map[string]int64{}
	for _, c := range known.Counters() {
		answer.Counters[c.Name] = c.Value
	}
	answer.Documents.Limits = wire.Each(known.Documents.Limits, heldMessage)
	wire.Write(w, "application/json", http.StatusOK, answer)
}

// statusMessage returns what other nodes are told of a status, and operators of this node as well.
func statusMessage(s region.Status, notReady error) *quotadv1.StatusResponse {
	return &quotadv1.StatusResponse{Region: s.Region, Node: s.Node, Version: version(),
		Epoch:      s.Epoch,
		Generation: s.Generation, Ready: notReady == nil, NotReady: asjson.Some(textOf(notReady)), Mates: s.Mates,
		Store: storeMessage(s.Store), Journal: journalMessage(s.Journal),
		Recovery: &quotadv1.RecoveryStatus{Waiting: s.Exchange.Recovering - s.Exchange.PartlyKnown,
			PartlyKnown: s.Exchange.PartlyKnown, Recovered: s.Exchange.Recovered,
			Closed: wire.Each(s.Closed, func(c admit.Closed) *quotadv1.ClosedLimit {
				return &quotadv1.ClosedLimit{Limit: c.Limit, Until: timestamppb.New(c.Until)}
			}),
			Limits: wire.Each(s.Recovering, recoveringMessage)},
		Local: &quotadv1.LocalStatus{Buckets: int64(s.Local.Buckets), Units: int64(s.Local.Units),
			Unbooked: s.Local.Unbooked},
		Documents: documentsMessage(s.Documents),
		Peers: wire.Each(s.Peers, func(p region.Peer) *quotadv1.Peer {
			return &quotadv1.Peer{Region: p.Region, Heard: p.Heard, Age: durationpb.New(p.Age),
				RoundTrip: durationpb.New(p.RoundTrip), Degraded: p.Degraded,
				ClockApart: ifKnown(p.ClockApart, p.ClockKnown)}
		})}
}

func recoveringMessage(r region.Recovering) *quotadv1.RecoveringLimit {
	return &quotadv1.RecoveringLimit{Limit: r.Limit, Buckets: int64(r.Buckets), Units: int64(r.Units),
		Since: timestamppb.New(r.Since)}
}

func storeMessage(s region.StoreStatus) *quotadv1.StoreStatus {
	var others []*quotadv1.StoreRival
	for _, r := range s.Rivals {
		others = append(others, &quotadv1.StoreRival{Node: r.Node, Id: r.Origin.ID,
			Stopped: r.Stopped, Hearsay: r.Hearsay})
	}
	return &quotadv1.StoreStatus{Id: s.ID, Stopped: asjson.Some(textOf(s.Stopped)), Rivals: others,
		Nodes: int64(s.Nodes), Kind: s.Kind, Address: s.Address, Data: s.Data,
		LastLoss: ifSet(s.LastLoss), Losses: s.Losses,
		OutOfReach: s.OutOfReach, MaxmemoryPolicy: asjson.Some(s.Eviction), ClockApart: ifKnown(s.ClockApart,
			s.ClockKnown),
		Refusing: wire.Each(s.Refusing, func(r tenure.Refusal) *quotadv1.StoreRefusal {
			return &quotadv1.StoreRefusal{Kind: r.Kind, Calls: r.Calls, Advice: r.Advice}
		})}
}

func journalMessage(j region.JournalStatus) *quotadv1.JournalStatus {
	return &quotadv1.JournalStatus{Incarnation: j.Incarnation, Sequence: j.Sequence, Rows: j.Rows,
		Checkpoints: j.Checkpoints,
		Whole:       j.Whole, WholeSince: ifSet(j.WholeSince), Failed: j.Failed}
}

// ifKnown returns how far two clocks are apart, in whole milliseconds, or nil if that is not known.
func ifKnown(d time.Duration, known bool) *durationpb.Duration {
	if !known {
		return nil
	}
	return durationpb.New(d.Round(time.Millisecond))
}

// ifSet returns nil for the zero time.
func ifSet(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// version returns the version of the build: a release's tag, "(devel)", or "unknown" if the build
// has no module version.
var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
})
