package exchange

import (
	"cmp"
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Named says which nodes our region's store has answered, and when last. There may be more than are
// configured, under new names. What one of them alone used is not known before it has told.
type Named struct {
	At map[string]quantity.StoreTime
	// First has when this node first heard of them, for nodes that the journal remembers; nil: now. The
	// store may have told of them already.
	First map[string]quantity.StoreTime
	// LostAt is when the store last lost data.
	LostAt quantity.StoreTime
	// Perhaps says that the store may have answered them as late as At, though nobody saw it.
	Perhaps bool
}

func (e Named) happen(m *Machine, _ quantity.NodeTime) { m.onNamed(e) }

const (
	// MaxNamed bounds the nodes of our region that are remembered. If there are more, those that
	// were answered last are kept, and the others count as dropped (Stats.NamesDropped).
	MaxNamed = 1024
	// NamedFor is how long before the latest time in the store a node's last answer matters: longer than
	// two years, the longest window and the one before it.
	NamedFor = 733 * 24 * 3600 * allocator.Second
	// namedLag is how much later the store may have answered a node than another node was told.
	namedLag = 2 * allocator.Second
	// lostLag is how much later than a node last heard of all others a loss may be, by the store's own
	// time. For most of it the store answered nobody: it is a beat, the time in which a machine is
	// started anew, and what the store then begins ahead of all times that it gave out.
	lostLag = 4 * allocator.Second
)

// onNamed remembers the nodes. It keeps nodes that a later generation of the store does not know.
func (m *Machine) onNamed(e Named) {
	latest := quantity.StoreTime(0)
	m.noteLoss(e.LostAt)
	for node, at := range e.At {
		n, known := m.named[node]
		if !known {
			n.first = m.firstOf(e.LostAt)
		}
		if first, remembered := e.First[node]; remembered {
			n.first = min(n.first, first)
		}
		switch {
		case e.Perhaps:
			n.perhaps = max(n.perhaps, at)
		case n.last < m.namedLost && m.namedLost <= at:
			n.beforeLoss, n.last = n.last, at
		default:
			n.last = max(n.last, at)
		}
		m.named[node] = n
	}
	for _, n := range m.named {
		latest = max(latest, n.last)
	}
	m.shown, m.namesRead = max(m.shown, latest), max(m.namesRead, latest)
	var times []quantity.StoreTime
	for node, n := range m.named {
		if latest.Sub(n.last) > NamedFor {
			delete(m.named, node)
		} else {
			times = append(times, n.last)
		}
	}
	if len(times) <= MaxNamed {
		return
	}
	slices.Sort(times)
	oldest := times[len(times)-MaxNamed]
	for node, n := range m.named {
		if n.last < oldest {
			delete(m.named, node)
			m.stats.NamesDropped++
		}
	}
}

// firstOf returns since when the store may have answered a node that it names for the first time: since the
// names were read last. If that was so shortly before the loss at lostAt that the store then answered
// nobody, it is since the loss.
func (m *Machine) firstOf(lostAt quantity.StoreTime) quantity.StoreTime {
	if m.namesRead.Add(lostLag) >= lostAt {
		return max(m.namesRead, lostAt)
	}
	return cmp.Or(m.namesRead, lostAt)
}

// noteLoss records when the store last lost data. All that is known of the nodes was before that.
func (m *Machine) noteLoss(at quantity.StoreTime) {
	if at <= m.namedLost {
		return
	}
	m.namedLost = at
	for node, n := range m.named {
		n.beforeLoss = 0
		m.named[node] = n
	}
}

// Answers says when the store answered a node.
type Answers struct {
	First, Last quantity.StoreTime
	BeforeLoss  quantity.StoreTime // the last one before it last lost data, if there are later ones; 0: not known
}

// Named returns the nodes of our region that the store has answered, as far as this machine remembers, and
// when the store last lost data.
func (m *Machine) Named() (all map[string]Answers, lostAt quantity.StoreTime) {
	all = make(map[string]Answers, len(m.named))
	for node, n := range m.named {
		all[node] = Answers{First: n.first, Last: n.last, BeforeLoss: n.beforeLoss}
	}
	return all, m.namedLost
}

// named says when this node first heard that the store had answered a node, when the store last
// did, and until when it may have done so (perhaps). If the node was answered after the last loss,
// beforeLoss is when it was last answered before.
type named struct{ first, last, perhaps, beforeLoss quantity.StoreTime }

// answered returns when a node was last answered before a bucket was lost; if that is not known,
// its last answer of all; 0: as far as this node knows, it was not answered before.
func (n named) answered(r *recovery) quantity.StoreTime {
	switch {
	case r.deleted:
		return n.last
	case n.beforeLoss == 0 && n.first >= r.lostAt:
		return 0
	default:
		return cmp.Or(n.beforeLoss, n.last)
	}
}

// allTold reports whether all nodes that matter are among those that answered. They are as many as
// our region has by configuration, and each node that may have used the store at the time counts or
// later. A node that was first heard of after the loss used nothing of the bucket before.
func (m *Machine) allTold(answered []string, counts, lostAt quantity.StoreTime) bool {
	if len(answered) < m.nodes {
		return false
	}
	for node, n := range m.named {
		if max(n.last, n.perhaps).Add(namedLag) >= counts && n.first <= lostAt.Add(namedLag) && !slices.Contains(answered, node) {
			return false
		}
	}
	return true
}

// usesFrom returns the store time of the oldest use of a lost bucket that may still count and that
// nobody has told. A node that saw the bucket saw all that had been used of it by then.
func (m *Machine) usesFrom(r *recovery) quantity.StoreTime {
	from := max(r.bucket.Terms(m.region).CountsSince(r.lostAt), 0)
	if r.use.At <= r.lostAt {
		return max(from, r.use.At-1)
	}
	return from
}

// toldUse reports whether it is known what our region used of a lost bucket: all its nodes have
// told, or other regions have told for all.
func (m *Machine) toldUse(r *recovery) bool {
	from := m.usesFrom(r)
	var told []string
	for node := range r.told {
		if m.tellsSince(r, node, from) {
			told = append(told, node)
		}
	}
	return m.allTold(told, from, r.lostAt) || m.toldElsewhere(r, from)
}

// toldRows reports whether it is known what our region lent of a lost bucket: the journals of all
// its nodes have told.
func (m *Machine) toldRows(r *recovery) bool {
	return m.allTold(r.nodesWhole, r.bucket.Cells().Opens(r.from-1), r.lostAt)
}
