package exchange

import (
	"math"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// CopyLag is how much later than a copy of its use the store may have answered a node, or a region:
// the copy still has everything that counts. heardLag is how much earlier than a copy a region may
// have heard of a time of the store. It would then still have heard of a later time.
const (
	CopyLag  = allocator.Second
	heardLag = 3 * allocator.Second
)

// nodeUse is what is known of how one node of our region used a lost bucket.
type nodeUse struct {
	itself bool
	since  quantity.StoreTime // itself: it told all that it used from then on
	copies []Copied
}

// addCopies takes in copies of what other nodes used that do not answer. That use is part of the
// same testimony. Buckets that are not Recovered are neither copied nor read.
func (m *Machine) addCopies(r *recovery, all []Copied) {
	for _, c := range all {
		m.noteName(c)
		if c.Until == 0 || !r.bucket.Recovered || !r.tells(c.Read) {
			continue
		}
		n := m.named[c.Node]
		if t := r.of(c.Node); !slices.Contains(t.copies, c) && len(t.copies) < maxElsewhere {
			t.copies = append(t.copies, c)
		}
		// A row that was written after the copy would count as not written.
		if c.Rows && c.Until > max(n.last, c.Answered) && c.Since <= r.bucket.Cells().Opens(r.from-1) && !slices.Contains(r.nodesWhole, c.Node) {
			r.nodesWhole = append(r.nodesWhole, c.Node)
		}
	}
}

// noteName takes in what another node of our region knows of a node that the store answered.
// Perhaps no other node was there to know it.
func (m *Machine) noteName(c Copied) {
	n, known := m.named[c.Node]
	switch {
	case !known && len(m.named) >= MaxNamed:
		return
	case !known:
		n = named{first: c.First, last: c.Answered}
	case c.Answered < m.namedLost && m.namedLost <= n.last:
		n.beforeLoss = max(n.beforeLoss, c.Answered)
	case n.last < m.namedLost && m.namedLost <= c.Answered:
		n.beforeLoss, n.last = n.last, c.Answered
	default:
		n.last = max(n.last, c.Answered)
	}
	n.first = min(n.first, c.First)
	m.named[c.Node] = n
}

// of returns what is known of a node.
func (r *recovery) of(node string) *nodeUse {
	if r.told == nil {
		r.told = map[string]*nodeUse{}
	}
	if r.told[node] == nil {
		r.told[node] = &nodeUse{}
	}
	return r.told[node]
}

// tellsSince reports whether everything is known that a node used of a lost bucket from a time on.
// There are three ways to know it. The node tells it itself. Or a copy tells it that is as late as
// the store's last answer to the node, as far as this node and the one with the copy know that
// answer. Or older copies, each up to an earlier loss, tell what was before one of these.
func (m *Machine) tellsSince(r *recovery, node string, from quantity.StoreTime) bool {
	t, known := r.told[node], quantity.StoreTime(math.MaxInt64)
	if t.itself {
		if known = t.since; known <= m.named[node].first.Add(namedLag) && m.witness(r, node, from) {
			return true
		}
	}
	for _, c := range t.copies {
		if c.Until.Add(CopyLag) >= max(m.named[node].answered(r), c.Answered) {
			known = min(known, c.Since)
		}
	}
	for range t.copies {
		for _, c := range t.copies {
			if c.Settled < r.lostAt && c.Settled >= known {
				known = min(known, c.Since)
			}
		}
	}
	return known <= from
}

// witness reports whether another node tells all that it used since a time. It would have heard of
// the given node, if that had used the store since then.
func (m *Machine) witness(r *recovery, node string, from quantity.StoreTime) bool {
	for other, t := range r.told {
		if other != node && t.itself && t.since <= from {
			return true
		}
	}
	return false
}

// alone reports whether this node knows of no other node of its region that used the store before
// the last loss.
func (m *Machine) alone() bool {
	for node, n := range m.named {
		if node != m.node && n.first < m.namedLost {
			return false
		}
	}
	return true
}

// elsewhere is what other regions know of ours.
type elsewhere struct {
	heard  map[string][]HeardOf // by region
	whole  []string             // regions of which all nodes have answered one question
	copies []Copied             // of all that our region used
}

// HeardOf is the latest time of the asker's store that a region has heard of under one generation.
// Unsure says that the region heard from the asker later, without a time.
type HeardOf struct {
	At     quantity.StoreTime
	Unsure bool
}

// maxElsewhere bounds the copies of one node that are kept, those of other regions, and the times
// that each region heard of. What decides is among the first of so many.
const maxElsewhere = 256

// addElsewhere takes in what a node of another region tells of ours, and of the use of a bucket.
func (m *Machine) addElsewhere(r *recovery, t Testimonies, use algorithms.Use) {
	r.use = newer(use, r.use)
	e := &r.elsewhere
	if e.heard == nil {
		e.heard = map[string][]HeardOf{}
	}
	for _, h := range t.Heard {
		if all := e.heard[t.From]; h.At < r.lostAt && !slices.Contains(all, h) && len(all) < maxElsewhere {
			e.heard[t.From] = append(all, h)
		}
	}
	for _, c := range t.Copies {
		if c.Until < r.lostAt && r.tells(c.Read) && !slices.Contains(e.copies, c) && len(e.copies) < maxElsewhere {
			e.copies = append(e.copies, c)
		}
	}
}

// toldElsewhere reports whether a copy in another region tells all that our region used of a lost
// bucket from a time on. This node may itself tell what was used after an earlier loss.
func (m *Machine) toldElsewhere(r *recovery, from quantity.StoreTime) bool {
	if r.deleted {
		return false
	}
	own := r.told[m.node]
	for _, c := range r.elsewhere.copies {
		if c.Since > from {
			continue
		}
		if m.heardNoLater(r, c.Until, r.lostAt) || own != nil && own.itself && own.since < r.lostAt && m.heardNoLater(r, c.Until, own.since) {
			return true
		}
	}
	return false
}

// heardNoLater reports whether our region's store surely showed no time much later than a copy
// before a loss. For that all nodes of every other region must have answered; some node of each
// must have heard of a time near the copy, and none of a much later one. No node of ours may have
// been answered much later either.
func (m *Machine) heardNoLater(r *recovery, copied, lostAt quantity.StoreTime) bool {
	until := copied.Add(CopyLag)
	for _, p := range m.peers {
		heard := false
		for _, h := range r.elsewhere.heard[p.name] {
			switch {
			case h.At >= lostAt: // since the loss
			case h.At > until, h.Unsure:
				return false
			case h.At.Add(heardLag) >= copied:
				heard = true
			}
		}
		if !heard || !slices.Contains(r.elsewhere.whole, p.name) {
			return false
		}
	}
	for node, n := range m.named {
		if (node != m.node || lostAt == r.lostAt) && n.answered(r) > until {
			return false
		}
	}
	return true
}

// tells reports whether what a node read from the store at a time can tell what was lost. It cannot
// if the store had lost it by then. A deleted bucket was still there if any node saw it there
// later.
func (r *recovery) tells(read quantity.StoreTime) bool {
	return read == 0 || read <= r.lostAt && (!r.deleted || read <= r.use.At)
}
