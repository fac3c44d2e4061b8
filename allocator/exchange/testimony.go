package exchange

import "github.com/quotad/quotad/algorithms"

// Question is what a node that recovers lost buckets asks of peer regions and of the other nodes
// of its own region. Whoever answers also fences: from then on nodes of the asker's region
// announce no row of a generation below the question's, and other regions credit none.
type Question struct {
	From       string // region
	Node       string
	Generation uint64 // of the region's store, begun since the loss
	Buckets    []Doubt
}

// Doubt is a bucket, and the cells (From to To) whose rows are looked for.
type Doubt struct {
	Bucket   string
	From, To int64
}

// Testimonies answer a Question, doubt by doubt.
type Testimonies struct {
	From          string
	Node          string
	ForGeneration uint64
	All           []Testimony
}

// Testimony is what one node remembers of what a region lent and returned. A node of another
// region tells what its store has heard, about its own region only. A node of the same region
// tells what its journal holds, about all peers.
type Testimony struct {
	Bucket  string
	Refused bool // it could not look: the rest says nothing

	Now    int64 // peer: its store's time
	LostAt int64 // peer: when its own store last lost the bucket, 0: never

	WholeSince int64          // node: store time since which its journal holds every row that it announced
	UseSince   int64          // node: store time since which it knows what it used
	Use        algorithms.Use // node: what counted, as it saw it last
	Rows       []Remembered
}

// Remembered is one row of the ledger as somebody remembers it, in units.
type Remembered struct {
	Peer     string
	Cell     int64
	Lent     int64
	Returned int64
}

// sound says whether a testimony can be computed with and speaks of nothing that it cannot know: not of other peers, nor
// of use in cells to come. latest is the last cell that may have begun by the store's clock, length that of a cell. Use
// of a later one would hide what others saw of this one.
func (t *Testimony) sound(peer string, latest, length int64) bool {
	if !plausible(t.Use.Units, t.Use.Cell, t.Use.At, t.Now, t.LostAt) || t.Use.Cell > latest || t.Use.At >= (latest+1)*length || t.UseSince < 0 {
		return false
	}
	for _, r := range t.Rows {
		if !plausible(r.Lent, r.Returned) || r.Cell < 0 || peer != "" && r.Peer != peer {
			return false
		}
	}
	return true
}

// newer returns the use that was seen in a later cell, or of one cell the larger, as of the later time.
func newer(a, b algorithms.Use) algorithms.Use {
	switch {
	case a.Cell > b.Cell:
		return a
	case b.Cell > a.Cell:
		return b
	}
	return algorithms.Use{Cell: a.Cell, Units: max(a.Units, b.Units), At: max(a.At, b.At)}
}
