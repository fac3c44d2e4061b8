package exchange

import (
	"math"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// CopyLag is how much later the store may have answered a node, or a region, than a copy of its use is.
// heardLag is how much earlier a region may have heard of a time of the store than a copy is, and be the one
// that would have heard of a later one.
const (
	CopyLag  = allocator.Second
	heardLag = 3 * allocator.Second
)

// told is what is known of what one node of our region used of a lost bucket.
type told struct {
	itself bool
	since  quantity.StoreTime // it told itself all that it used from then on
	copies []Copied
}

// addCopies takes in that the use of lives of nodes which do not answer is part of a testimony. Of buckets that
// are not Recovered nothing is copied or read.
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
		// A row that is later than the copy would be taken for none.
		if c.Rows && c.Until > max(n.last, c.Answered) && c.Since <= r.bucket.Cells().Opens(r.from-1) && !slices.Contains(r.nodesWhole, c.Node) {
			r.nodesWhole = append(r.nodesWhole, c.Node)
		}
	}
}

// noteName takes in what another node of our region knows of one that the store answered. Who tells it may be
// the only one that was there.
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
func (r *recovery) of(node string) *told {
	if r.told == nil {
		r.told = map[string]*told{}
	}
	if r.told[node] == nil {
		r.told[node] = &told{}
	}
	return r.told[node]
}

// tellsSince reports whether all is known that a node used of a lost bucket from a time on. It tells that itself; or
// a copy does, which is as late as the store's last answer to the node, as far as this node and the one that has
// the copy know that; or copies tell what was before one of these, until losses before.
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

// witness reports whether another node than one tells all since a time, so that it has heard of that node, too, if
// the node used the store since then.
func (m *Machine) witness(r *recovery, node string, from quantity.StoreTime) bool {
	for other, t := range r.told {
		if other != node && t.itself && t.since <= from {
			return true
		}
	}
	return false
}

// alone reports whether this node knows of no other one of its region that used the store before it last lost data.
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

// HeardOf says that a region heard of a time of the asker's store, and of no later one of the same generation;
// Unsure: it heard the region later than that, and of no time.
type HeardOf struct {
	At     quantity.StoreTime
	Unsure bool
}

// maxElsewhere bounds what is kept of copies of a node and of those elsewhere, and of times by region: what tells is
// among the first of so many.
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

// toldElsewhere reports whether a copy in another region tells all that our region used of a lost bucket from a time
// on; what was after the loss before, this node may tell itself.
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

// heardNoLater reports whether our region's store showed no time much later than a copy elsewhere is, before a loss.
// Of every other region all nodes have answered, and one heard of about the time of the copy, and none of a much
// later one. Nor was a node of ours answered much later.
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

// tells reports whether what somebody read from the store at a time can tell of what was lost. It tells
// nothing of what the store did not have any more. A bucket that was deleted it still had if any node saw the
// bucket there later.
func (r *recovery) tells(read quantity.StoreTime) bool {
	return read == 0 || read <= r.lostAt && (!r.deleted || read <= r.use.At)
}
