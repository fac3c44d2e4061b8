//go:build !race

package assign

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// A world is one region with some nodes and Envoys, in steps of virtual time. Its store is a model
// of the real one: rights of a cell, what each node holds of them, and a token bucket that refills
// at the rest. Its Envoys do what Envoy does. The judge pools everything into one bucket of the
// whole limit, and looks only at what is admitted.

const step = second / 20

const (
	cellLength   = 10 * second
	windowLength = 60 * second // of a fixed window
)

type world struct {
	t     *testing.T
	rand  *rand.Rand
	now   int64 // us, by the store's clock too
	plans plans

	rights map[quantity.Cell]quantity.Units
	rows   map[string]map[quantity.Cell]*[2]quantity.Units // by node: held, returned
	level  float64
	nodes  []*worldNode
	envoys []*worldEnvoy
	queue  []message

	// Of a fixed window: what callers used of each cell, and what Envoys did of what nodes of a
	// name told them.
	used  map[quantity.Cell]quantity.Units
	spent map[string]map[quantity.Cell]quantity.Units
	// unsettled is what the store's bucket does not hold yet of what envoyBurst was lowered by.
	unsettled quantity.Units

	pooled float64      // what one bucket of the whole limit would hold
	least  float64      // the least that it held
	lives  []*worldNode // all processes that there were
	// issued is the tokens that full buckets may have begun with, paid those charged for them.
	issued, paid quantity.Units
	admitted     float64
	offered      float64
}

// plans are the parameters of a world.
type plans struct {
	rate, burst, envoyBurst quantity.Units // of the region; window 1 s
	counted                 bool           // a fixed window of a minute of the same rate
	nodes, envoys           int
	late                    int64 // messages take at most so long
	slow                    bool  // they take as long
	losses                  float64
	ttl                     int64
	direct                  float64 // units a second of callers of the store
	greedy                  bool    // these take all that the store has
	eager                   float64 // what all Envoys want together, in limits
	starved                 int64   // nodes now and then read nothing for so long at most, or do nothing at all
	delay                   int64   // all reports take so much longer, from the first of a stream on
	unsent                  float64 // the part of messages that a driver drops, because they waited for too long
}

type worldNode struct {
	name    string
	machine *Machine
	born    int64
	streams map[Stream]*worldEnvoy
	next    Stream
	dead    bool
	deaf    int64 // until when it reads no report
	stopped int64 // until when it does nothing at all
	told    map[Stream][]*told
}

type worldEnvoy struct {
	id       int
	node     *worldNode
	stream   Stream
	demand   float64 // a second
	carry    float64
	allowed  quantity.Units
	denied   quantity.Units
	nextSend int64
	reported int64    // when it reported last on its stream
	paused   int64    // until when it takes and sends nothing
	arrives  [2]int64 // when the last message of each way arrives
	by       string   // the name of the node that told it
	// its token bucket
	rate    int64
	burst   quantity.Units
	tokens  float64
	expires int64
	rebuilt int
}

// message is something under way.
type message struct {
	at int64
	do func()
}

func (w *world) later(most int64, do func()) {
	w.queue = append(w.queue, message{w.now + w.rand.Int64N(most+1), do})
}

// inOrder has a message of a stream arrive behind those before it.
func (w *world) inOrder(last *int64, do func()) {
	takes := w.rand.Int64N(w.plans.late + 1)
	if w.plans.slow {
		takes = w.plans.late
	}
	*last = max(*last, w.now+takes)
	w.queue = append(w.queue, message{*last, do})
}

func (w *world) nodeTime(n *worldNode) quantity.NodeTime {
	return quantity.NodeTime(w.now - n.born + second)
}

func newWorld(t *testing.T, seed uint64, p plans) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: 1_000_000 * second, plans: p,
		rights: map[quantity.Cell]quantity.Units{},
		rows:   map[string]map[quantity.Cell]*[2]quantity.Units{},
		level:  float64(p.burst - p.envoyBurst), pooled: float64(p.burst)}
	w.used, w.spent = map[quantity.Cell]quantity.Units{}, map[string]map[quantity.Cell]quantity.Units{}
	w.least = w.pooled
	w.now += w.rand.Int64N(w.cells().Length/step) * step
	for i := range p.nodes {
		w.nodes = append(w.nodes, w.newNode(fmt.Sprint("n", i)))
	}
	for i := range p.envoys {
		each := p.eager * float64(p.rate) / float64(p.envoys)
		e := &worldEnvoy{id: i, demand: w.rand.Float64() * 2 * each}
		e.nextSend = w.now + w.rand.Int64N(ReportEvery)
		w.envoys = append(w.envoys, e)
	}
	return w
}

func (w *world) newNode(name string) *worldNode {
	n := &worldNode{name: name, machine: New(w.plans.nodes), born: w.now,
		streams: map[Stream]*worldEnvoy{}}
	w.lives = append(w.lives, n)
	return n
}

func (w *world) bucket() *Bucket {
	b := &Bucket{ID: "b", Window: second, Cells: w.cells(), TTL: w.plans.ttl,
		Entitlement: w.entitlement(), Burst: w.plans.envoyBurst}
	if w.plans.counted {
		b.Window, b.Counted = windowLength, true
	}
	return b
}

func (w *world) cells() algorithms.Cells {
	if w.plans.counted {
		return algorithms.Cells{Length: windowLength}
	}
	return algorithms.Cells{Length: cellLength}
}

func (w *world) entitlement() quantity.Units {
	if w.plans.counted {
		return w.plans.rate * windowLength / second
	}
	return w.plans.rate
}

func (w *world) cell() quantity.Cell { return w.cells().At(quantity.StoreTime(w.now)) }

func (w *world) share(c quantity.Cell) quantity.Units {
	if s, known := w.rights[c]; known {
		return s
	}
	return w.entitlement()
}

// free returns the rights of a cell that no node holds, and no caller has used.
func (w *world) free(c quantity.Cell) quantity.Units {
	free := w.share(c) - w.used[c]
	for _, rows := range w.rows {
		if r := rows[c]; r != nil {
			free -= r[0] - r[1]
		}
	}
	return free
}

// hold answers a Hold as the store does.
func (w *world) hold(n *worldNode, h Hold) Held {
	answer := Held{Bucket: h.Bucket, Cell: h.Cell, At: quantity.StoreTime(w.now)}
	if h.Cell != w.cell() && h.Cell != w.cell()+1 {
		answer.Failed = true
		return answer
	}
	if w.rows[n.name] == nil {
		w.rows[n.name] = map[quantity.Cell]*[2]quantity.Units{}
	}
	row := w.rows[n.name][h.Cell]
	if row == nil {
		row = &[2]quantity.Units{}
		w.rows[n.name][h.Cell] = row
	}
	if row[0] < h.Known {
		w.t.Fatalf("%s knows of %d of cell %d, and holds %d", n.name, h.Known, h.Cell, row[0])
	}
	row[1] = max(row[1], min(h.Returned, row[0]))
	row[0] += max(min(h.Held-row[0], w.free(h.Cell)-h.Kept), 0)
	answer.Held, answer.Returned = row[0], row[1]
	return answer
}

// run lets time pass.
func (w *world) run(length int64, each func()) {
	for end := w.now + length; w.now < end; {
		w.now += step
		w.refill()
		w.deliver()
		each()
		for _, n := range w.nodes {
			if !n.dead && w.now >= n.stopped {
				w.tick(n)
			}
		}
		for _, e := range w.envoys {
			w.envoy(e)
		}
		w.callers()
		w.check()
	}
}

func (w *world) refill() {
	if w.plans.counted {
		return
	}
	dt := float64(step) / second
	// What has passed was of the cell before this moment.
	c := quantity.Cell((w.now - 1) / cellLength)
	w.level = min(w.level+float64(w.free(c))*dt, float64(w.plans.burst-w.plans.envoyBurst-w.unsettled))
	w.pooled = min(w.pooled+float64(w.share(c))*dt, float64(w.plans.burst))
}

func (w *world) deliver() {
	due := w.queue
	w.queue = nil
	for _, m := range due {
		if m.at > w.now {
			w.queue = append(w.queue, m)
			continue
		}
		m.do()
	}
}

func (w *world) lost() bool { return w.rand.Float64() < w.plans.losses }

func (w *world) tick(n *worldNode) {
	out := n.machine.Tick(w.nodeTime(n), quantity.StoreTime(w.now))
	for _, h := range out.Holds {
		asked := w.nodeTime(n)
		w.later(second/100, func() {
			answer := w.hold(n, h)
			answer.Asked = asked
			if w.lost() {
				answer = Held{Bucket: h.Bucket, Cell: h.Cell, Failed: true}
			}
			w.later(second/100, func() { n.machine.Held(w.nodeTime(n), answer) })
		})
	}
	for _, c := range out.Charges {
		w.later(second/100, func() {
			ok := w.level >= float64(c.Units)
			if ok {
				w.level -= float64(c.Units)
				w.paid += c.Units
			}
			if w.lost() {
				ok = false
			}
			w.later(second/100, func() { n.machine.Charged(w.nodeTime(n), c, ok) })
		})
	}
	for _, s := range out.Sends {
		if s.Rate < 1 || s.Burst < 1 || s.TTL < 1 {
			w.t.Fatalf("assigns %+v", s)
		}
		if w.plans.unsent > 0 && w.rand.Float64() < w.plans.unsent {
			n.machine.Unsent(w.nodeTime(n), s.Stream, s.Key)
			continue
		}
		n.machine.Sent(w.nodeTime(n), s.Stream, s.Key)
		e := n.streams[s.Stream]
		of := w.tell(n, s)
		if e != nil {
			w.inOrder(&e.arrives[0], func() { w.take(n, e, s, of) })
		}
	}
}

// callers ask the store itself.
func (w *world) callers() {
	n := w.plans.direct * float64(step) / second * 2 * w.rand.Float64()
	if w.plans.counted {
		w.count(n)
		return
	}
	if w.plans.greedy {
		n = w.level
	}
	for ; n >= 1; n-- {
		if w.level >= 1 {
			w.level--
			w.admit(1)
		}
	}
}

// count has callers use units of a fixed window. Greedy ones take all that there is at the end of
// it.
func (w *world) count(n float64) {
	c := w.cell()
	free := w.free(c)
	if late := w.cells().Opens(c+1).Sub(quantity.StoreTime(w.now)) < windowLength/4; w.plans.greedy &&
		late {
		n = float64(free)
	}
	units := min(quantity.Units(n+w.rand.Float64()), max(free, 0))
	w.used[c] += units
	w.admitted += float64(units)
}

// spend counts a unit that an Envoy admitted of a fixed window, of what a node told it.
func (w *world) spend(node string) {
	if !w.plans.counted {
		return
	}
	if w.spent[node] == nil {
		w.spent[node] = map[quantity.Cell]quantity.Units{}
	}
	w.spent[node][w.cell()]++
}

func (w *world) admit(units float64) {
	w.admitted += units
	if w.plans.counted {
		return
	}
	w.pooled -= units
	w.least = min(w.least, w.pooled)
}
