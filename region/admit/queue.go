package admit

import (
	"github.com/quotad/quotad/policy"
)

const (
	// queueLength bounds the requests that wait for the store. When it is reached, the newest request of the longest
	// flow is refused, or the newcomer if it belongs to that flow.
	queueLength = 8192
	// flowsOfLimit is how many flows the buckets of one caller and limit are spread over, by hash: so many that hardly any
	// has a flooding one beside it. There are never more flows than requests.
	flowsOfLimit = 1 << 16
	// scriptWork is what a script call costs for each bucket, in units of work; joinWork is what a request costs that is
	// decided by the script call of the one before it, on the same buckets. The measured ratio is 7 to 9.
	scriptWork, joinWork = 8, 1
	// quantum is the work that a flow may have done before it is the next one's turn.
	quantum = scriptWork
	// maxCompared bounds how many flows are looked at to find a long one, at each level of the tree.
	maxCompared = 64
	// maxSpareFlows bounds the flows kept for use again after they emptied.
	maxSpareFlows = 1024
)

// flowID names a node of the tree: a caller has no limit, a limit has no hash, a flow has all three.
type flowID struct {
	caller string
	limit  *policy.Limit
	hash   int // 1 to flowsOfLimit; 0: a caller or a limit
}

// flow is a node of the tree while requests wait below it. A leaf holds them in order of arrival; the others share their
// turn among their children.
type flow struct {
	id            flowID
	parent        *flow
	before, after *flow // the neighbours in the ring of the parent's children
	turn          *flow // the child that is served next; nil: it has none
	children      int64
	work          int64 // that waits below it
	credit        int64 // work that it may still have done before it is the next one's turn

	requests []waiting // of a leaf: those from first on wait
	first    int
	trip     uint64 // of a leaf: the round trip that last took of it
}

// fairQueue is deficit round robin in a tree: callers take turns, then the limits of a caller, then flows of buckets by
// hash, each turn worth the same work. One flooding key, limit or caller therefore delays others by no more than its share.
// A flow exists only while it holds something. Not safe for concurrent use.
type fairQueue struct {
	root   flow
	flows  map[flowID]*flow
	spare  []*flow
	length int // requests
	most   int // that length may be
	trip   uint64
}

func newFairQueue(most int) *fairQueue {
	return &fairQueue{flows: map[flowID]*flow{}, most: most}
}

// flowOf returns the place of a request in the tree.
func flowOf(w *waiting) flowID {
	if len(w.applied) == 0 {
		return flowID{caller: w.caller, hash: 1}
	}
	return flowID{caller: w.caller, limit: w.applied[0].Limit, hash: 1 + int(w.hash%flowsOfLimit)}
}

// push puts a request at the end of its flow. If the queue is full, one request has to go: the newest of the longest
// flow, which may be the one that came.
func (q *fairQueue) push(w waiting) (gone waiting, full bool) {
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

// workOf is what a request costs at the end of its flow.
func (q *fairQueue) workOf(w *waiting) int64 {
	buckets := max(int64(len(w.applied)), 1)
	if leaf := q.flows[flowOf(w)]; leaf != nil && leaf.requests[len(leaf.requests)-1].shares(w) {
		return joinWork * buckets
	}
	return scriptWork * buckets
}

// leaf returns the flow of an id, which it makes if it is not there.
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

// enter puts a child at the end of the round.
func (f *flow) enter(child *flow) {
	f.children++
	if f.turn == nil {
		f.turn, child.before, child.after = child, child, child
		return
	}
	child.before, child.after = f.turn.before, f.turn
	child.before.after, child.after.before = child, child
}

// leave takes a child out of the round.
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

// next returns the flow whose turn it is; nil: nothing waits.
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

// cost is what the first request of a flow costs in this round trip: one that would join the script call of another is
// alone if that one left with the round trip before.
func (q *fairQueue) cost(leaf *flow) int64 {
	w := &leaf.requests[leaf.first]
	if leaf.trip == q.trip {
		return w.work
	}
	return max(w.work, scriptWork*int64(len(w.applied)))
}

// take takes the first request of a flow whose turn it is, and charges it to the flow.
func (q *fairQueue) take(leaf *flow) waiting {
	cost := q.cost(leaf)
	leaf.trip = q.trip
	for f := leaf; f != nil; f = f.parent {
		f.credit -= cost
	}
	return q.drop(leaf)
}

// drop takes the first request of a flow, and charges nothing.
func (q *fairQueue) drop(leaf *flow) waiting {
	w := leaf.requests[leaf.first]
	leaf.requests[leaf.first] = waiting{}
	leaf.first++
	q.lighter(leaf, w.work)
	return w
}

// removeNewest takes the last request of a flow.
func (q *fairQueue) removeNewest(leaf *flow) waiting {
	last := len(leaf.requests) - 1
	w := leaf.requests[last]
	leaf.requests[last] = waiting{}
	leaf.requests = leaf.requests[:last]
	q.lighter(leaf, w.work)
	return w
}

// lighter notes that a request has left a flow, and ends what is empty.
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
	if waits := leaf.requests[leaf.first:]; leaf.first > 32 && leaf.first > len(waits) { // the rest is moved rarely
		n := copy(leaf.requests, waits)
		clear(leaf.requests[n:])
		leaf.requests, leaf.first = leaf.requests[:n], 0
	}
}

// maxSpareRequests bounds the places that a spare flow keeps for requests.
const maxSpareRequests = 8

// keep keeps an empty flow for use again.
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

// longerThan returns the flow that has to give way to a request that comes to a full queue: the longest flow of the
// limit with most work of the caller with most work. It is nil where the request itself has to, because its own caller,
// limit and flow are the longest.
func (q *fairQueue) longerThan(id flowID, work int64) *flow {
	own := [...]flowID{{caller: id.caller}, {caller: id.caller, limit: id.limit}, id}
	f, depth, among := &q.root, 0, true // among: the request would wait below f
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

// longest returns the child in which most work waits, of as many as are compared.
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

// ahead returns the work that is done until a request would have been decided, if nothing else came: its own and what is
// before it in its flow, and as much of each other flow, limit and caller as they have their turns meanwhile. It is too
// much where others have less waiting than that.
func (q *fairQueue) ahead(w *waiting) int64 {
	id, own := flowOf(w), q.workOf(w)
	levels := [...]flowID{id, {caller: id.caller, limit: id.limit}, {caller: id.caller}}
	before := own // in the flow itself
	if f := q.flows[id]; f != nil {
		before += f.work
	}
	for i, level := range levels {
		parent, fresh := &q.root, int64(1)
		if q.flows[level] != nil {
			fresh = 0
		}
		if i+1 < len(levels) {
			if parent = q.flows[levels[i+1]]; parent == nil {
				continue // alone there
			}
		}
		before = min(before*(parent.children+fresh), parent.work+own)
	}
	return before
}
