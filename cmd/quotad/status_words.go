package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/region/store"
)

// nodeStatus is the part of the API's answer that is printed.
type nodeStatus struct {
	Region     string           `json:"region"`
	Node       string           `json:"node"`
	Version    string           `json:"version"`
	Epoch      string           `json:"epoch"`
	Generation uint64           `json:"generation"`
	Ready      bool             `json:"ready"`
	NotReady   string           `json:"not_ready"`
	Store      storeStatus      `json:"store"`
	Recovery   recoveryStatus   `json:"recovery"`
	Journal    journalStatus    `json:"journal"`
	Local      localStatus      `json:"local"`
	Peers      []peerStatus     `json:"peers"`
	Members    []string         `json:"members"`
	Mates      []string         `json:"mates"`
	Counters   map[string]int64 `json:"counters"`
}

type storeStatus struct {
	Kind            string    `json:"kind"`
	Address         string    `json:"address"`
	Data            []string  `json:"data"`
	LastLoss        time.Time `json:"last_loss"`
	OutOfReach      []string  `json:"out_of_reach"`
	MaxmemoryPolicy string    `json:"maxmemory_policy"`
	ClockApart      *float64  `json:"clock_apart_ms"`
	Refusing        []refusal `json:"refusing"`
}

// refusal is one kind of call that the store's servers refuse.
type refusal struct {
	Kind   string `json:"kind"`
	Calls  int    `json:"calls"`
	Advice string `json:"advice"`
}

// where says which store it is.
func (s storeStatus) where(generation uint64) string {
	text := fmt.Sprintf("%s %s, generation %d", show.Name(s.Kind), show.Name(s.Address), generation)
	if len(s.Data) > 0 {
		text += ", data " + strings.Join(show.Names(s.Data), " ")
	}
	return text
}

// state says in words how the store is.
func (s storeStatus) state() string {
	var parts []string
	if len(s.OutOfReach) > 0 {
		parts = append(parts, "OUT OF REACH: "+strings.Join(show.Names(s.OutOfReach), " ")+", decided as on_store_failure says")
	}
	for _, r := range s.Refusing {
		parts = append(parts, fmt.Sprintf("REFUSES CALLS: %s (%d so far; %s)", show.Name(r.Kind), r.Calls, show.Name(r.Advice)))
	}
	if len(parts) == 0 {
		parts = append(parts, "in reach")
	}
	if s.LastLoss.IsZero() {
		parts = append(parts, "no loss known")
	} else {
		parts = append(parts, "last lost data at "+s.LastLoss.Format(time.RFC3339))
	}
	switch s.MaxmemoryPolicy {
	case "":
		parts = append(parts, "maxmemory-policy not known")
	case store.NoEviction:
		parts = append(parts, store.NoEviction)
	default:
		parts = append(parts, "MAY FORGET BUCKETS: set maxmemory-policy noeviction, it is "+show.Name(s.MaxmemoryPolicy))
	}
	if s.ClockApart != nil {
		parts = append(parts, "clock "+ahead(*s.ClockApart))
	}
	return strings.Join(parts, ", ")
}

type recoveryStatus struct {
	Waiting     int64 `json:"waiting"`
	PartlyKnown int64 `json:"partly_known"`
	Recovered   int64 `json:"recovered"`
}

func (r recoveryStatus) words() string {
	if r == (recoveryStatus{}) {
		return "nothing to restore"
	}
	return fmt.Sprintf("%s waiting, %d restored, %d of them but for regions that did not tell",
		show.Counted(int(r.Waiting), "bucket"), r.Recovered, r.PartlyKnown)
}

type journalStatus struct {
	Incarnation uint64    `json:"incarnation"`
	Sequence    uint64    `json:"sequence"`
	Rows        uint64    `json:"rows"`
	Checkpoints uint64    `json:"checkpoints"`
	Whole       bool      `json:"whole"`
	WholeSince  time.Time `json:"whole_since"`
	Failed      bool      `json:"failed"`
}

func (j journalStatus) words() string {
	whole := "whole"
	switch {
	case j.Failed:
		whole = "FAILED: nothing is lent until the node starts anew"
	case !j.Whole:
		whole = "not known to be whole"
	case !j.WholeSince.IsZero():
		whole = "whole since " + j.WholeSince.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, opened %s, commit %d, %s, %s", whole, show.Counted(int(j.Incarnation), "time"), j.Sequence,
		show.Counted(int(j.Rows), "row"), show.Counted(int(j.Checkpoints), "checkpoint"))
}

type localStatus struct {
	Buckets  int   `json:"buckets"`
	Units    int64 `json:"units"`
	Unbooked int64 `json:"unbooked"`
}

func (l localStatus) words() string {
	if l.Units == 0 {
		return "nothing admitted without the store"
	}
	return fmt.Sprintf("%s of %s admitted without the store, %d not booked there yet",
		show.Counted(int(l.Units), "unit"), show.Counted(l.Buckets, "bucket"), l.Unbooked)
}

type peerStatus struct {
	Region     string   `json:"region"`
	Heard      bool     `json:"heard"`
	Age        float64  `json:"age_ms"`
	RoundTrip  float64  `json:"round_trip_ms"`
	Degraded   bool     `json:"degraded"`
	ClockApart *float64 `json:"clock_apart_ms"`
}

func (p peerStatus) row() string {
	state, clock := "ok", "-"
	if p.Degraded {
		state = "degraded"
	}
	if p.ClockApart != nil {
		clock = ahead(*p.ClockApart)
	}
	if !p.Heard {
		return show.Name(p.Region) + "\t" + state + "\tnever\t-\t" + clock
	}
	return fmt.Sprintf("%s\t%s\t%s ago\t%s\t%s", show.Name(p.Region), state, show.Milliseconds(p.Age), show.Milliseconds(p.RoundTrip), clock)
}

// ahead says how far a clock is ahead of another, or behind it.
func ahead(ms float64) string {
	if ms < 0 {
		return show.Milliseconds(-ms).String() + " behind"
	}
	return show.Milliseconds(ms).String() + " ahead"
}
