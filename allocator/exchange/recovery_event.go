package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Lost says that the store answered that it has lost some buckets (StatusLost).
type Lost struct {
	Buckets    []LostBucket
	Generation uint64             // the generation of the store that said so
	Now        quantity.StoreTime // store time
}

// LostBucket is a bucket and the store time of its loss.
type LostBucket struct {
	Bucket *Bucket
	At     quantity.StoreTime
}

// Questioned is a question that another node asks. Buckets holds for each doubt its bucket under
// our document, or nil if our document has no such bucket.
type Questioned struct {
	ID       uint64 // chosen by the driver; the effects repeat it
	Question Question
	Buckets  []*Bucket
}

// Consulted is the answer to a Consult: what the store remembers of a peer, or what this node's
// journal and memory tell about our own region.
type Consulted struct {
	Consult Consult
	All     []Testimony
	Copies  []Copied // see Testimonies
}

// Testified is an answer to a Recall.
type Testified struct{ Testimonies Testimonies }

// Gathered says that a Recall to all nodes of a region is over. Each node that the driver knows of
// has answered, which came as Testified before, or the time was over.
type Gathered struct {
	Question Question
	Region   string
	Whole    bool // each has answered, and there is one
}

// Waived is the operator's word about all losses up to a store time: what nobody can tell was
// neither used nor lent. Nodes that can be asked are heard first.
type Waived struct{ Until quantity.StoreTime }

// Restored is the store's answer to a Restore.
type Restored struct {
	Restore Restore
	Result  algorithms.Restored
}

func (e Lost) happen(m *Machine, now quantity.NodeTime)       { m.onLost(now, e) }
func (e Questioned) happen(m *Machine, now quantity.NodeTime) { m.onQuestioned(now, e) }
func (e Consulted) happen(m *Machine, now quantity.NodeTime)  { m.onConsulted(now, e) }
func (e Testified) happen(m *Machine, now quantity.NodeTime)  { m.onTestified(now, e.Testimonies) }
func (e Gathered) happen(m *Machine, now quantity.NodeTime)   { m.onGathered(now, e) }
func (e Waived) happen(m *Machine, now quantity.NodeTime)     { m.onWaived(now, e.Until) }
func (e Restored) happen(m *Machine, now quantity.NodeTime)   { m.onRestored(now, e) }

// Recall sends a question to one node of a peer region, whichever it is, or to all of them, or to all
// other nodes of our own region. Each answer comes as Testified; some may not come.
type Recall struct {
	Region   string
	Question Question
	All      bool  // all nodes of a peer region are asked: one of them may have a copy
	Timeout  int64 // microseconds
}

// Consult asks this node's store what it remembers of a peer, or this node's journal and memory
// what they remember of our own region. The driver answers with Consulted.
type Consult struct {
	ID      uint64    // of the Questioned; 0: this node asks for itself
	Peer    string    // whose rows the store is asked for; empty: ask journal and memory
	Buckets []*Bucket // in the order of the doubts; nil: our document has no such bucket
	Question
}

// Testify is the answer to a Questioned.
type Testify struct {
	ID          uint64
	Testimonies Testimonies
}

// Restore asks our store to restore a bucket.
type Restore struct {
	Bucket     *Bucket
	LostAt     quantity.StoreTime
	Generation uint64 // of our store; all answers were given for this one
	algorithms.Known
}
