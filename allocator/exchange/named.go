package exchange

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Named says which nodes our region's store has answered, and when last. There may be others than the
// configured number, under new names: what one of them alone used is not known before it has told.
type Named struct {
	At map[string]quantity.StoreTime
	// Perhaps: the store may have answered them so late, and was not seen to.
	Perhaps bool
}

func (e Named) happen(m *Machine, _ quantity.NodeTime) { m.onNamed(e) }

const (
	// MaxNamed bounds the nodes of our region that are remembered. Of more, those that were answered
	// last are, and the others count as dropped (Stats.NamesDropped).
	MaxNamed = 1024
	// NamedFor is how long before the latest time in the store a node's last answer matters: longer than
	// two years, the longest window and the one before it.
	NamedFor = 733 * 24 * 3600 * allocator.Second
	// namedLag is how much later a node may have been answered last than another one was told.
	namedLag = 2 * allocator.Second
	// CopyLag is how much later a node may have been answered last than a copy of its use is.
	CopyLag = allocator.Second
)

// onNamed remembers the nodes, also those that a later generation of the store does not know.
func (m *Machine) onNamed(e Named) {
	latest := quantity.StoreTime(0)
	for node, at := range e.At {
		n, known := m.named[node]
		if !known {
			n.first = at
		}
		if e.Perhaps {
			n.perhaps = max(n.perhaps, at)
		} else {
			n.last = max(n.last, at)
		}
		m.named[node] = n
	}
	for _, n := range m.named {
		latest = max(latest, n.last)
	}
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

// Named returns the nodes of our region that the store has answered, and when last, as far as this
// machine remembers.
func (m *Machine) Named() map[string]quantity.StoreTime {
	all := make(map[string]quantity.StoreTime, len(m.named))
	for node, n := range m.named {
		all[node] = n.last
	}
	return all
}

// named says when this node heard first that the store answered a node, when the store did so last, and
// until when it may have done.
type named struct{ first, last, perhaps quantity.StoreTime }

// allTold says whether as many nodes as our region has are among those that answered, and all that
// used the store at a time that counts, or later. A node that was heard of after the loss used nothing
// of the bucket before.
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

// addCopies takes in that the use of nodes which do not answer is part of a testimony. A copy tells as
// much as its node would only if it is as late as the store's last answer to that node, as far as this node
// and the one that has the copy know that. Of buckets that are not Recovered nothing is copied or read.
func (m *Machine) addCopies(r *recovery, all []Copied) {
	if !r.bucket.Recovered {
		return
	}
	for _, c := range all {
		n, known := m.named[c.Node]
		if !known || c.Until.Add(CopyLag) < n.last || !r.tells(c.Read) {
			continue
		}
		if c.Since <= m.usesFrom(r) && !slices.Contains(r.nodesAnswered, c.Node) {
			r.nodesAnswered = append(r.nodesAnswered, c.Node)
		}
		// A row that is later than the copy would be taken for none.
		if c.Rows && c.Until > n.last && c.Since <= r.bucket.Cells().Opens(r.from-1) && !slices.Contains(r.nodesWhole, c.Node) {
			r.nodesWhole = append(r.nodesWhole, c.Node)
		}
	}
}

// tells says whether what somebody read from the store at a time can tell of what was lost. It tells
// nothing of what the store did not have any more. A bucket that was deleted it still had if any node saw the
// bucket there later.
func (r *recovery) tells(read quantity.StoreTime) bool {
	return read == 0 || read <= r.lostAt && (!r.deleted || read <= r.use.At)
}

// usesFrom returns the store time of the oldest use of a lost bucket that may still count.
func (m *Machine) usesFrom(r *recovery) quantity.StoreTime {
	return max(r.bucket.Terms(m.region).CountsSince(r.lostAt), 0)
}

// toldUse says whether what our region used of a lost bucket is known: all its nodes have told.
func (m *Machine) toldUse(r *recovery) bool {
	return m.allTold(r.nodesAnswered, m.usesFrom(r), r.lostAt)
}

// toldRows says whether what our region lent of a lost bucket is known: the journals of all its nodes
// are.
func (m *Machine) toldRows(r *recovery) bool {
	return m.allTold(r.nodesWhole, r.bucket.Cells().Opens(r.from-1), r.lostAt)
}
