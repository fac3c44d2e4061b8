package exchange

import "github.com/quotad/quotad/algorithms"

// Lost says that the store has answered that it lost some buckets (StatusLost).
type Lost struct {
	Buckets    []LostBucket
	Generation uint64 // of the store that said so
	Now        int64  // store time
}

// LostBucket is a bucket and when it was lost, by the store's time.
type LostBucket struct {
	Bucket *Bucket
	At     int64
}

// Questioned is a question of another node. Buckets holds, for each doubt, its bucket under our
// document, or nil if there is none.
type Questioned struct {
	ID       uint64 // the driver's, to be found again in the effects
	Question Question
	Buckets  []*Bucket
}

// Consulted is the answer to a Consult: what the store remembers of a peer, or what the journal
// and the memory of this node tell about our own region.
type Consulted struct {
	Consult Consult
	All     []Testimony
}

// Testified is an answer to a Recall.
type Testified struct{ Testimonies Testimonies }

// Restored is the store's answer to a Restore.
type Restored struct {
	Restore Restore
	Result  algorithms.Restored
}

func (Lost) event()       {}
func (Questioned) event() {}
func (Consulted) event()  {}
func (Testified) event()  {}
func (Restored) event()   {}

// Recall puts a question to a peer region, to any one node of it, or to all other nodes of our own
// region. The answers come as Testified, if they come.
type Recall struct {
	Region   string
	Question Question
	Timeout  int64 // microseconds
}

// Consult asks this node's store, or its journal and memory, what they remember. The driver
// answers with Consulted.
type Consult struct {
	ID      uint64    // of the Questioned; 0: the question is our own
	Peer    string    // whose rows the store is asked for; empty: our region's, and the journal is
	Buckets []*Bucket // by doubt; nil: not of our document
	Question
}

// Testify is the answer to a Questioned.
type Testify struct {
	ID          uint64
	Testimonies Testimonies
}

// Restore asks our store to restore a bucket; see algorithms.Restore.
type Restore struct {
	Bucket       *Bucket
	LostAt       int64
	Generation   uint64 // of our store, for which all of it was told
	Cap          int64
	Most         int64 // that can have been used, where not all nodes of our region told; else 0
	Use          algorithms.Use
	KnownPeers   []string
	UnknownPeers []string
	Rows         []Remembered
}
