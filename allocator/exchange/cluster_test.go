package exchange

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/oracle"
)

// cluster is whole regions in virtual time on the production core: machines, twins of their stores and journals that
// keep only what was recorded, joined by a network that may lose, repeat, delay and reorder. One event at a time, all
// choices from one seed, so that every run can be had again.
type cluster struct {
	t       testing.TB
	rand    *rand.Rand
	now     int64
	queue   eventQueue
	queued  int
	bucket  *Bucket
	regions map[string]*testRegion
	names   []string
	net     network
	admit   map[int64]int64 // units admitted, by cell, over all regions

	pool   algorithms.Twin // one limiter that owns the whole limit and is offered the same; asked for if pooled is set
	pooled *int64          // units that it admitted
	judge  *oracle.Judge   // of what was admitted, if set
	told   uint64
}

// network says what becomes of messages.
type network struct {
	delay     int64 // one way
	loss      int   // per cent
	duplicate int   // per cent
	late      int   // per cent that take longer than a cell
	cut       map[[2]string]bool
	hintDelay int64
}

// testRegion is one region with one node.
type testRegion struct {
	*cluster
	name     string
	machine  *Machine
	options  Options
	store    algorithms.Twin
	journal  map[string]Row
	born     int // raised by each crash: what was under way for an earlier life is lost
	dead     bool
	calls    map[uint64]bool
	replies  map[uint64]func(Reply)
	asked    uint64
	offset   int64 // of its clock
	rate     int64 // demand, units per second, or in so many seconds as per says
	per      int64
	offered  int64
	admitted int64
	denied   int64
	crash    int   // per mille that an effect is where the node dies
	effects  int   // carried out so far
	dieAt    int   // the effect at which the node dies, 0: none
	seen     int64 // the latest time its store showed
	closed   int64 // the last cell that a loss of its store closed
	losses   int
}

type queued struct {
	at  int64
	seq int
	do  func()
}

type eventQueue []queued

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].seq, q[j].seq)) < 0
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(queued)) }
func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

const epochForTests = "1-test"

// newCluster builds regions us, eu and ap with the given entitlements of a fixed window.
func newCluster(t testing.TB, seed uint64, window int64, entitlements ...int64) *cluster {
	return newClusterOf(t, seed, algorithms.FixedWindow, window, entitlements...)
}

// newClusterOf builds regions us, eu and ap with the given entitlements, and bursts as large.
func newClusterOf(t testing.TB, seed uint64, kind algorithms.Kind, window int64, entitlements ...int64) *cluster {
	c := &cluster{t: t, rand: rand.New(rand.NewPCG(seed, 0)), now: 1_000_000_000_000_000, regions: map[string]*testRegion{},
		names: []string{"us", "eu", "ap", "sa", "af"}[:len(entitlements)], admit: map[int64]int64{},
		net: network{delay: 40_000, hintDelay: 240_000, cut: map[[2]string]bool{}}}
	c.bucket = &Bucket{ID: "b", Epoch: epochForTests, Kind: kind, Window: window, Cell: algorithms.CellLength(kind, window),
		Entitlements: map[string]int64{}, Bursts: map[string]int64{}, Lending: 950_000, Borrowing: -1}
	for i, name := range c.names {
		c.bucket.Entitlements[name] = entitlements[i]
		c.bucket.Limit += entitlements[i]
		if kind.Bucket() {
			c.bucket.Bursts[name] = entitlements[i]
		}
	}
	c.bucket.Tick = algorithms.Tick(kind, c.bucket.Limit, window)
	if kind.Sliding() {
		c.bucket.Guard = algorithms.ClockGuard
	}
	for _, name := range c.names {
		r := &testRegion{cluster: c, name: name, journal: map[string]Row{}}
		c.regions[name] = r
		r.store.Open(c.now, algorithms.Open{Generation: 1, Region: name, Epoch: epochForTests})
		r.start()
		c.after(c.rand.Int64N(Interval), r.tick)
	}
	return c
}

func (c *cluster) after(delay int64, do func()) {
	c.queued++
	heap.Push(&c.queue, queued{c.now + delay, c.queued, do})
}

// run lets the time pass.
func (c *cluster) run(until int64) {
	for len(c.queue) > 0 && c.queue[0].at <= until {
		e := heap.Pop(&c.queue).(queued)
		c.now = e.at
		e.do()
	}
	c.now = until
}

// start begins a life of the node: its memory is empty, store and journal are as they were left.
func (r *testRegion) start() {
	r.born++
	r.dead = false
	r.machine = New(r.name, "n1", r.options)
	r.calls, r.replies = map[uint64]bool{}, map[uint64]func(Reply){}
	r.step(Stood{Generation: r.store.Generation, Epoch: epochForTests, Peers: r.peers()})
}

func (r *testRegion) peers() []string {
	return slices.DeleteFunc(slices.Clone(r.names), func(n string) bool { return n == r.name })
}

// time is the region's own wall clock, which its store shows.
func (r *testRegion) time() int64 { return r.now + r.offset }

func (r *testRegion) guard() algorithms.Guard {
	return algorithms.Guard{Generation: r.store.Generation, Epoch: epochForTests, Clock: r.time()}
}

func (r *testRegion) terms() algorithms.Terms { return r.bucket.Terms(r.name) }

func (r *testRegion) tick() {
	r.step(Tick{Jitter: allocator.PPM*8/10 + r.rand.Int64N(allocator.PPM*4/10)})
	r.after(Interval, r.tick)
}

// decide offers units one by one.
func (r *testRegion) decide(units int64) {
	if r.dead {
		return
	}
	call := algorithms.Decide{Guard: r.guard(), Commit: true, Buckets: []algorithms.Target{{Key: "b", Terms: r.terms()}}}
	for range units {
		call.Costs = append(call.Costs, 1)
	}
	d := r.store.Decide(r.time(), call)
	r.seen = max(r.seen, d.Now)
	r.offered += units
	r.compare(units, d)
	if d.Status != algorithms.StatusOK {
		return
	}
	var admitted int64
	for _, a := range d.Answers {
		if a.Admitted {
			admitted++
		}
	}
	r.admitted += admitted
	r.denied += units - admitted
	r.admit[d.Buckets[0].Cell] += admitted
	r.step(Observed{Bucket: r.bucket, Admitted: admitted, Denied: units - admitted, State: d.Buckets[0], Now: d.Now})
}

// compare offers the same to the pooled limiter, and tells the judge.
func (r *testRegion) compare(units int64, d algorithms.Decided) {
	c := r.cluster
	if c.pooled != nil {
		if c.pool.Generation == 0 {
			c.pool.Open(c.now, algorithms.Open{Generation: 1, Epoch: epochForTests})
		}
		terms := r.terms()
		terms.Entitlement = c.bucket.Limit
		for _, burst := range c.bucket.Bursts {
			terms.Burst += burst
		}
		terms.Burst -= c.bucket.Bursts[r.name]
		call := algorithms.Decide{Guard: algorithms.Guard{Generation: 1, Epoch: epochForTests, Clock: c.now}, Commit: true,
			Buckets: []algorithms.Target{{Key: "b", Terms: terms}}, Costs: slices.Repeat([]int64{1}, int(units))}
		for _, a := range c.pool.Decide(c.now, call).Answers {
			if a.Admitted {
				*c.pooled++
			}
		}
	}
	if c.judge == nil || d.Status != algorithms.StatusOK {
		return
	}
	for _, a := range d.Answers {
		c.told++
		outcome := oracle.Denied
		if a.Admitted {
			outcome = oracle.Admitted
		}
		c.judge.Record(oracle.Answer{Bucket: "b", Region: r.name, Node: "n1", Sequence: c.told, Cost: 1, Outcome: outcome,
			Cell: d.Buckets[0].Cell, At: d.Now, Sent: time.UnixMicro(d.Now), Seen: time.UnixMicro(d.Now), Share: d.Buckets[0].Share})
	}
}

// judged has the cluster judged from outside.
func (c *cluster) judged() {
	l := oracle.Limit{Limit: c.bucket.Limit, Window: time.Duration(c.bucket.Window) * time.Microsecond, Algorithm: string(c.bucket.Kind)}
	for _, burst := range c.bucket.Bursts {
		l.Burst += burst
	}
	c.judge = oracle.New(l)
}

// load offers the region's rate for ever, evenly.
func (r *testRegion) load() {
	const quantum = 5000
	var due int64
	var again func()
	again = func() {
		due += r.rate * quantum
		second := allocator.Second * max(r.per, 1)
		if units := due / second; units > 0 {
			due -= units * second
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
	r.store.Open(r.time(), algorithms.Open{Generation: before + 1, Region: r.name, Epoch: epochForTests, Lost: true, Seen: r.seen})
	r.closed = max(r.time(), r.seen)/r.bucket.Cell + 1
	r.losses++
	r.step(Stood{Generation: r.store.Generation, Epoch: epochForTests, Peers: r.peers()})
}

// dies says whether the node dies here; it is up again a little later.
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

// step steps the machine and carries out what it answers, each effect a little later, unless the node has died.
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
	for _, h := range out.Hints {
		for _, name := range r.peers() {
			r.transmit(r.name, name, r.net.hintDelay-r.net.delay, func() { r.regions[name].step(Heard{Hint: h}) })
		}
	}
}

func (r *testRegion) lend(lends []Lend) {
	given := make([]algorithms.Given, len(lends))
	for i, l := range lends {
		given[i] = r.store.Lend(r.time(), algorithms.Lend{Guard: r.guard(), Key: l.Bucket.ID, Terms: r.terms(), Peer: l.Peer,
			Cell: l.Cell, Returned: l.Returned, Lent: l.Lent, Kept: l.Kept, Cap: l.Cap,
			Burst: l.Burst, KeptBurst: l.KeptBurst, CapBurst: l.CapBurst})
	}
	if !r.dies() {
		r.step(Lent{ID: lends[0].ID, Given: given})
	}
}

func (r *testRegion) credit(c Credit) {
	result := r.store.Credit(r.time(), algorithms.Credit{Guard: r.guard(), Key: c.Bucket.ID, Terms: r.terms(), Peer: c.Peer,
		PeerGeneration: c.Generation, Cell: c.Cell, Lent: c.Lent, Returned: c.Returned, Most: c.Most,
		Burst: c.Burst, MostBurst: c.MostBurst})
	if !r.dies() {
		r.step(Credited{Credit: c, Result: result})
	}
}

// transmit carries a message from region to region, or loses, repeats or delays it.
func (c *cluster) transmit(from, to string, extra int64, deliver func()) {
	copies := 1
	if c.rand.IntN(100) < c.net.duplicate {
		copies++
	}
	for range copies {
		if c.net.cut[[2]string{from, to}] || c.rand.IntN(100) < c.net.loss {
			continue
		}
		delay := c.net.delay + extra
		if c.rand.IntN(100) < c.net.late {
			delay += c.rand.Int64N(4 * allocator.Second)
		}
		c.after(delay, deliver)
	}
}

// send makes a call; its reply counts only in the life it was made in.
func (r *testRegion) send(call Call, life int) {
	r.calls[call.ID] = true
	over := func(e Event) {
		if r.born == life && r.calls[call.ID] {
			delete(r.calls, call.ID)
			r.step(e)
		}
	}
	r.after(call.Timeout, func() { over(Unanswered{ID: call.ID}) })
	to := r.regions[call.Peer]
	r.transmit(r.name, call.Peer, 0, func() {
		to.asked++
		id := to.asked
		to.replies[id] = func(reply Reply) {
			delete(to.replies, id)
			to.durable(reply, r.name)
			r.transmit(to.name, r.name, 0, func() { over(Answered{ID: call.ID, Reply: reply}) })
		}
		buckets := make([]*Bucket, len(call.Message.Asks))
		for i := range buckets {
			buckets[i] = r.bucket
		}
		to.step(Asked{ID: id, Message: call.Message, Buckets: buckets})
	})
}

// isolate cuts a region off from all others, or heals.
func (c *cluster) isolate(name string, cut bool) {
	for _, other := range c.names {
		if other != name {
			c.net.cut[[2]string{name, other}] = cut
			c.net.cut[[2]string{other, name}] = cut
		}
	}
}

// stats adds up what the machines of all regions did.
func (c *cluster) stats() (sum Stats) {
	for _, name := range slices.Sorted(maps.Keys(c.regions)) {
		s := c.regions[name].machine.Stats()
		sum.Asks += s.Asks
		sum.AsksRefused += s.AsksRefused
		sum.UnitsBorrowed += s.UnitsBorrowed
		sum.UnitsReturned += s.UnitsReturned
	}
	return sum
}
