package sim

import (
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// region is a region with its store and nodes.
type region struct {
	w     *world
	index int
	name  string
	store server
	nodes []*node
	size  int   // how many nodes it has, as their files say
	ahead int64 // of its clocks, µs
	// farthest is how far ahead any of its clocks ever was, and changed when a node last opened or
	// closed documents, µs.
	farthest, changed int64
	drift             int64 // of its clocks, parts per million
	// since when it is cut off from all others, µs; -1: it is not
	alone      int64
	losses     int              // number of losses of its store's data
	lost       int64            // when its store last lost data, µs; 0: never
	left       map[string]int64 // names under which no node goes on any more, and since when, µs
	lostBefore int64            // the loss before that one
	// number of acts that keep its store from answering
	down       int
	once       map[string]int64 // when it admitted requests with a request_id
	storeAhead int64            // of its store's clock, µs, in addition to ahead
	generation uint64           // of its store, when a node last opened it
	// the latest store time of a decision, µs since 1970
	shown     map[store.Shard]quantity.StoreTime
	began     quantity.StoreTime // the latest at which its store's time may have begun after the last loss
	emptied   bool               // its store has lost data, and no node has opened it since
	begun     uint64             // a generation by which no node stood yet when one decided under it
	openings  []opening          // attempts since, of which one may have taken effect
	replyLost int64              // when a reply of its store was last to be lost, µs
	stale     bool               // its store was put back, and no node has opened it since
	hindered  int64              // when the store was last answering everybody in time before it did not, µs
	// unconfirmed: a replica that has all was promoted, and no node has opened it since. What it does
	// stands, and its answers do not count.
	unconfirmed bool
	each        int64           // time its store takes for a call, µs, in addition to the plan's
	silent      []int           // of each server of its store: number of acts that silence it
	troubled    []int64         // of each server of its store: see troubles
	back        copied          // the copy that was last put back
	backAt      int64           // when a copy of it was last put back, µs
	behind      map[*node]int   // nodes that knew nothing later at backAt, and their lives
	open        []int64         // versions of the documents that are open in it
	ended       int64           // the life that comes after those that a fence has ended
	judged      int64           // ended, when it was last looked at
	unaware     int64           // since when it does not know that it is fenced, µs; -1: it is not so
	spoken      bool            // an operator gave his word about losses
	word        int64           // when the operator's word last ended its waits, µs; 0: never
	undisturbed int64           // since when nothing went wrong in it, µs
	sticks      map[int][]*node // by key: the nodes its requests go to; the last one counts
}

func newRegion(w *world, i int, d *policy.Document) (*region, error) {
	p := w.plan.Regions[i]
	r := &region{w: w, index: i, name: p.Name, size: p.Nodes, ahead: p.Ahead, drift: p.Drift, alone: -1,
		once: map[string]int64{}, left: map[string]int64{}, replyLost: -2 * beat, sticks: map[int][]*node{}, unaware: -1,
		shown: map[store.Shard]quantity.StoreTime{}}
	r.silent, r.troubled = make([]int, max(len(p.Servers), 1)), make([]int64, max(len(p.Servers), 1))
	if has(d, r.name) {
		r.open = []int64{1}
	}
	var err error
	if r.store, err = w.newServer(r); err != nil {
		return nil, err
	}
	for k := range p.Nodes {
		r.nodes = append(r.nodes, newNode(r, k, d))
	}
	return r, nil
}

// clock returns the time that the region's clocks show, µs since 1970, without storeAhead.
func (r *region) clock() quantity.StoreTime {
	return quantity.StoreTime(r.w.wall() + r.ahead + r.w.now/1000*r.drift/1000)
}

// time returns what the node's clock shows.
func (n *node) time() time.Time { return time.UnixMicro(int64(n.r.clock().Add(n.ahead))) }
