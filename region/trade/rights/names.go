package rights

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/journal"
)

const (
	// namesEvery is how much later a node may have been answered than the journal says, in microseconds.
	namesEvery = int64(10 * time.Second / time.Microsecond)
	// mostReaders is how many nodes of a region read the store because of nodes that are gone.
	mostReaders = 2
)

// gone is what this node knows of other nodes of its region that used the store: when it last answered
// them, and until when this node's journal has what they did. Of a node that ends for good nobody else may
// know that. Safe for concurrent use.
type gone struct {
	mu       sync.Mutex
	names    map[string]journal.Name
	before   map[string]quantity.StoreTime // when those were last answered before the last loss that were since; 0: not known
	lostAt   quantity.StoreTime            // of that loss
	recalled bool                          // the machine knows what names the journal has
}

// name takes in when the store last answered nodes. Others are kept as long as what they did may count.
func (g *gone) name(all map[string]exchange.Answers, lostAt quantity.StoreTime) {
	g.mu.Lock()
	defer g.mu.Unlock()
	named, latest := make(map[string]journal.Name, len(all)), quantity.StoreTime(0)
	g.before, g.lostAt = map[string]quantity.StoreTime{}, lostAt
	for node, a := range all {
		n := g.names[node]
		n.First, n.Last, latest = a.First, a.Last, max(latest, a.Last)
		named[node], g.before[node] = n, a.BeforeLoss
	}
	for node, n := range g.names {
		if _, known := named[node]; !known && latest.Sub(n.Last) <= exchange.NamedFor && len(named) < exchange.MaxNamed {
			named[node] = n
		}
	}
	g.names = named
}

// isGone reports whether a node was not answered for a while before a time. One that goes on is answered once
// a second.
func isGone(n journal.Name, at quantity.StoreTime) bool { return n.Last.Add(namesEvery) < at }

// read takes in that this node, self, has read all that the store had at a time of what others did since
// another.
func (g *gone) read(self string, since, at quantity.StoreTime) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for node, n := range g.names {
		if node != self && isGone(n, at) && n.Read <= n.Last {
			n.Since, n.Read = since, at
			g.names[node] = n
		}
	}
}

// readBy returns when this node, self, read from the store what its journal had not; 0: it did not.
func (g *gone) readBy(self string) quantity.StoreTime {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.names[self].Read
}

// readAll takes in that this node, self, has read at a time what its journal had not.
func (g *gone) readAll(self string, at quantity.StoreTime) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.names[self]
	n.Last, n.Read = max(n.Last, at), at
	if g.names == nil {
		g.names = map[string]journal.Name{}
	}
	g.names[self] = n
}

// answered returns when the store last answered a node before it last lost data, at lostAt, or later. g is locked.
func (g *gone) answered(node string, lostAt quantity.StoreTime) quantity.StoreTime {
	if before := g.before[node]; before > 0 && g.lostAt == lostAt {
		return before
	}
	return g.names[node].Last
}

// asLate reports whether a copy of a node is as late as the store's last answer to it before the store last lost data.
func (g *gone) asLate(c copies.Copy, lostAt quantity.StoreTime) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.names[c.Node]
	return known && g.lostAt == lostAt && c.Until.Add(exchange.CopyLag) >= g.answered(c.Node, lostAt)
}

// wasThere reports whether the store answered this node, self, not long before it lost data, so that what this node
// knows of others is not much older.
func (g *gone) wasThere(self string, lostAt quantity.StoreTime) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return lostAt.Sub(g.answered(self, lostAt)) <= 3*namesEvery
}

// alone reports whether every other node than this one, self, is gone at a time.
func (g *gone) alone(self string, now quantity.StoreTime) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for node, n := range g.names {
		if node != self && !isGone(n, now) {
			return false
		}
	}
	return true
}

// all reports whether this node, self, knows what every other node did that the store has answered, and since when.
func (g *gone) all(self string) (since quantity.StoreTime, knows bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, knows = g.names[self]
	for node, n := range g.names {
		if node != self {
			knows, since = knows && n.Read > n.Last, max(since, n.Since)
		}
	}
	return since, knows
}

// known returns the nodes that this one, self, knows of, with what its journal has of those that the store has
// answered no more since. The store last lost data at lostAt, as far as this node knows.
func (g *gone) known(self string, lostAt quantity.StoreTime) (all []exchange.Copied) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(g.names)) {
		n := g.names[node]
		c := exchange.Copied{Node: node, First: n.First, Answered: g.answered(node, lostAt)}
		if n.Read > n.Last {
			c.Since, c.Until, c.Rows, c.Read = n.Since, n.Read, true, n.Read
		}
		if node != self {
			all = append(all, c)
		}
	}
	return all
}

// toRead reports whether this node, self, is to read the store now because of another one that is gone, so
// that nobody need wait for that one after a loss: the first of those that are not gone do it.
func (g *gone) toRead(self string, now quantity.StoreTime, alive func(node string) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	missing, before := false, 0
	for node, n := range g.names {
		switch {
		case node == self:
		case isGone(n, now): // gossip need not be asked of all the others
			missing = missing || n.Read <= n.Last && !alive(node)
		case node < self:
			before++
		}
	}
	return missing && before < mostReaders
}

// noteNames has the journal remember which nodes the store has answered, and what it has of them.
func (e *Engine) noteNames() error {
	e.gone.mu.Lock()
	names, old := maps.Clone(e.gone.names), e.config.Journal.Names()
	e.gone.mu.Unlock()
	changed := len(names) != len(old)
	for node, n := range names {
		was := old[node]
		again := (n.Read > n.Last) != (was.Read > was.Last) // it is answered again, or was read
		changed = changed || again || n.Last > was.Last.Add(namesEvery) || n.Read != was.Read
	}
	if !changed || len(names) == 0 {
		return nil
	}
	return e.config.Journal.RememberNames(names)
}

// recallNames tells the machine, once, of the nodes that the journal says to have used the store: when it
// was last known to answer them, and until when it may have done.
func (e *Engine) recallNames() {
	g := &e.gone
	g.mu.Lock()
	recalled := g.recalled
	g.recalled = true
	if !recalled {
		g.names = e.config.Journal.Names()
	}
	first, last := make(map[string]quantity.StoreTime, len(g.names)), make(map[string]quantity.StoreTime, len(g.names))
	latest := make(map[string]quantity.StoreTime, len(g.names))
	for node, n := range g.names {
		first[node], last[node], latest[node] = n.First, n.Last, n.Last
		if n.Read <= n.Last { // else it was answered no more
			latest[node] = n.Last.Add(namesEvery)
		}
	}
	g.mu.Unlock()
	if !recalled && len(last) > 0 {
		_, lostAt := e.config.Store.Lost()
		e.deliver(exchange.Named{At: last, First: first, LostAt: lostAt})
		e.deliver(exchange.Named{At: latest, Perhaps: true})
	}
}

// Gone returns the nodes that the store has answered no more since this node has read it, in order.
func (e *Engine) Gone() (all []string) {
	for _, c := range e.gone.known(e.config.Node, 0) {
		if c.Rows {
			all = append(all, c.Node)
		}
	}
	return all
}
