package assign

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

const (
	// answerWithin is after how long a Hold or Charge without an answer is given up. The driver
	// answers each of them, late if the store has much to do: to ask again sooner would give it
	// more.
	answerWithin = 30 * second
	// retryAfter is after how long a Hold is sent again for which the store had less than was
	// wanted. With each further Hold that brings nothing the time doubles, up to retryAtLast.
	retryAfter, retryAtLast = second / 2, 2 * second
	// holdAhead is how long before a cell opens the node holds rights of it. Assignments that are
	// renewed renewBefore they end need no more. If the node crashes, these rights are lost until
	// the cell ends.
	holdAhead = 6 * second
	// sightEvery is the longest time between two looks at the store's time.
	sightEvery = 10 * second
	// apart is how far the node's clock and the store's may drift apart between two answers.
	apart = second / 50
)

// pool is what the node holds of one bucket.
type pool struct {
	*Bucket
	shares []*share // in the order in which they came, those of ended streams included
	// cells are those that may be the store's current one, and the next.
	cells []cell
	first quantity.Cell // the first cell that the node asked about
	seen  *sight        // of its store, which others have too
	purse purse
	// forgot is when the store lost what it held last. Tokens that were paid for before are lost.
	forgot quantity.NodeTime

	due       quantity.NodeTime // when it is planned next
	planned   quantity.NodeTime // when it was planned last
	told      bool              // the demand that was told last was above 0
	wanted    int64             // the sum of what all shares want
	given     int64             // the sum of what they get
	short     bool              // some get plainly less than they need
	starved   bool              // some have plainly less than they get of it
	unpaid    bool              // the last plan lacked tokens for a burst
	allotment rightsBound
	// excess is by how many tokens the assignments exceed the bucket's part, not counting those
	// that lapse.
	excess quantity.Units
	// admitted and denied are the sums of what they reported, in thousandths of a unit a second.
	admitted, denied int64
}

// rightsBound is the most rights that the node may assign, if there is such a bound.
type rightsBound struct {
	most  quantity.Units
	bound bool
}

// Allot takes in the most rights that the node may assign of some buckets, by bucket id: other
// nodes and regions need the rest. Of a bucket that is not listed the node may assign all that it
// gets.
func (m *Machine) Allot(now quantity.NodeTime, most map[string]quantity.Units) {
	for _, p := range m.order {
		rights, bound := most[p.ID]
		if before := p.allotment; bound &&
			(!before.bound || rights < before.most-before.most/changeBy) {
			p.due = now
		}
		p.allotment = rightsBound{rights, bound}
	}
}

// allotted returns a rate, or what the node may assign if that is less.
func (p *pool) allotted(rate int64) int64 {
	if !p.allotment.bound {
		return rate
	}
	return min(rate, p.rateOf(p.allotment.most))
}

// cell is what the node holds of one cell.
type cell struct {
	cell           quantity.Cell
	read           bool           // what an earlier process of this node held is known
	ghost          quantity.Units // that: nobody knows who has it
	held, returned quantity.Units // sums, as the store said last
	returning      quantity.Units // as asked for: no longer ours, whatever became of the call
	asked          bool           // a call is under way
	again          quantity.NodeTime
	more           bool  // it asks for more than the node holds
	rest           int64 // after the last call for more that brought nothing; 0: it did
	// used is the sum of the rates that may be in force at some time in the cell. Counted: the
	// units that were spent, or may be.
	used   int64
	spent  int64 // Counted: units that were spent, as far as reports show
	wanted int64 // Counted: units that the node wants to hold
}

// sight is when a store showed its time: at some moment between two of the node's.
type sight struct {
	at           quantity.StoreTime
	asked, heard quantity.NodeTime
	again        quantity.NodeTime // when a Hold may be sent again only to see it
}

// own returns the rights of the cell that this process holds.
func (c *cell) own() quantity.Units {
	return max(c.held-max(c.returned, c.returning)-c.ghost, 0)
}

// haunted reports whether an earlier process of this node held, or may have held, rights of a cell
// that is not over. Its Envoys may go on.
func (p *pool) haunted() bool {
	return len(p.cells) == 0 || !p.cells[0].read ||
		slices.ContainsFunc(p.cells, func(c cell) bool { return c.ghost > 0 })
}

// rateOf returns the tokens a second that rights, in units a window, make, rounded down.
func (b *Bucket) rateOf(rights quantity.Units) int64 {
	return int64(allocator.PerSecond(rights, b.Window)) / 1000
}

// rightsOf returns the rights that tokens a second take, rounded up.
func (b *Bucket) rightsOf(rate int64) quantity.Units {
	return allocator.Over(quantity.MilliRate(1000*rate), b.Window)
}

// news makes the bucket be planned soon, because its Envoys' demand or its purse has changed. What
// else changes by then is planned with it. A plan takes the longer, the more Envoys there are, so a
// bucket with many is planned less often.
func (p *pool) news(now quantity.NodeTime) {
	rest := min(int64(len(p.shares))*restForEach, planEvery)
	p.due = min(p.due, max(now.Add(reportsTogether), p.planned.Add(rest)))
}

// After news a bucket is not planned again for restForEach for each Envoy: thousands of times as
// long as a plan takes.
const restForEach = second / 1000

// known reports whether the store has shown its time, so that the node knows when cells end.
func (p *pool) known() bool { return p.seen.at > 0 }

// opens returns between which two moments a cell begins.
func (p *pool) opens(c quantity.Cell) (earliest, latest quantity.NodeTime) {
	in := p.Cells.Opens(c).Sub(p.seen.at)
	return p.seen.asked.Add(in - apart), p.seen.heard.Add(in + apart)
}

// roll brings the cells up to a time.
func (p *pool) roll(now quantity.NodeTime, at quantity.StoreTime) {
	first, last := p.around(now, at)
	p.cells = slices.DeleteFunc(p.cells,
		func(c cell) bool { return c.cell < first || c.cell > last+1 })
	for n := first; n <= last+1; n++ {
		if i := int(n - first); i >= len(p.cells) || p.cells[i].cell != n {
			p.cells = slices.Insert(p.cells, i, cell{cell: n, read: p.first > 0 && n > p.first+1})
		}
	}
	if p.first == 0 {
		p.first = last
	}
}

// around returns the first and the last cell that may be the current one.
func (p *pool) around(now quantity.NodeTime, at quantity.StoreTime) (first, last quantity.Cell) {
	if !p.known() {
		c := p.Cells.At(at)
		return c, c
	}
	return p.Cells.At(p.seen.at.Add(now.Sub(p.seen.heard) - apart)),
		p.Cells.At(p.seen.at.Add(now.Sub(p.seen.asked) + apart))
}

// count sums up the rates that may be in force in each cell.
func (p *pool) count() {
	for i := range p.cells {
		c := &p.cells[i]
		c.used = c.spent
		for _, s := range p.shares {
			c.used += s.takes(p, c)
		}
	}
}

// span returns the longest time that a cell may last.
func (p *pool) span(c quantity.Cell) (from, to quantity.NodeTime) {
	from, _ = p.opens(c)
	_, to = p.opens(c + 1)
	return from, to
}

// forget drops what is over. It returns how many assignments ended without being replaced.
func (p *pool) forget(now quantity.NodeTime) (expired int64) {
	p.shares = slices.DeleteFunc(p.shares, func(s *share) bool {
		if s.forget(now) {
			expired++
		}
		if !s.gone && slices.Contains(s.pools, p) {
			return false
		}
		return !slices.ContainsFunc(s.grants,
			func(g grant) bool { return slices.Contains(g.pools, p) })
	})
	return expired
}

// hold appends what the node asks the store for, and what it gives back.
func (p *pool) hold(now quantity.NodeTime, all []Hold) []Hold {
	for i := range p.cells {
		c := &p.cells[i]
		want, least := p.wants(c)
		if opens, _ := p.opens(c.cell); p.known() && opens > now.Add(holdAhead) {
			continue
		} else if now < c.again {
			if c.own() < want && c.rest == 0 {
				p.due = min(p.due, c.again)
			}
			continue
		}
		c.asked = false
		h := Hold{p.ID, c.cell, c.held, c.held, max(c.returned, c.returning), p.keeps()}
		switch own := c.own(); {
		case !c.read: // only asks what is there
		case own < want:
			h.Held += want - own
		case own > want+least:
			c.returning = max(c.returned, c.returning) + own - want
			h.Returned = c.returning
		case p.known() && now.Sub(p.seen.heard) > sightEvery && now >= p.seen.again: // only asks what time it is
			p.seen.again = now.Add(retryAfter)
		default:
			continue
		}
		c.asked, c.more, c.again = true, h.Held > c.held, now.Add(answerWithin)
		all = append(all, h)
	}
	return all
}

// wants returns the rights that the node wants to hold of a cell, and how many more it must hold to
// give some back.
func (p *pool) wants(c *cell) (want, least quantity.Units) {
	if p.Counted {
		want = quantity.Units(max(c.wanted, c.used))
		return want, max((want-quantity.Units(c.spent))/8, 8)
	}
	want = p.rightsOf(max(p.wanted, c.used))
	return want, max(want/10, p.rightsOf(1))
}

// keeps returns the rights of a cell that the store keeps. It keeps none of a window: bursts are
// not paid from it, and callers find the units that no Envoy needs in the next seconds.
func (p *pool) keeps() quantity.Units {
	if p.Counted {
		return 0
	}
	return allocator.Unassigned(p.Entitlement)
}

// Held takes in the store's answer to a Hold.
func (m *Machine) Held(now quantity.NodeTime, h Held) {
	p := m.pools[h.Bucket]
	if p == nil {
		return
	}
	if !p.known() || h.Failed {
		p.due = now
	}
	if h.At > p.seen.at {
		*p.seen = sight{at: h.At, asked: h.Asked, heard: now}
	}
	for i := range p.cells {
		c := &p.cells[i]
		if c.cell != h.Cell {
			continue
		}
		if c.rest = min(max(2*c.rest, retryAfter), retryAtLast); !h.Failed && (h.Held > c.held || !c.more) {
			c.rest = 0
		}
		c.asked, c.again = false, now.Add(max(c.rest, retryAfter))
		if h.Failed {
			continue
		}
		if h.Lost {
			c.held, c.returned, c.returning, c.ghost, c.spent = h.Held, h.Returned, h.Returned, 0, 0
			p.due = now
			continue
		}
		if !c.read {
			c.read, c.ghost, c.again = true, h.Held-h.Returned, now
			p.due = now
		}
		if h.Held > c.held || c.rest == retryAfter { // somebody may wait for it
			p.due = now
		}
		c.held, c.returned = max(c.held, h.Held), max(c.returned, h.Returned)
	}
}

// holdsNothing reports whether the node has nothing of the bucket that it could give back.
func (p *pool) holdsNothing() bool {
	return !slices.ContainsFunc(p.cells,
		func(c cell) bool { return c.own() > quantity.Units(c.spent) || c.asked })
}
