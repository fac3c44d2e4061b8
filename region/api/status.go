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

// bucketAnswer is region.Bucket as JSON.
type bucketAnswer struct {
	Limit       string         `json:"limit"`
	LimitUnits  int64          `json:"limit_units"`
	Entitlement int64          `json:"entitlement"`
	Share       int64          `json:"share"`
	NextShare   int64          `json:"next_share"`
	Cell        int64          `json:"cell"`
	Used        int64          `json:"used"`
	Rights      []rightsAnswer `json:"rights"`
}

type rightsAnswer struct {
	Cell     int64  `json:"cell"`
	Region   string `json:"region"`
	Lent     int64  `json:"lent"`
	Returned int64  `json:"returned"`
	Borrowed int64  `json:"borrowed"`
	Regained int64  `json:"regained"`
}

func newBucket(b region.Bucket) bucketAnswer {
	found := b.Inspected
	a := bucketAnswer{Limit: b.Limit.Name, LimitUnits: b.Limit.Limit, Entitlement: b.F, Share: found.Share,
		NextShare: found.NextShare, Cell: found.Cell, Used: found.Used, Rights: []rightsAnswer{}}
	for _, r := range found.Rows {
		a.Rights = append(a.Rights, rightsAnswer{r.Cell, r.Peer, r.Lent, r.Returned, r.Borrowed, r.Regained})
	}
	return a
}
