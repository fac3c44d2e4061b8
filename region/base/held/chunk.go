package held

import (
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

const (
	// Smallest is the smallest chunk, in units. Where a chunk would be smaller, each request asks
	// the store, so near the limit a bucket is exact.
	Smallest = 8
	// Life is the longest time for which a chunk is spent.
	Life = time.Second
	// nodeParts is how many chunks of each node the free units of a bucket are enough for, so that
	// nodes do not starve one another.
	nodeParts = 4
	// lowPart says when a chunk is filled again: when less than 1/lowPart is left.
	lowPart = 4
)

// Chunk is units that the store was charged with, for requests to come. Safe for concurrent use.
type Chunk struct {
	Answer              // what the store said when it was charged, to the State's cell
	size   int64        // units
	until  atomic.Int64 // on the node's clock: not spent from then on
	left   atomic.Int64 // units
	ended  atomic.Bool  // what is left was taken out
}

// Grant is what the store answered to a node that asked for a chunk, and granted it.
type Grant struct {
	Units quantity.Units
	Answer
}

// Want returns the size of the chunk that the node should ask the store for now; 0: none. If it is
// above 0, the caller asks and then calls Filled. nodes is the number of nodes in the region.
func (m *Memory) Want(nodes int, now time.Duration) quantity.Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	// What is left of the old chunk goes into the new one.
	units := min(m.pace.usual(now), Largest(m.free, nodes)) - m.Holds(now)
	if units < Smallest || !m.filling.CompareAndSwap(false, true) {
		return 0
	}
	return units
}

// Part returns the largest chunk that a caller may be given now, of what the store last said is
// free.
func (m *Memory) Part(nodes int) quantity.Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Largest(m.free, nodes)
}

// Largest returns the largest chunk that one of a region's nodes asks for where so many units are
// free.
func Largest(free quantity.Units, nodes int) quantity.Units {
	return free / quantity.Units(nodeParts*nodes)
}

// Filled ends what Want began. g is what was granted; nil: nothing. What is left of an old chunk of
// the same cell goes into the new one, unless one of them carries something (Answer.Of). Otherwise
// Filled returns the old chunk, which the caller gives back.
func (m *Memory) Filled(g *Grant) (old *Chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.filling.Store(false)
	if g == nil {
		return nil
	}
	old = m.chunk.Load()
	c := &Chunk{Answer: g.Answer, size: int64(g.Units)}
	cell := time.Duration(g.Ends.Sub(g.Now)) * time.Microsecond
	c.until.Store(int64(g.Asked + min(Life, cell)))
	if old != nil {
		m.count(old, g.Asked)
	}
	if old != nil && old.State.Cell == c.State.Cell && old.Generation == c.Generation &&
		old.Of == nil && c.Of == nil {
		c.size += int64(old.End())
		old = nil
	}
	c.left.Store(c.size)
	m.chunk.Store(c)
	return old
}

// Take spends units of the chunk. It returns nil if there is no chunk of this generation, if the
// chunk is over, or if it has too few units. low says that the chunk should be filled again; then
// the caller calls Want.
func (m *Memory) Take(cost quantity.Units, generation uint64, now time.Duration) (of *Chunk,
	left quantity.Units, low bool) {
	c := m.chunk.Load()
	if c == nil || c.Generation != generation || c.over(now) {
		return nil, 0, false
	}
	for {
		had := c.left.Load()
		if had < int64(cost) {
			return nil, 0, false
		}
		if c.left.CompareAndSwap(had, had-int64(cost)) {
			had -= int64(cost)
			return c, quantity.Units(had), had*lowPart < c.size && !m.filling.Load()
		}
	}
}

// Holds returns the units that are left to spend at a time of the node's clock.
func (m *Memory) Holds(now time.Duration) quantity.Units {
	c := m.chunk.Load()
	if c == nil || c.over(now) {
		return 0
	}
	return max(quantity.Units(c.left.Load()), 0)
}

// over reports whether no more of the chunk is to be spent.
func (c *Chunk) over(now time.Duration) bool { return int64(now) >= c.until.Load() }

// PutBack undoes a Take. It returns the units that nobody else will give back, because the chunk
// has ended meanwhile.
func (c *Chunk) PutBack(cost quantity.Units) (orphaned quantity.Units) {
	c.left.Add(int64(cost))
	if c.ended.Load() {
		return quantity.Units(c.left.Swap(0))
	}
	return 0
}

// End ends a chunk and returns the units that were left of it, once.
func (c *Chunk) End() (left quantity.Units) {
	c.ended.Store(true)
	return quantity.Units(c.left.Swap(0))
}

// Over takes the chunk out of the memory if it is over or all is true, and returns it; else nil.
// holds reports whether there is still one.
func (m *Memory) Over(now time.Duration, all bool) (over *Chunk, holds bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.chunk.Load()
	if c == nil {
		return nil, m.filling.Load()
	}
	if !c.over(now) && !all {
		return nil, true
	}
	m.chunk.Store(nil)
	m.count(c, now)
	return c, m.filling.Load()
}

// count adds what was spent of a chunk to the pace. Of one that lasted longer than an interval it
// adds the part of one interval.
func (m *Memory) count(c *Chunk, now time.Duration) {
	spent, lasted := c.size-c.left.Load(), max(now-c.Asked, paceEvery)
	m.pace.add(quantity.Units(float64(spent)*float64(paceEvery)/float64(lasted)), now)
}

// pace measures how much of a bucket a node uses.
type pace struct {
	since time.Duration // when used began to count
	used  quantity.Units
	last  quantity.Units // in the interval before, brought to the length of one
}

// paceEvery is the interval in which use is counted, and for which a chunk lasts.
const paceEvery = 100 * time.Millisecond

func (p *pace) add(units quantity.Units, now time.Duration) {
	if passed := now - p.since; passed >= paceEvery {
		p.last = quantity.Units(float64(p.used) * float64(paceEvery) / float64(passed))
		p.used, p.since = 0, now
	}
	p.used = min(p.used+units, algorithms.MaxUnits)
}

// usual returns how many units the node uses in an interval.
func (p *pace) usual(now time.Duration) quantity.Units {
	p.add(0, now)
	return max(p.last, p.used)
}
