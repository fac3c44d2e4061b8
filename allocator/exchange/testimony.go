package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Question is what a node that recovers lost buckets asks peer regions and the other nodes of its
// own region. Whoever answers is fenced: from then on nodes of the asker's region announce no row
// of a generation below the question's, and other regions credit none.
type Question struct {
	From       string // region
	Node       string
	Generation uint64 // of the region's store, begun after the loss
	Buckets    []Doubt
}

// Doubt is a bucket and the range of cells, From to To inclusive, whose rows the asker looks for.
type Doubt struct {
	Bucket   string
	From, To quantity.Cell
}

// Testimonies is the answer to a Question: one testimony for each doubt, in order.
type Testimonies struct {
	From          string
	Node          string
	ForGeneration uint64
	All           []Testimony
	// Copies are of nodes of the asker's region that do not answer. What they used, as far as this
	// node has it, is part of its testimonies. A copy that a peer has is of all that the asker's
	// store knew.
	Copies []Copied
	// Heard are the latest times of the asker's store that a peer heard of, one for each generation.
	Heard []HeardOf
}

// Copied says that its author knows of a node. With Until above 0 it also says what the author
// knows of one life of that node: all that it saw from Since on, as of Until, except moves of less
// than a checkpoint is worth.
type Copied struct {
	Node         string
	Since, Until quantity.StoreTime
	Rows         bool // what it lent and returned is there, too
	// Settled, if not 0, is when the store lost data after the end of that life. The life did
	// nothing between Until and then.
	Settled quantity.StoreTime
	// First is when the author first heard that the store answered the node. Answered is when the
	// store last did so before the loss, or later.
	First, Answered quantity.StoreTime
	// Read is as in Testimony.
	Read quantity.StoreTime
}

// Testimony is what one node remembers of what a region lent and returned of one bucket. A node of
// another region reports what its store has heard, about its own region only. A node of the same
// region reports what its journal holds, about all peers.
type Testimony struct {
	Bucket  string
	Refused bool // it could not look; the other fields mean nothing

	Now    quantity.StoreTime // peer: its store's time
	LostAt quantity.StoreTime // peer: when its own store last lost the bucket; 0: never

	// mate: store time since which its journal has every row it announced
	WholeSince quantity.StoreTime
	UseSince   quantity.StoreTime // mate: store time since which it knows everything it used
	// a mate: the use that counted when it last saw the bucket; a peer: the use that its copy has
	Use algorithms.Use
	// mate: store time at which it read what it has from the store, and so tells nothing of what was
	// lost before; 0: it did not
	Read quantity.StoreTime
	Rows []algorithms.RememberedRow
}

// sound reports whether a testimony can be computed with and claims nothing that its author cannot
// know. A peer (named by peer; empty: a node of our region) knows nothing of other peers. Nobody
// knows use in cells to come: such use would hide what others saw of this cell. latest is the last
// of the cells that may have begun by the store's clock.
func (t *Testimony) sound(peer string, latest quantity.Cell, cells algorithms.Cells) bool {
	if !plausible(t.Use.Units, quantity.Units(t.Use.Cell), quantity.Units(t.Use.At),
		quantity.Units(t.Now), quantity.Units(t.LostAt)) || t.Use.Cell > latest ||
		t.Use.At >= cells.Opens(latest+1) || t.UseSince < 0 {
		return false
	}
	for _, r := range t.Rows {
		if !plausible(r.Lent, r.Returned) || r.Cell < 0 || peer != "" && r.Peer != peer {
			return false
		}
	}
	return true
}

// newer returns the use that was seen in the later cell. If both were seen in one cell, it returns
// the larger use and the later time.
func newer(a, b algorithms.Use) algorithms.Use {
	switch {
	case a.Cell > b.Cell:
		return a
	case b.Cell > a.Cell:
		return b
	}
	return algorithms.Use{Cell: a.Cell, Units: max(a.Units, b.Units), At: max(a.At, b.At)}
}

// raiseRow adds a row, or raises the sums of the row that is there.
func (r *recovery) raiseRow(row algorithms.RememberedRow) {
	for i := range r.rows {
		if old := &r.rows[i]; old.Peer == row.Peer && old.Cell == row.Cell {
			old.Lent, old.Returned = max(old.Lent, row.Lent), max(old.Returned, row.Returned)
			return
		}
	}
	r.rows = append(r.rows, row)
}
