package rights

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/copies"
	"github.com/quotad/quotad/region/journal"
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
	lost     map[string]quantity.StoreTime // when those were last answered before the last loss that were since
	recalled bool                          // the machine knows what names the journal has
}

// name takes in when the store last answered nodes. Others are kept as long as what they did may count.
func (g *gone) name(all map[string]exchange.LastAnswer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	named, latest := make(map[string]journal.Name, len(all)), quantity.StoreTime(0)
	g.lost = map[string]quantity.StoreTime{}
	for node, last := range all {
		n := g.names[node]
		n.Last, latest = last.At, max(latest, last.At)
		named[node], g.lost[node] = n, last.BeforeLoss
	}
	for node, n := range g.names {
		if _, known := named[node]; !known && latest.Sub(n.Last) <= exchange.NamedFor && len(named) < exchange.MaxNamed {
			named[node] = n
		}
	}
	g.names = named
}

// isGone says whether a node was not answered for a while before a time. One that goes on is answered once
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

// asLate says whether a copy of a node is as late as the store's last answer to it: with lost as its last
// answer before it last lost data.
func (g *gone) asLate(c copies.Copy, lost bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, known := g.names[c.Node]
	last := n.Last
	if before := g.lost[c.Node]; lost && before > 0 {
		last = before
	}
	return known && c.Until.Add(exchange.CopyLag) >= last
}

// alone says whether every other node than this one, self, is gone at a time.
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

// all says whether this node, self, knows what every other node did that the store has answered.
func (g *gone) all(self string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, named := g.names[self]
	for node, n := range g.names {
		named = named && (node == self || n.Read > n.Last)
	}
	return named
}

// known returns what this node's journal has of nodes that the store has answered no more since.
func (g *gone) known() (all []exchange.Copied) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(g.names)) {
		if n := g.names[node]; n.Read > n.Last {
			all = append(all, exchange.Copied{Node: node, Since: n.Since, Until: n.Read, Rows: true, Read: n.Read})
		}
	}
	return all
}

// toRead says whether this node, self, is to read the store now because of another one that is gone, so
// that nobody need wait for that one after a loss: the first of those that are not gone do it.
func (g *gone) toRead(self string, now quantity.StoreTime, alive func(node string, life uint64) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	missing, before := false, 0
	for node, n := range g.names {
		switch {
		case node == self:
		case isGone(n, now): // gossip need not be asked of all the others
			missing = missing || n.Read <= n.Last && !alive(node, 0)
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
	last, latest := make(map[string]quantity.StoreTime, len(g.names)), make(map[string]quantity.StoreTime, len(g.names))
	for node, n := range g.names {
		last[node], latest[node] = n.Last, n.Last
		if n.Read <= n.Last { // else it was answered no more
			latest[node] = n.Last.Add(namesEvery)
		}
	}
	g.mu.Unlock()
	if !recalled && len(last) > 0 {
		e.Named(last)
		e.deliver(exchange.Named{At: latest, Perhaps: true})
	}
}

// Gone returns the nodes that the store has answered no more since this node has read it, in order.
func (e *Engine) Gone() (all []string) {
	for _, c := range e.gone.known() {
		all = append(all, c.Node)
	}
	return all
}
