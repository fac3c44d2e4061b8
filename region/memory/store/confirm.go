package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Confirmation is a question to the nodes of a region about a store that stands, but whose servers
// have another master_replid than those that it was opened on: does it know all that they had from
// it? A replica that was promoted may not. A replica that was attached, a backup and a moved slot
// change master_replid, too, and lose nothing.
type Confirmation struct {
	Generation uint64 // that stands
	Epoch      string // names the documents that are open there
	// Nodes has the latest time that each shard remembers to have answered a node with since the
	// generation began, in order of the shards. Other nodes had nothing after Begun.
	Nodes map[string][]quantity.StoreTime
	Begun []quantity.StoreTime
	// Replids has the master_replid of each shard's server. A node that confirms them takes any
	// other data of the generation for a loss.
	Replids []string
}

// shown returns the latest times that the store remembers to have answered a node with.
func (c Confirmation) shown(node string) []quantity.StoreTime {
	if times, named := c.Nodes[node]; named {
		return times
	}
	return c.Begun
}

// pledge binds a node to the data of one generation on these servers: it takes any other data of
// that generation for a loss.
type pledge struct {
	generation uint64
	replids    []string
	// given: this node or another may have begun with these data. Otherwise this node only asks for
	// that.
	given bool
}

// pledges lets a node pledge itself to one store in each generation. Two nodes may ask each other
// about two servers, at once or one after the other. Then at most one of them begins as if nothing
// was lost.
type pledges struct {
	mu  sync.Mutex
	has pledge
}

// take notes a pledge, unless there is another one of that generation or a later one.
func (p *pledges) take(next pledge) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.has.generation > next.generation ||
		p.has.generation == next.generation && !slices.Equal(p.has.replids, next.replids) {
		return false
	}
	next.given = next.given || p.has.generation == next.generation && p.has.given
	p.has = next
	return true
}

// end takes back what this node asked for and did not get.
func (p *pledges) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.has.given {
		p.has = pledge{}
	}
}

// goOn pledges this node to the servers that it found, before it begins another generation there.
// It marks each shard whose data are not those that this node confirmed. Such data count as lost,
// and then the earlier pledge stays.
func (p *pledges) goOn(all looks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	broken := false
	for i := range all {
		l := &all[i]
		l.broken = p.has.given && l.Generation <= p.has.generation && i < len(p.has.replids) && l.server != p.has.replids[i]
		broken = broken || l.broken
	}
	if g := all.latest(); !broken && g >= p.has.generation {
		p.has = pledge{g, all.replids(), true}
	}
}

// Confirm reports whether a store knows the latest times that it answered this node with.
// generation is the one that this node works under, or did in its last life; earlier has the times
// of that life.
//
// Whatever it reports, once the node has pledged itself no answer under the generation counts here
// any more, until the store is opened under another one: the store asked about would never learn
// what this node decides with another server. On another server this node takes the generation's
// data for lost.
func (s *session) Confirm(c Confirmation, node string, generation uint64, earlier []quantity.StoreTime) bool {
	if cmp.Or(s.Generation(), generation) != c.Generation || len(c.Replids) != len(s.shards) ||
		!s.pledges.take(pledge{c.Generation, c.Replids, true}) {
		return false
	}
	s.retire(c.Generation)
	seen, shown := s.times(earlier), c.shown(node)
	if len(shown) != len(seen) {
		return false
	}
	for i := range seen {
		if seen[i] > shown[i] {
			return false
		}
	}
	return true
}

// retire ends a generation, and all before it, for this node. The times of answers that came
// earlier are among those that the node then says it has seen.
func (s *session) retire(generation uint64) {
	for {
		before := s.retired.Load()
		if generation <= before || s.retired.CompareAndSwap(before, generation) {
			return
		}
	}
}

// isOver reports whether the generation under which a call was made is retired.
func (s *session) isOver(id *identity) bool {
	return id.generation != 0 && id.generation <= s.retired.Load()
}

// confirmation returns what other nodes must confirm so that nothing counts as lost. It returns nil
// if their word would not be enough, or if nobody knows which nodes to ask. This node itself
// confirms.
func (s *session) confirmation(ctx context.Context, all looks, o Opening) (*Confirmation, error) {
	if !all.onlyMoved(o.LastGeneration) {
		return nil, nil
	}
	c := &Confirmation{Generation: all[0].Generation, Epoch: all[0].Epoch, Nodes: map[string][]quantity.StoreTime{}}
	c.Replids = all.replids()
	if !s.pledges.take(pledge{c.Generation, c.Replids, false}) {
		return nil, nil
	}
	s.retire(c.Generation)
	for i, at := range s.times(o.Seen) {
		if at > all[i].Answered {
			return nil, nil
		}
		c.Begun = append(c.Begun, all[i].Begun)
	}
	named := make([]algorithms.NodeTimes, len(all))
	err := s.each(func(i int, shard Shard) (err error) {
		named[i], err = s.askNodes(ctx, &all[i])
		return err
	})
	var failure *Error
	if errors.As(err, &failure) && failure.Kind == "NOPERM" { // said at the start, see TryRights
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for i := range all {
		if named[i].Status != algorithms.StatusOK {
			return nil, nil
		}
		for node, at := range named[i].At {
			if c.Nodes[node] == nil {
				c.Nodes[node] = slices.Clone(c.Begun)
			}
			c.Nodes[node][i] = at
		}
	}
	if c.Nodes[o.Node] != nil && o.LastGeneration != c.Generation {
		return nil, nil // this node worked with the store, and has forgotten what it had from it
	}
	delete(c.Nodes, o.Node)
	return c, nil
}

// askNodes asks a server which nodes its store has answered. An answer of another server than the
// one that was looked at does not count.
func (s *session) askNodes(ctx context.Context, l *look) (algorithms.NodeTimes, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	op := &Op[algorithms.Nodes, algorithms.NodeTimes]{Call: algorithms.Nodes{Generation: l.Generation}}
	r := s.servers.Exec(ctx, []Call{{Shard: l.shard, Op: op, Identify: true}})[0]
	if r.Err == nil && r.Replid != l.server {
		op.Answer.Status = algorithms.StatusUnknown
	}
	return op.Answer, r.Err
}

// onlyMoved reports whether the only sign of a loss is that some data are on other servers than
// they were opened on. All shards then stand under one generation.
func (all looks) onlyMoved(known uint64) bool {
	moved := false
	for i := range all {
		l := all[i]
		moved = moved || l.Replid != l.server
		l.confirmed = true
		if l.Generation == 0 || l.Generation != all[0].Generation || l.Epoch != all[0].Epoch ||
			l.isForeign() || l.hidesLoss(known) {
			return false
		}
	}
	return moved
}

// Without returns the nodes that a confirmation names and that have not confirmed.
func (c Confirmation) Without(confirmed []string) (missing []string) {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Nodes)),
		func(node string) bool { return slices.Contains(confirmed, node) })
}
