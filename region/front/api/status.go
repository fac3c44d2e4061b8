package api

import (
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/tenure"
)

// Status is region.Status as JSON.
type Status struct {
	Region     string           `json:"region"`
	Node       string           `json:"node"`
	Version    string           `json:"version"`
	Epoch      string           `json:"epoch"`
	Generation uint64           `json:"generation"`
	Ready      bool             `json:"ready"`
	NotReady   string           `json:"not_ready,omitempty"` // why it is not ready
	Unproven   bool             `json:"unproven,omitempty"`  // anybody could pass for another node
	Store      StoreStatus      `json:"store"`
	Recovery   RecoveryStatus   `json:"recovery"`
	Journal    JournalStatus    `json:"journal"`
	Local      LocalStatus      `json:"local"`
	Peers      []PeerStatus     `json:"peers"`
	Members    []string         `json:"members"`
	Mates      []string         `json:"mates"`
	Counters   map[string]int64 `json:"counters"`
	Roles      *RolesStatus     `json:"roles,omitempty"` // absent: there are none
	Documents  DocumentsStatus  `json:"documents"`
}

// RolesStatus is what the node knows of who may do what.
type RolesStatus struct {
	Callers int    `json:"callers"`           // in force
	Refused string `json:"refused,omitempty"` // why the roles file is not in force as it is now
}

type StoreStatus struct {
	Kind            string         `json:"kind"`
	Address         string         `json:"address"`
	Data            []string       `json:"data"`
	LastLoss        time.Time      `json:"last_loss,omitzero"` // absent: the store knows of none
	Losses          int64          `json:"losses"`
	OutOfReach      []string       `json:"out_of_reach"`
	MaxmemoryPolicy string         `json:"maxmemory_policy,omitempty"` // absent: not known
	ClockApart      *Milliseconds  `json:"clock_apart_ms,omitempty"`   // absent: not known
	Refusing        []StoreRefusal `json:"refusing"`
	ID              string         `json:"id"`
	Stopped         string         `json:"stopped,omitempty"` // why the node stopped using it
	Rivals          []StoreRival   `json:"rivals"`
	Nodes           int            `json:"nodes"` // of the region, by configuration
}

// StoreRival is a node of this region with another store.
type StoreRival struct {
	Node    string `json:"node"`
	ID      string `json:"id"`
	Stopped bool   `json:"stopped"` // it stopped using it
	Hearsay bool   `json:"hearsay"` // gossip alone says so
}

// StoreRefusal is one kind of call that the store's servers refuse.
type StoreRefusal struct {
	Kind   string `json:"kind"`
	Calls  int64  `json:"calls"` // since the node's start
	Advice string `json:"advice"`
}

type RecoveryStatus struct {
	Waiting     int64 `json:"waiting"`
	PartlyKnown int64 `json:"partly_known"`
	Recovered   int64 `json:"recovered"`
	// Limits have buckets that wait for what other nodes and regions know of a loss.
	Limits []RecoveringLimit `json:"limits"`
	// Closed has the limits of which requests were answered recovering lately.
	Closed []ClosedLimit `json:"closed"`
}

// ClosedLimit is a limit with buckets that are closed after a loss of the store's data.
type ClosedLimit struct {
	Limit string    `json:"limit"`
	Until time.Time `json:"until"` // when the last of those that were asked for is opened
}

type JournalStatus struct {
	Incarnation uint64    `json:"incarnation"`
	Sequence    uint64    `json:"sequence"`
	Rows        uint64    `json:"rows"`
	Checkpoints uint64    `json:"checkpoints"`
	Whole       bool      `json:"whole"`
	WholeSince  time.Time `json:"whole_since,omitzero"` // absent: from the start, or not whole
	Failed      bool      `json:"failed"`
}

type LocalStatus struct {
	Buckets  int            `json:"buckets"`
	Units    quantity.Units `json:"units"`
	Unbooked int64          `json:"unbooked"`
}

// PeerStatus is another region as one node sees it.
type PeerStatus struct {
	Region     string        `json:"region"`
	Heard      bool          `json:"heard"`
	Age        Milliseconds  `json:"age_ms"`
	RoundTrip  Milliseconds  `json:"round_trip_ms"`
	Degraded   bool          `json:"degraded"`
	ClockApart *Milliseconds `json:"clock_apart_ms,omitempty"` // absent: not known
}

func newStatus(s region.Status, notReady error) Status {
	a := Status{Region: s.Region, Node: s.Node, Version: version(), Epoch: s.Epoch,
		Generation: s.Generation, Ready: notReady == nil, NotReady: textOf(notReady),
		Unproven: s.Unproven,
		Store:    newStoreAnswer(s.Store),
		Journal:  newJournalAnswer(s.Journal), Local: LocalStatus{s.Local.Buckets, s.Local.Units,
			s.Local.Unbooked},
		Recovery: RecoveryStatus{Waiting: s.Exchange.Recovering - s.Exchange.PartlyKnown,
			PartlyKnown: s.Exchange.PartlyKnown,
			Recovered:   s.Exchange.Recovered, Closed: each(s.Closed, newClosedLimit),
			Limits: each(s.Recovering, newRecoveringLimit)},
		Peers: each(s.Peers, newPeerStatus), Members: listed(s.Members), Mates: listed(s.Mates),
		Counters: map[string]int64{}, Documents: newDocuments(s.Documents)}
	for _, c := range s.Counters() {
		a.Counters[c.Name] = c.Value
	}
	return a
}

// RecoveringLimit is a limit with buckets that wait for what others know of a loss.
type RecoveringLimit struct {
	Limit   string         `json:"limit"`
	Buckets int            `json:"buckets"` // that requests asked this node for
	Since   time.Time      `json:"since"`   // when the first of them was lost, by the store's clock
	Units   quantity.Units `json:"units"`   // the most that the region is entitled to of one of them
}

func newRecoveringLimit(r region.Recovering) RecoveringLimit {
	return RecoveringLimit{r.Limit, r.Buckets, r.Since.UTC(), r.Units}
}

func newClosedLimit(c admit.Closed) ClosedLimit { return ClosedLimit{c.Limit, c.Until.UTC()} }

func newPeerStatus(p region.Peer) PeerStatus {
	return PeerStatus{p.Region, p.Heard, Milliseconds(p.Age), Milliseconds(p.RoundTrip), p.Degraded,
		apart(p.ClockApart, p.ClockKnown)}
}

func newStoreAnswer(s region.StoreStatus) StoreStatus {
	others := []StoreRival{}
	for _, r := range s.Rivals {
		others = append(others, StoreRival{r.Node, r.Origin.ID, r.Stopped, r.Hearsay})
	}
	return StoreStatus{ID: s.ID, Stopped: textOf(s.Stopped), Rivals: others, Nodes: s.Nodes,
		Kind: s.Kind, Address: s.Address, Data: listed(s.Data),
		LastLoss: s.LastLoss.UTC(), Losses: s.Losses,
		OutOfReach: listed(s.OutOfReach), MaxmemoryPolicy: s.Eviction,
		ClockApart: apart(s.ClockApart, s.ClockKnown),
		Refusing: each(s.Refusing, func(r tenure.Refusal) StoreRefusal {
			return StoreRefusal(r)
		})}
}

func newJournalAnswer(j region.JournalStatus) JournalStatus {
	j.WholeSince = j.WholeSince.UTC()
	return JournalStatus(j)
}

// each returns what a function makes of each element. It returns an empty list for nil, so that
// JSON has [] and not null.
func each[A, B any](all []A, of func(A) B) []B {
	made := make([]B, len(all))
	for i, one := range all {
		made[i] = of(one)
	}
	return made
}

// listed returns an empty list for nil, so that JSON has [] and not null.
func listed(all []string) []string { return append([]string{}, all...) }

// apart returns how far two times are apart, in whole milliseconds, or nil if that is not known.
func apart(d time.Duration, known bool) *Milliseconds {
	if !known {
		return nil
	}
	ms := Milliseconds(d.Round(time.Millisecond))
	return &ms
}
