package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Bucket is what the open policy documents say about one bucket. Limit, Entitlements and Bursts are
// units, times are microseconds.
type Bucket struct {
	ID    string
	Name  string // of its limit, under which moved units are counted; empty: they are not
	Epoch string // of the open documents
	// Agreed is a digest of what two regions must agree on to trade: the parts of all regions, and
	// what they may lend and borrow. Regions whose documents differ elsewhere have the same.
	Agreed       uint64
	Kind         algorithms.Kind
	Limit        quantity.Units
	Window       int64
	Cell         int64               // the length of a cell
	Calendar     algorithms.Calendar // see algorithms.Terms
	Tick         int64               // see algorithms.Terms
	ClockMargin  int64
	Recovered    bool                      // see algorithms.Terms
	Entitlements map[string]quantity.Units // by region
	Bursts       map[string]quantity.Units // by region; token and leaky buckets only
	// parts per million of its entitlement that a region may lend
	Lending quantity.PPM
	// LentBefore is the most of a cell that this region may have lent under a document that no
	// longer binds alone; 0: no more than Lending says.
	LentBefore quantity.Units
	// LendsBefore is for a limit that is gone: nothing is lent of cells that open then or later; 0:
	// all cells may be lent.
	LendsBefore quantity.StoreTime
	Home        bool // one region is entitled to all; the others borrow unit by unit
	// The parts per million of its entitlement that a region may borrow; negative: no bound.
	Borrowing quantity.PPM
	Assigned  bool // see allocator.Frame
	// The largest part, below the whole, of the rights that a class may use; 0: there is none.
	Capped quantity.PPM
	Always bool // it is charged costs that are known only afterwards, and may owe
}

// Terms returns the terms that a region's store needs to work on the bucket.
func (b *Bucket) Terms(region string) algorithms.Terms {
	return algorithms.Terms{Kind: b.Kind, Window: b.Window, Cell: b.Cell, Tick: b.Tick,
		Calendar: b.Calendar, ClockMargin: b.ClockMargin, Recovered: b.Recovered,
		Entitlement: b.Entitlements[region], Burst: b.Bursts[region]}
}

// Cells returns how the bucket's time is divided into cells.
func (b *Bucket) Cells() algorithms.Cells {
	return algorithms.Cells{Length: b.Cell, Calendar: b.Calendar}
}

// Event is something that happened to a node. The events are the types below.
type Event interface {
	happen(m *Machine, now quantity.NodeTime) // hands the event to its handler
}

// Tick says that about 200 ms (Interval) have passed.
type Tick struct {
	Jitter quantity.PPM       // parts per million around a million, drawn anew for each tick
	Clock  quantity.StoreTime // the node's own clock, microseconds since 1970; 0: not told
	// News says that this region says something else of its limits documents than at the last tick.
	// Every peer is told at once.
	News bool
}

// Observed reports what this node decided on one bucket since the last report.
type Observed struct {
	Bucket *Bucket
	allocator.Requests
	State algorithms.State   // as the last decision left it
	Now   quantity.StoreTime // store time of the last decision; 0: there was none
	Large quantity.Units     // the largest of the large costs that were denied; 0: none
	Flow  Flow
	Asked bool // about a use whose cost is known only afterwards
}

// Flow is what Envoys admit and deny of a bucket by themselves. It holds until another one is told,
// and for flowLife at most.
type Flow struct {
	Told             bool // false: as before
	Admitted, Denied quantity.MilliRate
}

// Report reports decisions on several buckets, each bucket once. What the machine asks for because
// of them goes to each peer in one message.
type Report []Observed

// Wanted says that requests wait for rights of a bucket's current cell, or for tokens
// (on_exhausted: borrow). Effects.Settled ends the wait.
type Wanted struct {
	Bucket *Bucket
	Units  quantity.Units     // what all waiting requests cost together
	State  algorithms.State   // as the denied decision found it
	Now    quantity.StoreTime // store time of that decision
}

// Asked is a message from a peer. Buckets holds for each ask its bucket under our document, or nil
// if our document has no such bucket.
type Asked struct {
	ID      uint64 // chosen by the driver; the effects repeat it
	Message Message
	Buckets []*Bucket
}

// Lent is the store's answer to all Lend effects of one ID, in their order. For a store that
// failed, the driver answers StatusUnknown.
type Lent struct {
	ID    uint64
	Given []algorithms.Given
}

// Recorded reports whether the journal has made the rows of a Record durable.
type Recorded struct {
	ID uint64
	OK bool
	// Unnoted says that the store does not remember that the journal has the rows. If an older copy of
	// the journal were put back, nobody would know that it lacks them.
	Unnoted bool
}

// Answered is the reply to a call.
type Answered struct {
	ID    uint64
	Reply Reply
}

// Unanswered says that a call has failed or timed out. The driver does not report a reply that
// comes later.
type Unanswered struct{ ID uint64 }

// Credited is the store's answer to one Credit.
type Credited struct {
	Credit Credit
	Result algorithms.Credited
}

// Heard is a hint from a peer.
type Heard struct{ Hint Hint }

// TenureChanged tells the machine its store's generation, its policy document (Epoch) and its
// peers. The driver sends it at the start, when the store was opened again, and when another
// document came into force. The machine forgets what it knew of buckets only if the generation
// changed. It keeps what it knew of peers that stay in the document.
type TenureChanged struct {
	Generation uint64
	Epoch      string
	Peers      []string           // the document's other regions
	Clock      quantity.StoreTime // the node's own clock, microseconds since 1970; 0: not told
	LostAt     quantity.StoreTime // when the store last lost data; a bucket that was lost later was deleted
}

func (e Tick) happen(m *Machine, now quantity.NodeTime)          { m.onTick(now, e) }
func (e Observed) happen(m *Machine, now quantity.NodeTime)      { m.onObserved(now, e) }
func (e Wanted) happen(m *Machine, now quantity.NodeTime)        { m.onWanted(now, e) }
func (e Asked) happen(m *Machine, now quantity.NodeTime)         { m.onAsked(now, e) }
func (e Lent) happen(m *Machine, now quantity.NodeTime)          { m.onLent(now, e) }
func (e Recorded) happen(m *Machine, _ quantity.NodeTime)        { m.onRecorded(e) }
func (e Answered) happen(m *Machine, now quantity.NodeTime)      { m.onAnswered(now, e) }
func (e Unanswered) happen(m *Machine, now quantity.NodeTime)    { m.onUnanswered(now, e) }
func (e Credited) happen(m *Machine, now quantity.NodeTime)      { m.onCredited(now, e) }
func (e Heard) happen(m *Machine, now quantity.NodeTime)         { m.onHeard(now, e.Hint) }
func (e TenureChanged) happen(m *Machine, now quantity.NodeTime) { m.onTenureChanged(now, e) }

func (e Report) happen(m *Machine, now quantity.NodeTime) {
	for _, o := range e {
		m.onObserved(now, o)
	}
}

// Effects is the work that the driver must do after a step. The effects of one step do not depend
// on each other: the driver may do them in any order or at the same time. If a crash loses any of
// them, no limit is broken.
type Effects struct {
	Lend    []Lend    // in our store; answer all those of one ID with one Lent
	Record  []Record  // in the journal; answer each with Recorded once it is durable
	Replies []Answer  // to the peer that asked
	Calls   []Call    // to peers; answer each with Answered or Unanswered
	Credits []Credit  // in our store; answer each with Credited
	Hints   []Hint    // to gossip
	Settled []Settled // the end of a wait that Wanted or Lost began
	Told    []Told    // what regions say of their limits documents
	Reliefs []Relief  // of buckets of which requests were denied lately
	// Allotments, after a Tick, are of all buckets that this node may assign less of than its
	// Envoys want.
	Allotments []Allotment

	Recalls  []Recall  // to peers and to our region's other nodes; report each reply as Testified
	Consults []Consult // of our store, or of our journal and memory; answer each with Consulted
	Testify  []Testify // to the node that asked
	Restores []Restore // in our store; answer each with Restored
}

// Allotment is the most that a node may assign to Envoys of a bucket, so that other nodes and
// regions get their parts.
type Allotment struct {
	Bucket string
	Rights quantity.Units // in a window
}

// Told is what a region says of its limits documents, with a message or a reply of its own.
type Told struct {
	Region    string
	Documents []Acknowledged
}

// Settled ends the wait of requests for rights of a bucket's current cell, or for the recovery of a
// lost bucket.
type Settled struct {
	Bucket     string
	RetryHelps bool // deciding again may help; false: nothing is under way
}

// Lend is a debit that our store must make for a peer.
type Lend struct {
	ID         uint64 // of the Asked
	Bucket     *Bucket
	Generation uint64 // of our store
	algorithms.Debit
}

// Record holds the rows that a reply will announce once the journal has made them durable.
type Record struct {
	ID   uint64 // of the Asked
	Rows []Row
}

// Row holds the sums that this region has given a peer of one bucket and cell so far, in units.
type Row struct {
	Bucket     string
	Peer       string
	Cell       quantity.Cell
	Lent       quantity.Units
	Returned   quantity.Units
	Burst      quantity.Units
	Generation uint64
	Until      quantity.StoreTime // store time after which the row no longer weighs, microseconds
}

// Gave returns a row of a region's ledger as its journal keeps it: what the region, whose store is
// of a generation, has given a peer. ok reports whether it gave anything.
func (b *Bucket) Gave(region string, generation uint64, r algorithms.PeerRow) (row Row, ok bool) {
	return Row{Bucket: b.ID, Peer: r.Peer, Cell: r.Cell, Lent: r.Lent, Returned: r.Returned, Burst: r.BurstLent,
		Generation: generation, Until: b.Terms(region).Weighs(r.Cell)}, r.Lent > 0 || r.Returned > 0 || r.BurstLent > 0
}

// Answer is the reply to an Asked.
type Answer struct {
	ID    uint64
	Reply Reply
}

// Call is a message to any node of a peer region.
type Call struct {
	ID      uint64
	Peer    string
	Message Message
	Timeout int64 // microseconds
}

// Credit is what a peer says it gave us. Our store must credit it.
type Credit struct {
	Bucket *Bucket
	algorithms.Announcement
	// ForGeneration is the generation of our store that the peer answered. A store of a later
	// generation credits nothing of it: it may have forgotten which answers it must refuse.
	ForGeneration uint64
	// Gain is how many units this adds to what the machine knew, and GainBurst how many tokens.
	Gain, GainBurst quantity.Units
}
