//go:build !race

package exchange

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/quantity"
)

// cluster is several whole regions in virtual time. The machines are the production's. Stores and
// journals are twins that keep only what was recorded. The network between regions may lose,
// repeat, delay and reorder messages. Events happen one at a time and one seed makes all choices,
// so every run can be repeated.
type cluster struct {
	t       testing.TB
	rand    *rand.Rand
	now     quantity.NodeTime
	queue   eventQueue
	queued  int
	bucket  *Bucket
	regions map[string]*testRegion
	mates   map[string][]*testRegion // further nodes of regions, see mates_test.go
	names   []string
	net     network
	admit   map[int64]quantity.Units // units admitted, by cell, over all regions

	// A single limiter that owns the whole limit and is offered the same units; used if pooled is
	// set.
	pool   algorithms.Twin
	pooled *quantity.Units // units that pool admitted
	judge  *oracle.Judge   // of what was admitted, if set
	limit  oracle.Limit    // that it judges by
	told   uint64
	losing int  // one in so many disturbances makes a store lose everything; 0: never
	apart  bool // clocks differ by constants, and the judge is told real time

	recovery *scene // carries out the effects of recoveries, if set
	moved    bool   // rows may have changed since the invariants were last checked
	wrong    error  // the first other fault that was found
}

// testRegion is one region with one node, or a further node of one.
type testRegion struct {
	*cluster
	name     string
	node     string
	machine  *Machine
	options  Options
	store    *algorithms.Twin
	journal  map[string]Row
	born     int // raised by each crash: what was under way for an earlier life is lost
	dead     bool
	calls    map[uint64]bool
	replies  map[uint64]func(Reply)
	asked    uint64
	offset   int64              // of its clock
	rate     quantity.MilliRate // demand, units per second, or per as many seconds as per says
	per      int64
	offered  quantity.Units
	admitted quantity.Units
	denied   quantity.Units
	crash    int                      // per mille of the effects at which the node dies
	effects  int                      // carried out so far
	dieAt    int                      // the effect at which the node dies, 0: none
	seen     quantity.StoreTime       // the latest time its store showed
	counted  map[int64]quantity.Units // units admitted, by cell
	// Denied requests wait for rights (on_exhausted: borrow).
	borrows     bool
	testimonies map[uint64]func(Testimonies) // by question, see scene
	waiters     []*waiter
	woken       func(helps bool) // of a request of a large cost, which waits
	closed      int64            // the last cell that a loss of its store closed
	losses      int
}

const epochForTests = "1-test"

// newCluster builds regions us, eu and ap with the given entitlements of a fixed window.
func newCluster(t testing.TB, seed uint64, window int64, entitlements ...quantity.Units) *cluster {
	return newClusterOf(t, seed, algorithms.FixedWindow, window, entitlements...)
}

// newClusterOf builds regions us, eu and ap with the given entitlements, and bursts as large.
func newClusterOf(t testing.TB, seed uint64, kind algorithms.Kind, window int64,
	entitlements ...quantity.Units) *cluster {
	c := &cluster{t: t, rand: rand.New(rand.NewPCG(seed, 0)), now: 1_000_000_000_000_000,
		regions: map[string]*testRegion{},
		names:   []string{"us", "eu", "ap", "sa", "af"}[:len(entitlements)],
		admit:   map[int64]quantity.Units{},
		net:     network{delay: 40_000, hintDelay: 240_000, cut: map[[2]string]bool{}}}
	c.bucket = &Bucket{ID: "b", Epoch: epochForTests, Kind: kind, Window: window,
		Cell:         algorithms.CellLength(kind, window),
		Entitlements: map[string]quantity.Units{}, Bursts: map[string]quantity.Units{},
		Lending: 950_000, Borrowing: -1}
	for i, name := range c.names {
		c.bucket.Entitlements[name] = entitlements[i]
		c.bucket.Limit += entitlements[i]
		if kind.Bucket() {
			c.bucket.Bursts[name] = entitlements[i]
		}
	}
	c.bucket.Tick = algorithms.Tick(kind, c.bucket.Limit, window)
	if kind.Sliding() {
		c.bucket.ClockMargin = algorithms.ClockMargin
	}
	for _, name := range c.names {
		r := &testRegion{cluster: c, name: name, node: "n1", store: &algorithms.Twin{},
			journal: map[string]Row{}, counted: map[int64]quantity.Units{}}
		c.regions[name] = r
		r.store.Open(quantity.StoreTime(c.now), algorithms.Open{Generation: 1, Region: name,
			Epoch: epochForTests})
		r.start()
		c.after(c.rand.Int64N(Interval), r.tick)
	}
	return c
}

func (c *cluster) after(delay int64, do func()) {
	c.queued++
	heap.Push(&c.queue, queued{c.now.Add(delay), c.queued, do})
}

// run lets the time pass.
func (c *cluster) run(until quantity.NodeTime) {
	for len(c.queue) > 0 && c.queue[0].at <= until {
		e := heap.Pop(&c.queue).(queued)
		c.now = e.at
		e.do()
	}
	c.now = until
}

// start begins a life of the node: its memory is empty, its store and journal are as the last life
// left them.
func (r *testRegion) start() {
	r.born++
	r.dead = false
	r.machine = New(r.name, r.node, r.options)
	r.calls, r.replies = map[uint64]bool{}, map[uint64]func(Reply){}
	r.step(TenureChanged{Generation: r.store.Generation, Epoch: epochForTests, Peers: r.peers()})
}

func (r *testRegion) peers() []string {
	return slices.DeleteFunc(slices.Clone(r.names), func(n string) bool { return n == r.name })
}

// time is the region's own wall clock, which its store shows.
func (r *testRegion) time() quantity.NodeTime { return r.now.Add(r.offset) }

func (r *testRegion) guard() algorithms.Fence {
	return algorithms.Fence{Generation: r.store.Generation, Epoch: epochForTests,
		Clock: quantity.StoreTime(r.time())}
}

func (r *testRegion) terms() algorithms.Terms { return r.bucket.Terms(r.name) }

func (r *testRegion) tick() {
	r.step(Tick{Jitter: quantity.PPM(allocator.PPM*8/10 + r.rand.Int64N(allocator.PPM*4/10))})
	r.after(Interval, r.tick)
}

// decide offers units one by one; what is denied waits for rights, if the region borrows.
func (r *testRegion) decide(units quantity.Units) {
	if r.dead {
		return
	}
	r.offered += units
	r.offer(units)
	d, denied := r.charge(units)
	if denied > 0 && r.borrows && d.Status == algorithms.StatusOK {
		r.wait(denied, d)
		return
	}
	r.denied += denied
}

// charge has the store decide units one by one, and the machine observe it. It returns how many
// were denied.
func (r *testRegion) charge(units quantity.Units) (algorithms.Decided, quantity.Units) {
	d, admitted := inUnits(r.store, r.time(), r.guard(), r.terms(), units)
	r.seen = max(r.seen, d.Now)
	if d.Status != algorithms.StatusOK {
		return d, units
	}
	r.admitted += admitted
	cell := d.Buckets[0].Cell
	r.admit[int64(cell)] += admitted
	r.counted[int64(cell)] += admitted
	r.tell(admitted, units-admitted, d)
	r.checkAdmission(d)
	r.step(Observed{Bucket: r.bucket, Requests: allocator.Requests{Admitted: admitted, Denied: units - admitted},
		State: d.Buckets[0], Now: d.Now})
	return d, units - admitted
}

// inUnits has a store decide units one by one and returns how many it admitted. After a denied unit
// the store would deny the rest too. So of many units it offers only one more than fit.
func inUnits(store *algorithms.Twin, now quantity.NodeTime, g algorithms.Fence,
	terms algorithms.Terms, units quantity.Units) (algorithms.Decided, quantity.Units) {
	if units > 3 {
		i := store.Inspect(quantity.StoreTime(now),
			algorithms.Inspect{Fence: g, Target: algorithms.Target{Key: "b", Terms: terms}})
		units = min(units, i.Free+1)
	}
	var d algorithms.Decided
	var admitted quantity.Units
	for first := true; first || units > 0; first = false {
		part := slices.Repeat([]quantity.Units{1}, int(min(units, algorithms.MaxCosts)))
		units -= quantity.Units(len(part))
		d = store.Decide(quantity.StoreTime(now), algorithms.Decide{Fence: g, Commit: true,
			Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: "b", Terms: terms}}},
			Costs:   part})
		for _, a := range d.Answers {
			if a.Admitted {
				admitted++
			}
		}
	}
	return d, admitted
}

// load offers the region's rate evenly, for ever.
func (r *testRegion) load() {
	const quantum = 5000
	var due quantity.MilliRate
	var again func()
	again = func() {
		due += r.rate * quantum
		second := allocator.Second * max(r.per, 1)
		if units := quantity.Units(due / quantity.MilliRate(second)); units > 0 {
			due -= quantity.MilliRate(units * quantity.Units(second))
			r.decide(units)
		}
		r.after(quantum, again)
	}
	again()
}

// lose empties the region's store, which the node opens anew.
func (r *testRegion) lose() {
	before := r.store.Generation
	r.store.Flush()
	r.store.Open(quantity.StoreTime(r.time()), algorithms.Open{Generation: before + 1,
		Region: r.name, Epoch: epochForTests, Lost: true, Seen: r.seen})
	r.closed = int64(max(r.time(), quantity.NodeTime(r.seen)))/r.bucket.Cell + 1
	r.losses++
	r.moved = true
	for _, n := range r.nodes(r.name) {
		n.step(TenureChanged{Generation: r.store.Generation, Epoch: epochForTests,
			Peers: r.peers()})
	}
}

// dies reports whether the node dies here. It starts again a little later.
func (r *testRegion) dies() bool {
	r.effects++
	if r.dead || (r.effects != r.dieAt && r.rand.IntN(1000) >= r.crash) {
		return false
	}
	r.born++
	r.dead = true
	r.after(r.rand.Int64N(allocator.Second), r.start)
	return true
}

// step steps the machine and carries out what it answers, each effect a little later, unless the
// node has died.
func (r *testRegion) step(e Event) {
	if r.dead {
		return
	}
	out := r.machine.Step(r.now, e)
	life := r.born
	later := func(delay int64, do func()) {
		r.after(delay, func() {
			if r.born == life && !r.dies() {
				do()
			}
		})
	}
	if len(out.Lend) > 0 {
		later(500, func() { r.lend(out.Lend) })
	}
	for _, rec := range out.Record {
		later(1000, func() {
			for _, row := range rec.Rows {
				r.journal[fmt.Sprint(row.Peer, row.Cell)] = row
			}
			r.step(Recorded{ID: rec.ID, OK: true})
		})
	}
	for _, a := range out.Replies {
		if reply := r.replies[a.ID]; reply != nil {
			reply(a.Reply)
		}
	}
	for _, call := range out.Calls {
		r.send(call, life)
	}
	for _, credit := range out.Credits {
		later(500, func() { r.credit(credit) })
	}
	for _, s := range out.Settled {
		r.wake(s.RetryHelps)
	}
	for _, h := range out.Hints {
		r.gossip(h)
	}
	if r.recovery != nil {
		r.recovery.carry(r, out)
	}
}

func (r *testRegion) lend(lends []Lend) {
	r.moved = true
	given := make([]algorithms.Given, len(lends))
	for i, l := range lends {
		given[i] = r.store.Lend(quantity.StoreTime(r.time()), algorithms.Lend{Fence: r.guard(),
			Target: algorithms.Target{Key: l.Bucket.ID, Terms: r.terms()}, Debit: l.Debit})
	}
	if !r.dies() {
		r.step(Lent{ID: lends[0].ID, Given: given})
	}
}

func (r *testRegion) credit(c Credit) {
	r.moved = true
	guard := r.guard()
	guard.Generation = c.ForGeneration
	result := r.store.Credit(quantity.StoreTime(r.time()), algorithms.Credit{Fence: guard,
		Target: algorithms.Target{Key: c.Bucket.ID, Terms: r.terms()}, Announcement: c.Announcement})
	if !r.dies() {
		r.step(Credited{Credit: c, Result: result})
	}
}

// stats adds up what the machines of all regions did.
func (c *cluster) stats() (sum Stats) {
	for _, name := range slices.Sorted(maps.Keys(c.regions)) {
		s := c.regions[name].machine.Stats()
		sum.Asks += s.Asks
		sum.AsksRefused += s.AsksRefused
		sum.Borrowed += s.Borrowed
		sum.Returned += s.Returned
		sum.BurstLent += s.BurstLent
		sum.BurstBorrowed += s.BurstBorrowed
	}
	return sum
}
