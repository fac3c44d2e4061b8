package sim

import (
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/store"
)

// region is one region: a store, and nodes.
type region struct {
	w          *world
	index      int
	name       string
	store      server
	nodes      []*node
	ahead      int64                 // of its clocks, µs
	drift      int64                 // parts per million
	alone      int64                 // since when it was cut off from all others; -1: it is not
	losses     int                   // of its store's data
	lost       int64                 // when it last lost some, µs; 0: never
	lostBefore int64                 // and when before that
	down       int                   // acts that keep its store from answering
	once       map[string]int64      // requests by name that it admitted, and when
	storeAhead int64                 // of its store's clock, µs, beyond that
	generation uint64                // of its store, as a node stood under last
	shown      map[store.Shard]int64 // the latest store time of a decision, µs since 1970
	stale      bool                  // its store was put back, and nobody has opened it since
	each       int64                 // how long its store takes for a call, µs; 0: no time
	backAt     int64                 // when a copy of it was last put back, µs
	behind     map[*node]int         // who had heard nothing later then, and in which life
	sticks     map[int][]*node       // by key: where its requests go, the latest last
}

func newRegion(w *world, i int, d *policy.Document) (*region, error) {
	p := w.plan.Regions[i]
	r := &region{w: w, index: i, name: p.Name, ahead: p.Ahead, drift: p.Drift, alone: -1, once: map[string]int64{}, sticks: map[int][]*node{}, shown: map[store.Shard]int64{}}
	var err error
	if r.store, err = w.newServer(r); err != nil {
		return nil, err
	}
	for k := range p.Nodes {
		r.nodes = append(r.nodes, newNode(r, k, d))
	}
	return r, nil
}

// clock is the time that the region's clocks show, µs since 1970: its store's and its nodes'.
func (r *region) clock() int64 { return r.w.wall() + r.ahead + r.w.now/1000*r.drift/1000 }

// time is what the node's clock shows.
func (n *node) time() time.Time { return time.UnixMicro(n.r.clock() + n.ahead) }
