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
	// namesEvery is how much later the store may have answered a node than the journal says, in
	// microseconds.
	namesEvery = int64(10 * time.Second / time.Microsecond)
	// mostReaders is how many nodes of a region read the store if some are gone.
	mostReaders = 2
)

// gone is what this node knows of other nodes of its region that used the store: when the store
// last answered each of them, and until when this node's journal has what it did. If a node ends
// for good, nobody else may know that. Safe for concurrent use.
type gone struct {
	mu       sync.Mutex
	names    map[string]journal.Name
	before   map[string]quantity.StoreTime // of nodes answered after the last loss: when they were last answered before it; 0: not known
	lostAt   quantity.StoreTime            // of that loss
	recalled bool                          // the machine knows what names the journal has
}

// name takes in when the store last answered nodes. It keeps other nodes as long as what they did
// may count.
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

// isGone reports whether the store had not answered a node for a while at a time. A node that runs
// is answered once a second.
func isGone(n journal.Name, at quantity.StoreTime) bool { return n.Last.Add(namesEvery) < at }

// read records that this node, self, has read at a time what the store has of the nodes that are
// gone, from since on.
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

// readBy returns when this node, self, read from the store what its journal lacked; 0: it did not.
func (g *gone) readBy(self string) quantity.StoreTime {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.names[self].Read
}

// readAll records that this node, self, has read at a time what its journal lacked.
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

// answered returns when the store last answered a node before the loss at lostAt. If that is not
// known, it returns the last answer of all. The caller holds mu.
func (g *gone) answered(node string, lostAt quantity.StoreTime) quantity.StoreTime {
	if before := g.before[node]; before > 0 && g.lostAt == lostAt {
		return before
	}
	return g.names[node].Last
}

// asLate reports whether a copy of a node is as late as the store's last answer to that node before
// the loss at lostAt.
func (g *gone) asLate(c copies.Copy, lostAt quantity.StoreTime) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.names[c.Node]
	return known && g.lostAt == lostAt && c.Until.Add(exchange.CopyLag) >= g.answered(c.Node, lostAt)
}

// wasThere reports whether the store answered this node, self, shortly before it lost data. Then
// what this node knows of others is not much older than the loss.
func (g *gone) wasThere(self string, lostAt quantity.StoreTime) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return lostAt.Sub(g.answered(self, lostAt)) <= 3*namesEvery
}

// alone reports whether all nodes but this one, self, are gone at a time.
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

// all reports whether this node, self, knows what every other node did that the store has answered.
// since is from when on it knows that.
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

// known returns the nodes that this one, self, knows of. If the store has not answered a node since
// this one read what it did, that is in this node's journal. lostAt is when the store last lost
// data, as far as this node knows.
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

// toRead reports whether this node, self, should read the store now because another one is gone, so
// that nobody waits for that one after a loss. The first mostReaders of the nodes that run do so.
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

// noteNames writes to the journal which nodes the store has answered, and what the journal has of
// them.
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

// recallNames tells the machine, once, which nodes used the store by the journal: when the store is
// known to have answered each of them last, and until when it may have done so.
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

// Gone returns the nodes that the store has not answered since this node read what they did, in
// order.
func (e *Engine) Gone() (all []string) {
	for _, c := range e.gone.known(e.config.Node, 0) {
		if c.Rows {
			all = append(all, c.Node)
		}
	}
	return all
}
