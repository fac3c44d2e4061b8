package queue

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// queuedAs is a request for the queue with the given number of buckets. Its cost identifies it.
func queuedAs(caller string, limit *policy.Limit, key string, buckets int,
	number quantity.Units) Ask {
	w := Ask{Caller: caller, Cost: number, Commit: true, Rules: sharedRules}
	for i := range buckets {
		w.Applied = append(w.Applied,
			&rules.Applied{Limit: limit,
				Target: algorithms.LimitTarget{Target: algorithms.Target{Key: key +
					strconv.Itoa(i)}}})
	}
	for _, c := range []byte(key) {
		w.hash = w.hash*131 + uint64(c)
	}
	return w
}

var sharedRules = &rules.Rules{Epoch: "1"}

// dumbQueue is the twin of a fairQueue: the same tree, written down as lists that are searched anew
// each time.
type dumbQueue struct {
	all []Ask // in order of arrival
	// children of a node in the order of their turns, the next one first
	rounds  map[flowID][]flowID
	credits map[flowID]int64
}

var dumbRoot = flowID{hash: -1}

func path(w *Ask) [3]flowID {
	id := flowOf(w)
	return [3]flowID{{caller: id.caller}, {caller: id.caller, limit: id.limit}, id}
}

func (d *dumbQueue) push(w Ask) {
	parent := dumbRoot
	for _, id := range path(&w) {
		if !slices.Contains(d.rounds[parent], id) {
			d.rounds[parent] = append(d.rounds[parent], id)
			d.credits[id] = quantum
		}
		parent = id
	}
	d.all = append(d.all, w)
}

// below reports whether a request waits below a node.
func below(w *Ask, id flowID) bool { p := path(w); return slices.Contains(p[:], id) }

func (d *dumbQueue) pop(cost func(Ask) int64) Ask {
	node := dumbRoot
	for range 3 {
		for d.credits[d.rounds[node][0]] <= 0 {
			d.credits[d.rounds[node][0]] += quantum
			d.rounds[node] = append(d.rounds[node][1:], d.rounds[node][0])
		}
		node = d.rounds[node][0]
	}
	i := slices.IndexFunc(d.all, func(w Ask) bool { return flowOf(&w) == node })
	w := d.all[i]
	for _, id := range path(&w) {
		d.credits[id] -= cost(w)
	}
	d.all = slices.Delete(d.all, i, i+1)
	parent := dumbRoot
	for _, id := range path(&w) {
		if !slices.ContainsFunc(d.all, func(o Ask) bool { return below(&o, id) }) {
			d.rounds[parent] = slices.DeleteFunc(d.rounds[parent],
				func(o flowID) bool { return o == id })
		}
		parent = id
	}
	return w
}

// The queue serves in the same order as its twin, whatever requests come and go. It holds nothing
// when it is empty.
func TestQueueIsItsTwin(t *testing.T) {
	limits := []*policy.Limit{{Name: "a"}, {Name: "b"}}
	suite.Check(t, func(t *rapid.T) {
		q, d := newFairQueue(1000), &dumbQueue{rounds: map[flowID][]flowID{},
			credits: map[flowID]int64{}}
		pop := func() {
			q.trip++ // each request is a script call of its own
			leaf := q.next()
			if (leaf == nil) != (len(d.all) == 0) {
				t.Fatalf("next is %v of %d", leaf, len(d.all))
			}
			if leaf == nil {
				return
			}
			got := q.take(leaf)
			if want := d.pop(func(w Ask) int64 {
				return scriptWork * int64(len(w.Applied))
			}); got.Cost != want.Cost {
				t.Fatalf("request %d is served, want %d", got.Cost, want.Cost)
			}
		}
		for number := range quantity.Units(rapid.IntRange(1, 200).Draw(t, "steps")) {
			if rapid.IntRange(0, 2).Draw(t, "pops") == 0 {
				pop()
				continue
			}
			w := queuedAs(rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "caller"),
				rapid.SampledFrom(limits).Draw(t, "limit"),
				rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "key"),
				rapid.IntRange(1, 4).Draw(t, "buckets"), number)
			d.push(w)
			if _, full := q.push(w); full {
				t.Fatal("full")
			}
		}
		for range len(d.all) + 1 {
			pop()
		}
		if q.length != 0 || len(q.flows) != 0 || q.root.work != 0 || q.root.children != 0 ||
			len(q.spare) > maxSpareFlows {
			t.Fatalf("left: %d requests, %d flows, %+v", q.length, len(q.flows), q.root)
		}
	})
}

// Flows that always have requests waiting get equal shares of the work, except for the excess of
// one turn and one request.
func TestQueueShares(t *testing.T) {
	limit := &policy.Limit{Name: "a"}
	suite.Check(t, func(t *rapid.T) {
		q := newFairQueue(10_000)
		callers := rapid.SliceOfNDistinct(rapid.StringMatching("[a-z]"), 2, 6, rapid.ID).Draw(t,
			"callers")
		buckets := map[string]int{}
		for i, c := range callers {
			buckets[c] = rapid.IntRange(1, 6).Draw(t, "buckets")
			for n := range rapid.IntRange(200, 1000).Draw(t, "requests") {
				q.push(queuedAs(c, limit, strconv.Itoa(n%(1+i*7)), buckets[c], quantity.Units(n)))
			}
		}
		const most = quantum + 6*scriptWork
		done := map[string]int64{}
		from := rapid.IntRange(0, 50).Draw(t, "from")
		for n := range rapid.IntRange(60, 199).Draw(t, "to") {
			q.trip++
			w := q.take(q.next())
			if n >= from {
				done[w.Caller] += scriptWork * int64(len(w.Applied))
			}
		}
		for _, a := range callers {
			for _, b := range callers {
				if done[a] > done[b]+2*most {
					t.Fatalf("%s had %d of work done and %s %d, while both had more waiting", a,
						done[a], b, done[b])
				}
			}
		}
	})
}

// Requests of one bucket are served in order of arrival. Those that leave together cost one script
// call.
func TestQueueOfOneBucket(t *testing.T) {
	limit := &policy.Limit{Name: "a"}
	q := newFairQueue(100)
	for n := range quantity.Units(50) {
		q.push(queuedAs("x", limit, "k", 2, n))
	}
	if want := int64(2*scriptWork + 49*2*joinWork); q.root.work != want {
		t.Errorf("work %d, want %d", q.root.work, want)
	}
	for n := range quantity.Units(50) {
		if n == 25 {
			q.trip++ // the rest leaves later, and its first is a script call of its own
		}
		leaf := q.next()
		want := int64(2 * joinWork)
		if n == 0 || n == 25 {
			want = 2 * scriptWork
		}
		if got := q.cost(leaf); got != want {
			t.Errorf("request %d costs %d, want %d", n, got, want)
		}
		if w := q.take(leaf); w.Cost != n {
			t.Errorf("request %d is served, want %d", w.Cost, n)
		}
	}
}

// When the queue is full, the longest flow of the longest limit of the longest caller loses a
// request, and no shorter flow.
func TestQueueFullOfALongFlow(t *testing.T) {
	a, b := &policy.Limit{Name: "a"}, &policy.Limit{Name: "b"}
	full := func() *fairQueue {
		q := newFairQueue(100)
		for n := range quantity.Units(60) {
			q.push(queuedAs("long", a, strconv.Itoa(int(n)%2), 1, n))
		}
		for n := range quantity.Units(10) {
			q.push(queuedAs("long", b, "k", 1, 100+n))
		}
		for n := range quantity.Units(30) {
			q.push(queuedAs("short", a, "k", 1, 200+n))
		}
		return q
	}
	for _, tc := range []struct {
		name string
		came Ask
		gone quantity.Units
	}{
		{"a new caller", queuedAs("new", a, "k", 1, 1000), 58},
		{"the short caller", queuedAs("short", b, "k", 1, 1000), 58},
		{"the short limit of the long caller", queuedAs("long", b, "k", 1, 1000), 58},
		{"a new key of the long limit", queuedAs("long", a, "9", 1, 1000), 58},
		{"the longest itself", queuedAs("long", a, "1", 1, 1000), 1000},
	} {
		q := full()
		gone, was := q.push(tc.came)
		if !was || gone.Cost != tc.gone || q.length != 100 {
			t.Errorf("%s: %d has to go (full %v, %d wait), want %d", tc.name, gone.Cost, was,
				q.length, tc.gone)
		}
	}
}

// The pace learns the store's speed within a few round trips, and forgets one that was slow by
// chance.
func TestPace(t *testing.T) {
	now := time.Now()
	p := newPace(50*time.Millisecond, underWay)
	trip := func(scripts int64, each, trip time.Duration) {
		sent := now
		now = now.Add(trip + time.Duration(scripts)*each)
		p.done(sent, now, scripts*scriptWork, true)
		now = now.Add(time.Millisecond)
	}
	script := func() time.Duration { return p.takes(scriptWork) }
	for range 20 {
		trip(60, 30*time.Microsecond, 90*time.Microsecond)
	}
	if got := script(); got < 25*time.Microsecond || got > 36*time.Microsecond {
		t.Errorf("a script of 30 µs takes %v", got)
	}
	if got := p.pipelineWork() / scriptWork; got < 30 || got > 55 {
		t.Errorf("a round trip carries %d scripts: all %d are to take a twentieth of 50 ms", got,
			underWay)
	}
	before := script()
	trip(1, 30*time.Microsecond, 45*time.Millisecond)
	if got := script(); got > 2*before {
		t.Errorf("after one slow round trip a script takes %v instead of %v", got, before)
	}
	for range 30 {
		trip(20, 400*time.Microsecond, 90*time.Microsecond)
	}
	if got := script(); got < 300*time.Microsecond || got > 440*time.Microsecond {
		t.Errorf("a script of 400 µs takes %v", got)
	}
	for range 60 {
		trip(1, 30*time.Microsecond, time.Millisecond)
	}
	if got := script(); got > 400*time.Microsecond {
		t.Errorf("single requests over a long way make a script take %v", got)
	}
	p.done(now, now, 0, true) // nothing to learn
}
