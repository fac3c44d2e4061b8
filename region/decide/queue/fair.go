package queue

import (
	"github.com/quotad/quotad/policy"
)

const (
	// queueLength bounds the requests that wait for a server. When it is reached, the newest
	// request of the longest flow is refused. That is the newcomer if it belongs to that flow.
	queueLength = 8192
	// flowsOfLimit is the number of flows over which the buckets of one caller and limit are
	// spread, by hash. It is so large that a bucket hardly ever shares its flow with one that is
	// flooded. There are never more flows than requests.
	flowsOfLimit = 1 << 16
	// scriptWork is the work of a script call for each bucket. joinWork is the work of a further
	// request on the same buckets in the same script call. The measured ratio is 7 to 9.
	scriptWork, joinWork = 8, 1
	// quantum is the work that a flow may have done in one turn.
	quantum = scriptWork
	// maxCompared bounds the flows that are compared at each level of the tree to find a long one.
	maxCompared = 64
	// maxSpareFlows bounds the empty flows that are kept for reuse.
	maxSpareFlows = 1024
)

// flowID names a node of the tree. A caller's node has neither limit nor hash, a limit's node has
// no hash, a leaf has all three.
type flowID struct {
	caller string
	limit  *policy.Limit
	hash   int // of a leaf, 1 to flowsOfLimit; else 0
}

// flow is a node of the tree, and exists while requests wait below it. A leaf holds requests in
// order of arrival. Every other node shares its turns among its children.
type flow struct {
	id            flowID
	parent        *flow
	before, after *flow // the neighbours in the ring of the parent's children
	turn          *flow // the child that is served next; nil: it has none
	children      int64
	work          int64 // of the requests that wait below it
	credit        int64 // work that it may still have done in its turn

	requests []Ask // of a leaf: the elements from first on wait
	first    int
	trip     uint64 // of a leaf: the last round trip that took a request of it
}

// fairQueue is deficit round robin in a tree. Callers take turns, then the limits of a caller, then
// flows of buckets by hash. Each turn is worth the same work. So one flooded key, limit or caller
// delays others by no more than its own share. A flow exists only while it holds requests. Not safe
// for concurrent use.
type fairQueue struct {
	root   flow
	flows  map[flowID]*flow
	spare  []*flow
	length int    // requests
	most   int    // upper bound of length
	trip   uint64 // number of the present round trip
}

func newFairQueue(most int) *fairQueue {
	return &fairQueue{flows: map[flowID]*flow{}, most: most}
}

// flowOf returns the leaf to which a request belongs.
func flowOf(w *Ask) flowID {
	if len(w.Applied) == 0 {
		return flowID{caller: w.Caller, hash: 1}
	}
	return flowID{caller: w.Caller, limit: w.Applied[0].Limit, hash: 1 + int(w.hash%flowsOfLimit)}
}

// push puts a request at the end of its flow. If the queue is full, it removes the newest request
// of the longest flow and returns it. That may be the newcomer.
func (q *fairQueue) push(w Ask) (gone Ask, full bool) {
	w.work = q.workOf(&w)
	id := flowOf(&w)
	if q.length >= q.most {
		long := q.longerThan(id, w.work)
		if long == nil {
			return w, true
		}
		gone, full = q.removeNewest(long), true
	}
	leaf := q.leaf(id)
	leaf.requests = append(leaf.requests, w)
	q.length++
	for f := leaf; f != nil; f = f.parent {
		f.work += w.work
	}
	return gone, full
}

// workOf returns the work of a request at the end of its flow.
func (q *fairQueue) workOf(w *Ask) int64 {
	buckets := max(int64(len(w.Applied)), 1)
	if leaf := q.flows[flowOf(w)]; leaf != nil && leaf.requests[len(leaf.requests)-1].shares(w) {
		return joinWork * buckets
	}
	return scriptWork * buckets
}

// leaf returns the flow of an id, and makes it if it does not exist.
func (q *fairQueue) leaf(id flowID) *flow {
	if f := q.flows[id]; f != nil {
		return f
	}
	parent := &q.root
	switch {
	case id.hash != 0:
		parent = q.leaf(flowID{caller: id.caller, limit: id.limit})
	case id.limit != nil:
		parent = q.leaf(flowID{caller: id.caller})
	}
	f := q.fresh()
	f.id, f.parent, f.credit = id, parent, quantum
	q.flows[id] = f
	parent.enter(f)
	return f
}

// fresh returns an empty flow.
func (q *fairQueue) fresh() *flow {
	last := len(q.spare) - 1
	if last < 0 {
		return &flow{}
	}
	f := q.spare[last]
	q.spare = q.spare[:last]
	return f
}

// enter makes a child the last in the round.
func (f *flow) enter(child *flow) {
	f.children++
	if f.turn == nil {
		f.turn, child.before, child.after = child, child, child
		return
	}
	child.before, child.after = f.turn.before, f.turn
	child.before.after, child.after.before = child, child
}

// leave removes a child from the round.
func (f *flow) leave(child *flow) {
	f.children--
	if f.children == 0 {
		f.turn = nil
		return
	}
	if f.turn == child {
		f.turn = child.after
	}
	child.before.after, child.after.before = child.after, child.before
}

// next returns the leaf whose turn it is, nil if no request waits.
func (q *fairQueue) next() *flow {
	f := &q.root
	if f.turn == nil {
		return nil
	}
	for f.turn != nil {
		for f.turn.credit <= 0 {
			f.turn.credit += quantum
			f.turn = f.turn.after
		}
		f = f.turn
	}
	return f
}

// cost returns the work of a flow's first request in this round trip. A request that would have
// joined the script call of the one before it needs a script call of its own if that one left with
// an earlier round trip.
func (q *fairQueue) cost(leaf *flow) int64 {
	w := &leaf.requests[leaf.first]
	if leaf.trip == q.trip {
		return w.work
	}
	return max(w.work, scriptWork*int64(len(w.Applied)))
}

// take removes the first request of a flow whose turn it is, and charges its work to the flow.
func (q *fairQueue) take(leaf *flow) Ask {
	cost := q.cost(leaf)
	leaf.trip = q.trip
	for f := leaf; f != nil; f = f.parent {
		f.credit -= cost
	}
	return q.drop(leaf)
}

// drop removes the first request of a flow and charges nothing.
func (q *fairQueue) drop(leaf *flow) Ask {
	w := leaf.requests[leaf.first]
	leaf.requests[leaf.first] = Ask{}
	leaf.first++
	q.lighter(leaf, w.work)
	return w
}

// removeNewest removes the last request of a flow.
func (q *fairQueue) removeNewest(leaf *flow) Ask {
	last := len(leaf.requests) - 1
	w := leaf.requests[last]
	leaf.requests[last] = Ask{}
	leaf.requests = leaf.requests[:last]
	q.lighter(leaf, w.work)
	return w
}

// lighter subtracts the work of a request that left a flow, and removes the nodes that are empty
// now.
func (q *fairQueue) lighter(leaf *flow, work int64) {
	q.length--
	for f := leaf; f != nil; {
		parent := f.parent
		f.work -= work
		if empty := f.turn == nil && f.first == len(f.requests); empty && parent != nil {
			parent.leave(f)
			delete(q.flows, f.id)
			q.keep(f)
		}
		f = parent
	}
	// The waiting requests are moved to the front only now and then.
	if waits := leaf.requests[leaf.first:]; leaf.first > 32 && leaf.first > len(waits) {
		n := copy(leaf.requests, waits)
		clear(leaf.requests[n:])
		leaf.requests, leaf.first = leaf.requests[:n], 0
	}
}

// maxSpareRequests bounds the capacity for requests that a spare flow keeps.
const maxSpareRequests = 8

// keep keeps an empty flow for reuse.
func (q *fairQueue) keep(f *flow) {
	room := f.requests[:0]
	if cap(room) > maxSpareRequests {
		room = nil
	}
	*f = flow{requests: room}
	if len(q.spare) < maxSpareFlows {
		q.spare = append(q.spare, f)
	}
}

// longerThan returns the flow that must give up a request when another one comes to a full queue:
// the longest flow of the limit with most work of the caller with most work. It returns nil if the
// new request itself has to go, because its own caller, limit and flow are the longest.
func (q *fairQueue) longerThan(id flowID, work int64) *flow {
	own := [...]flowID{{caller: id.caller}, {caller: id.caller, limit: id.limit}, id}
	// among is true while the new request would wait below f.
	f, depth, among := &q.root, 0, true
	for f.turn != nil {
		long := f.longest()
		if mine := q.flows[own[depth]]; among && mine != long {
			if mine != nil {
				work += mine.work
			}
			if work > long.work {
				return nil
			}
			among = false
		}
		f = long
		depth++
	}
	if among {
		return nil
	}
	return f
}

// longest returns the child with most work, among the first maxCompared children.
func (f *flow) longest() *flow {
	long, one := f.turn, f.turn.after
	for range min(f.children, maxCompared) - 1 {
		if one.work > long.work {
			long = one
		}
		one = one.after
	}
	return long
}
