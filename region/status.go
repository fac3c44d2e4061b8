package region

import (
	"context"
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/store"
)

// Status describes a node and what it knows of the others.
type Status struct {
	Region     string
	Node       string
	Epoch      string
	Generation uint64
	NotReady   error
	Peers      []Peer
	Members    []string
	Exchange   exchange.Stats
	Dropped    int64 // events lost to a full queue
	HintsLost  int64 // hints not kept, because too many were
}

// Peer is another region as this node sees it.
type Peer struct {
	Region    string
	Heard     bool
	Age       time.Duration // since the last answered call was sent
	RoundTrip time.Duration
	Degraded  bool
}

// Status returns the node's state of this moment.
func (n *Node) Status() Status {
	ages, stats, dropped := n.engine.snapshot()
	s := Status{Region: n.config.Region, Node: n.config.Node, Epoch: n.rules.Load().epoch, Generation: n.store.Generation(),
		NotReady: n.Ready(), Members: n.Members(), Exchange: stats, Dropped: dropped, HintsLost: n.hints.lost()}
	for _, a := range ages {
		s.Peers = append(s.Peers, Peer{Region: a.Peer, Heard: a.Heard, Age: microseconds(a.Age),
			RoundTrip: microseconds(a.RoundTrip), Degraded: a.Degraded})
	}
	return s
}

// Bucket is the ledger of one bucket in this region.
type Bucket struct {
	Limit     *policy.Limit
	Terms     algorithms.Terms // for this region
	Inspected algorithms.Inspected
}

// Bucket reads the ledger of the bucket that a limit makes of the descriptors.
func (n *Node) Bucket(ctx context.Context, limit, domain string, descriptors map[string]string) (Bucket, error) {
	if err := (Request{Domain: domain, Descriptors: descriptors, Cost: 1}).Validate(); err != nil {
		return Bucket{}, err
	}
	r := n.rules.Load()
	l, b, err := r.locate(limit, domain, descriptors)
	if err != nil {
		return Bucket{}, err
	}
	t := b.Terms(r.region)
	found, err := n.store.Inspect(ctx, algorithms.Inspect{Guard: algorithms.Guard{Epoch: r.epoch}, Key: store.BucketKey(b.ID), Terms: t})
	if err == nil && found.Status != algorithms.StatusOK {
		err = fmt.Errorf("read bucket: %s", found.Status)
	}
	return Bucket{Limit: l, Terms: t, Inspected: found}, err
}
