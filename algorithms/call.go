package algorithms

// Fence is what a node believes of its region's store; a script that finds otherwise changes nothing and answers
// StatusUnknown.
type Fence struct {
	Generation uint64
	Epoch      string // policy epoch in force
	Clock      int64  // the node's wall clock
	Node       string // who asks
	// Seen is the latest time that this store has answered the node with: one that has not is an older copy of itself.
	Seen int64
}

// Fenced returns the fence, for whoever completes it.
func (f *Fence) Fenced() *Fence { return f }

// Target is the bucket that a call is about.
type Target struct {
	Key   string // Redis key of its hash
	Terms Terms
	// ExistsUntil is as in State, as the caller last heard it: a bucket that is not there before that
	// time was deleted. Inspect and Restore do not ask.
	ExistsUntil int64
}

// LimitTarget is the bucket of one of the limits that apply to a request.
type LimitTarget struct {
	Target
	Shadow bool // reports, never denies
}

// Decide is a list of requests on the same buckets, decided in order and atomically.
type Decide struct {
	Fence
	Commit  bool // false: say what would be decided, charge nothing that stays
	Buckets []LimitTarget
	Costs   []int64 // each 1..MaxUnits
	// Once is the key under which a request of its own is remembered if it is admitted, for RememberedFor: decided
	// again, it is answered as the first time and not charged. Empty: no such memory.
	Once string
	// Repeats is how often what is remembered is answered. Beyond that the call is decided as one without Once, and
	// what is remembered stays. 0: DefaultRepeats.
	Repeats int64
}

// DefaultRepeats is how often a request may be sent again under its Once: a caller without an answer tries once or
// twice more, so that one more leaves room for a proxy that does so too.
const DefaultRepeats = 3

// repeats returns how often what is remembered is answered.
func (c Decide) repeats() int64 {
	if c.Repeats == 0 {
		return DefaultRepeats
	}
	return c.Repeats
}

// RememberedFor is how long an admitted request is remembered under its Once, in milliseconds.
const RememberedFor = 60_000

// Lend asks the store to raise what this region gives Peer of a cell, giving back borrowed rights first.
type Lend struct {
	Fence
	Target
	Peer     string
	Cell     int64
	Returned int64 // value that Q[self->peer] should reach
	Lent     int64 // value that R[self->peer] should reach
	Kept     int64 // units of the cell this region keeps beyond those it has used
	Cap      int64 // most this region may have lent out of the cell, net, over all peers

	Burst     int64 // token_bucket: value that Y[self->peer], the burst lent, should reach
	KeptBurst int64 // tokens this region keeps
	CapBurst  int64 // most burst this region may have lent out of the cell
}

// Credit tells the store what Peer says it gave this region of a cell.
type Credit struct {
	Fence
	Target
	Peer           string
	PeerGeneration uint64 // of the peer's store when it wrote the rows
	Cell           int64
	Lent           int64
	Returned       int64
	Most           int64 // that Peer may have lent us of the cell, net of what we returned
	Burst          int64
	MostBurst      int64
	At             int64 // the peer's store time when it said so; 0: it does not know it
}

// Inspect reads the ledger of one bucket.
type Inspect struct {
	Fence
	Target
}

// Refund takes back what one decision charged, once.
type Refund struct {
	Fence
	Receipt string // key under which it is remembered that this was refunded
	Once    string // key of the decision's own Decide; it is forgotten, so that the request may be decided anew
	At      int64  // store time of the decision
	Cost    int64
	Charges []Charge
}

// Charge is what a decision charged one bucket. Without a Kind, no limit is in force any more that the bucket is of.
type Charge struct {
	Target
	Cell int64
}

// Reset clears the use of one bucket, and nothing else: no row, no mark, no epoch.
type Reset struct {
	Fence
	Target
}

// Recall asks a region what it has heard from Peer of one bucket, for Peer to recover it under a new generation; from
// then on the region refuses rows that Peer wrote under a lower one.
type Recall struct {
	Fence
	Target
	Peer           string
	PeerGeneration uint64
}

// Restore gives a lost bucket back what is known of it.
type Restore struct {
	Fence
	Target
	LostAt       int64     // of the loss, as StatusLost came with
	Cap          int64     // most the region may have lent out of a cell
	Use          Use       // seen last
	Most         int64     // that can have been used before the loss, where not all nodes of the region told; else 0
	KnownPeers   []string  // peers of which all that was lent and returned to them is in Rows
	UnknownPeers []string  // all other peers
	Rows         []PeerRow // of the known peers: cell, peer, Lent and Returned count
}

// Use is what counted in a bucket, as seen at a store time.
type Use struct{ Cell, Units, At int64 }

// Book charges what a node admitted without the store in a window: Units in all, of which the bucket remembers what
// it has charged.
type Book struct {
	Fence
	Target
	Node   string
	Window int64 // its number, by the node's meter
	Units  int64
}

// Open begins a generation of a store.
type Open struct {
	Expected   uint64 // generation found before, 0 for none
	Generation uint64
	Region     string
	Epoch      string
	Lost       bool   // the store may have lost data of an earlier generation
	Seen       int64  // the latest time that the store is known to have shown, or should show
	Secret     string // random; what seals the receipts of this generation
	Replid     string // master_replid of the server, which a copy of its data does not have
	Node       string // who asks
}

// Note has the token remember something of a node, until the store loses its data.
type Note struct {
	Generation uint64
	Node       string
	Text       string
}

// Beat has the store show its time.
type Beat struct{ Fence }

// Adopt puts a newer policy epoch in force; an epoch begins with the version of its document and a dash.
type Adopt struct {
	Generation uint64
	Epoch      string
}

// Keys returns the script's KEYS after the token's: those of the buckets in order, and Once unless it is empty.
func (c Decide) Keys() []string {
	keys := make([]string, 0, len(c.Buckets)+1)
	for _, b := range c.Buckets {
		keys = append(keys, b.Key)
	}
	if c.Once != "" {
		keys = append(keys, c.Once)
	}
	return keys
}

// Keys returns the script's KEYS after the token's: Receipt, Once, and those of the charges in order.
func (c Refund) Keys() []string {
	keys := append(make([]string, 0, len(c.Charges)+2), c.Receipt, c.Once)
	for _, charge := range c.Charges {
		keys = append(keys, charge.Key)
	}
	return keys
}

// Keys returns the script's KEYS after the token's.
func (c Lend) Keys() []string { return []string{c.Key} }

// Keys returns the script's KEYS after the token's.
func (c Credit) Keys() []string { return []string{c.Key} }

// Keys returns the script's KEYS after the token's.
func (c Inspect) Keys() []string { return []string{c.Key} }

// Keys returns the script's KEYS after the token's.
func (c Reset) Keys() []string { return []string{c.Key} }

// Keys returns the script's KEYS after the token's.
func (c Recall) Keys() []string { return []string{c.Key} }

// Keys returns the script's KEYS after the token's.
func (c Restore) Keys() []string { return []string{c.Key} }

// Keys returns the script's KEYS after the token's.
func (c Book) Keys() []string { return []string{c.Key} }

// RememberedUntil returns until which store time it is remembered that this was refunded, in milliseconds: for as long as
// it could be refunded. That of a bucket depends on its rate, which may change, and what is of no limit any more may be of
// one again: for as long as any may be.
func (c Refund) RememberedUntil() int64 {
	var until int64
	for _, charge := range c.Charges {
		if t := charge.Terms; t.Kind == "" || t.Kind.Bucket() {
			until = max(until, c.At+refundableFor)
		} else {
			until = max(until, t.Weighs(charge.Cell))
		}
	}
	return (until+KeySlack)/1000 + 1
}
