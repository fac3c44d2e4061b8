package exchange

import (
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// CopyLag is how much later the store may have answered a node, or a region, than a copy of its use is.
const CopyLag = allocator.Second

// addCopies takes in that the use of nodes which do not answer is part of a testimony. A copy tells as
// much as its node would only if it is as late as the store's last answer to that node, as far as this node
// and the one that has the copy know that. Of buckets that are not Recovered nothing is copied or read.
func (m *Machine) addCopies(r *recovery, all []Copied) {
	if !r.bucket.Recovered {
		return
	}
	for _, c := range all {
		n, known := m.named[c.Node]
		if !known || c.Until.Add(CopyLag) < n.answered(r) || !r.tells(c.Read) {
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

// elsewhere is what other regions know of ours: when its store last showed a time before the loss, and a
// copy of all that it used, if there is one.
type elsewhere struct {
	heard map[string]quantity.StoreTime // by region; none of one that does not know
	copy  Copied                        // the latest that goes back to what may still count; Until 0: there is none
}

// addElsewhere takes in what a node of another region tells of ours, and of the use of a bucket.
func (m *Machine) addElsewhere(r *recovery, t Testimonies, use algorithms.Use) {
	r.use = newer(use, r.use)
	e := &r.elsewhere
	if t.Heard > 0 {
		if e.heard == nil {
			e.heard = map[string]quantity.StoreTime{}
		}
		e.heard[t.From] = max(e.heard[t.From], t.Heard)
	}
	for _, c := range t.Copies {
		if c.Until > e.copy.Until && c.Since <= m.usesFrom(r) && r.tells(c.Read) {
			e.copy = c
		}
	}
}

// toldElsewhere says whether a copy in another region tells all that our region used of a lost bucket. It is
// one of all that the region's store knew, as of a time. All other regions say when they last heard of a time
// of that store, and none heard of one much later; nor was any node of ours answered much later.
func (m *Machine) toldElsewhere(r *recovery) bool {
	if r.elsewhere.copy.Until == 0 || r.deleted {
		return false
	}
	until := r.elsewhere.copy.Until.Add(CopyLag)
	for _, p := range m.peers {
		if heard := r.elsewhere.heard[p.name]; heard == 0 || heard > until {
			return false
		}
	}
	for _, n := range m.named {
		if n.answered(r) > until {
			return false
		}
	}
	return true
}

// tells says whether what somebody read from the store at a time can tell of what was lost. It tells
// nothing of what the store did not have any more. A bucket that was deleted it still had if any node saw the
// bucket there later.
func (r *recovery) tells(read quantity.StoreTime) bool {
	return read == 0 || read <= r.lostAt && (!r.deleted || read <= r.use.At)
}

// noteShown notes the latest time of its store that a peer has heard, under a generation that is believed.
func (p *peer) noteShown(generation uint64, at quantity.StoreTime) {
	switch {
	case at <= 0 || at > maxTime:
	case generation < p.lastGeneration:
		p.shownBefore = max(p.shownBefore, at)
	default:
		p.shown = max(p.shown, at)
	}
}

// shownUnder returns the latest time of its store that a peer has heard under generations before one; 0:
// nobody knows.
func (p *peer) shownUnder(generation uint64) quantity.StoreTime {
	if p.lastGeneration < generation {
		return max(p.shown, p.shownBefore)
	}
	return p.shownBefore
}
