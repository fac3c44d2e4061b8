package api

import "github.com/quotad/quotad/region"

// statusAnswer is region.Status as JSON.
type statusAnswer struct {
	Region     string           `json:"region"`
	Node       string           `json:"node"`
	Version    string           `json:"version"`
	Epoch      string           `json:"epoch"`
	Generation uint64           `json:"generation"`
	Ready      bool             `json:"ready"`
	NotReady   string           `json:"not_ready,omitempty"` // why
	Peers      []peerAnswer     `json:"peers"`
	Members    []string         `json:"members"`
	Counters   map[string]int64 `json:"counters"`
}

type peerAnswer struct {
	Region    string       `json:"region"`
	Heard     bool         `json:"heard"`
	Age       milliseconds `json:"age_ms"`
	RoundTrip milliseconds `json:"round_trip_ms"`
	Degraded  bool         `json:"degraded"`
}

func newStatus(s region.Status, notReady error) statusAnswer {
	a := statusAnswer{Region: s.Region, Node: s.Node, Version: version(), Epoch: s.Epoch, Generation: s.Generation,
		Ready: notReady == nil, Peers: []peerAnswer{}, Members: append([]string{}, s.Members...), Counters: map[string]int64{}}
	if notReady != nil {
		a.NotReady = notReady.Error()
	}
	for _, p := range s.Peers {
		a.Peers = append(a.Peers, peerAnswer{p.Region, p.Heard, milliseconds(p.Age), milliseconds(p.RoundTrip), p.Degraded})
	}
	for _, c := range s.Counters() {
		a.Counters[c.Name] = c.Value
	}
	return a
}
