package algorithms

import (
	"cmp"
	"slices"

	"github.com/quotad/quotad/quantity"
)

// Fence is what a node expects of its region's store. A script that finds another generation or
// epoch, or a store that has forgotten Seen, changes nothing and answers StatusUnknown. If the
// clocks are more than MaxClockStep apart, it changes nothing and answers StatusClock.
type Fence struct {
	Generation uint64
	Epoch      string             // policy epoch in force
	Clock      quantity.StoreTime // the node's wall clock, us
	Node       string             // the asking node
	// Seen is the latest store time that this store has answered the node with. A store that
	// remembers an earlier one is an older copy of itself.
	Seen quantity.StoreTime
}

// Fenced returns the fence itself, so that a caller can fill it in through an interface.
func (f *Fence) Fenced() *Fence { return f }

// Target is the bucket that a call concerns.
type Target struct {
	Key   string // Redis key of the bucket's hash
	Terms Terms
	// ExistsUntil is State.ExistsUntil as the caller last heard it. A bucket that is missing before
	// that time was deleted. Inspect and Restore ignore it.
	ExistsUntil quantity.StoreTime
}

// Keys returns the script's KEYS after the token's, for a call that concerns one bucket.
func (t Target) Keys() []string { return []string{t.Key} }

// LimitTarget is the bucket of one of the limits that apply to a request.
type LimitTarget struct {
	Target
	Shadow bool // the limit is evaluated but never denies
	// Alternative says that the limit denies only if all alternative limits of the request do. It
	// is not a shadow limit.
	Alternative bool
	// Always says that the cost is charged whole, whatever is left (charge: always): it is known only
	// afterwards. Such a limit takes no part in the denial of others, and their denial none in its
	// charge. What did not fit is owed (Verdict.Owed). It is not an alternative limit. Of a leaky_bucket
	// it is implausible.
	Always bool
	// MostOwed is how many units a token_bucket that is charged always may owe, at most as many as are
	// refilled within MaxUnits us. What is charged beyond is forgiven.
	MostOwed quantity.Units
}

// alone returns whether the limit takes part in a denial by itself.
func (t *LimitTarget) alone() bool { return !t.Shadow && !t.Alternative && !t.Always }

// Decide is a list of requests on the same buckets, decided in order and atomically.
type Decide struct {
	Fence
	Commit  bool // false: say what would be decided, and charge nothing
	Buckets []LimitTarget
	Costs   []quantity.Units // of each request, 1..MaxUnits; see PerBucket
	// PerBucket says that Costs are those of one request: one for each of Buckets. Such a call has
	// no Once. A cost may be 0 then: the bucket is asked whether it has a unit left, and is charged
	// nothing. It takes part in the denial, also if it is charged always.
	PerBucket bool
	// Parts holds, of each request in turn, the part of each bucket's rights that it may use, all
	// use counted: of a token_bucket the part of its capacity. nil: Whole. A charge does not heed
	// it, and a leaky_bucket has none.
	Parts []quantity.PPM
	// Once is the key under which the store remembers the request for RememberedFor, if it is
	// admitted. A call repeated up to Repeats times gets the first answer and is not charged. After
	// that it is decided as if it had no Once, and the remembered answer stays. A call with Once
	// carries exactly one cost. Empty: nothing is remembered.
	Once string
}

// Cost returns what a request costs of a bucket, by their places.
func (c *Decide) Cost(request, bucket int) quantity.Units {
	if c.PerBucket {
		return c.Costs[bucket]
	}
	return c.Costs[request]
}

// leastCost returns the least that a request may cost of a bucket.
func (c *Decide) leastCost() quantity.Units {
	if c.PerBucket {
		return 0
	}
	return 1
}

// charges reports whether any limit is charged always.
func (c *Decide) charges() bool {
	return slices.ContainsFunc(c.Buckets, func(b LimitTarget) bool { return b.Always })
}

// chargesQueue reports whether a leaky_bucket would be charged always.
func (c *Decide) chargesQueue() bool {
	return slices.ContainsFunc(c.Buckets, func(b LimitTarget) bool { return b.Always && b.Terms.Kind == LeakyBucket })
}

// requests returns how many requests are decided.
func (c *Decide) requests() int {
	if c.PerBucket {
		return 1
	}
	return len(c.Costs)
}

// Repeats is how often a request may be sent again under its Once. A caller without an answer tries
// once or twice more. One more leaves room for a proxy that also retries.
const Repeats = 3

// RememberedFor is how long the store remembers an admitted request under its Once, in
// milliseconds.
const RememberedFor = 60_000

// Lend asks the store to raise the rows of one cell towards a peer.
type Lend struct {
	Fence
	Target
	Debit
}

// Debit says how far the rows of one cell towards Peer may be raised. The store first returns rights
// borrowed from Peer, then lends this region's own.
type Debit struct {
	Peer     string
	Cell     quantity.Cell
	Returned quantity.Units // value that Q[self->peer] should reach
	Lent     quantity.Units // value that R[self->peer] should reach
	Kept     quantity.Units // units of the cell that this region keeps, beyond those it has used
	// most that all peers together may hold on loan from this region in the cell
	Cap quantity.Units

	Burst     quantity.Units // token_bucket: value that Y[self->peer], the burst lent, should reach
	KeptBurst quantity.Units // tokens this region keeps
	// most burst tokens that all peers together may hold on loan in the cell
	CapBurst quantity.Units
	// LeastBurst is how many more tokens are lent at least, if any are: fewer would be of no use.
	LeastBurst quantity.Units
}

// Assign asks the store for rights of a cell of a token_bucket or a fixed_window, this one or the
// next, that a node assigns to Envoys, or gives some back. What is assigned is the node's alone:
// the store neither admits with it nor lends it. It ends with its cell. The units of a fixed_window
// are spent, or may be: they count as used.
type Assign struct {
	Fence
	Target
	Holder string // the node
	Cell   quantity.Cell
	// Known is what the node knows that it held of the cell. If the store knows of less, the bucket
	// was lost and restored since: what was held counts as used, and the call changes nothing.
	Known quantity.Units
	// Held and Returned are the sums to reach: what the node ever held of the cell, and what it
	// ever returned of that.
	Held, Returned quantity.Units
	Kept           quantity.Units // units of the cell that the store keeps
}

// Credit tells the store what a peer announced.
type Credit struct {
	Fence
	Target
	Announcement
}

// Announcement is which rows Peer says it wrote for this region in one cell.
type Announcement struct {
	Peer           string
	PeerGeneration uint64 // generation of Peer's store when it wrote the rows
	Cell           quantity.Cell
	Lent           quantity.Units
	Returned       quantity.Units
	// most that Peer may have lent here of the cell, less what was returned
	Most      quantity.Units
	Burst     quantity.Units
	MostBurst quantity.Units
	At        quantity.StoreTime // Peer's store time when it reported the rows; 0: not known
}

// Inspect reads the ledger of one bucket.
type Inspect struct {
	Fence
	Target
}

// Settle settles what one decision charged, once, by what was used of it. If less was used, the rest is
// taken back, as far as the charge still counts. If more was used, what is above is charged now, whatever
// is left, as with LimitTarget.Always; not to a leaky_bucket, whose turns are promises.
type Settle struct {
	Fence
	// key under which the store remembers this call and its answer; empty: it does not, so that the
	// caller must send it only once
	Receipt string
	// Once of the decision; if nothing was used the store forgets it, so that a repeated request is
	// decided anew
	Once string
	// At is the store time of the decision. 0: units are taken back that were charged last, by
	// whichever decisions: of windows those of the present cell, of a log those of its newest
	// entries. Such a call has no Receipt, and its charges no Cell.
	At      quantity.StoreTime
	Cost    quantity.Units // what was charged, 1..MaxUnits
	Used    quantity.Units // what was used, 0..MaxUnits
	Charges []Charge
}

// Charge is what a decision charged one bucket. Terms without a Kind say that the bucket's limit is
// no longer in force.
type Charge struct {
	Target
	Cell     quantity.Cell
	Until    quantity.StoreTime // from then on it is not settled; 0: no such time
	MostOwed quantity.Units     // as LimitTarget.MostOwed
}

// Reset clears the use of one bucket. It leaves the rows, the mark and the epoch as they are.
type Reset struct {
	Fence
	Target
}

// Recall asks a region which rows of Peer it has heard of one bucket, so that Peer can recover the
// bucket under a new generation. From then on the region refuses rows that Peer wrote under a lower
// generation.
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
	LostAt quantity.StoreTime // time of the loss, as StatusLost reported it
	Known
}

// Known is what is known of a lost bucket.
type Known struct {
	Cap quantity.Units // most units that the region may have lent out of a cell
	// most units that can have been used before the loss; 0: all nodes reported their use
	Most         quantity.Units
	Use          Use      // the last use that anybody saw
	KnownPeers   []string // peers whose Lent and Returned are all in Rows
	UnknownPeers []string // all other peers
	// of KnownPeers
	Rows []RememberedRow
}

// RememberedRow is what a region has lent and returned to a peer of one cell, in units, as one node
// or store remembers it.
type RememberedRow struct {
	Peer     string
	Cell     quantity.Cell
	Lent     quantity.Units
	Returned quantity.Units
}

// Use is the units that counted in a bucket at store time At, a time of Cell.
type Use struct {
	Cell  quantity.Cell
	Units quantity.Units
	At    quantity.StoreTime
}

// Book charges what a node admitted without the store in one window. Units is the total for the
// window. The bucket remembers how much of it is already charged.
type Book struct {
	Fence
	Target
	Node   string
	Window quantity.Cell // number of the window, as the node counted it
	Units  quantity.Units
}

// Open begins a generation of a store.
type Open struct {
	Expected   uint64 // generation that the caller expects to find, 0 for none
	Generation uint64
	Region     string
	Epoch      string
	Lost       bool // whether the store may have lost data of an earlier generation
	// with Lost: the latest time that the store is known to have shown
	Seen   quantity.StoreTime
	Secret string // random; seals the receipts of this generation
	// master_replid of the server; a copy of its data on another server has a different one
	Replid string
	Node   string // the asking node
	Layout int64  // the layout in which the opener's scripts write; see the constant
	// the Mark that was found: an older copy of what was found is not opened
	Mark quantity.StoreTime
}

// Nodes asks which nodes a store has answered under a generation, and when last.
type Nodes struct {
	Generation uint64
}

// MaxNodes is how many nodes Nodes and Beat tell. Of a store that answered more Nodes tells none, and
// Beat those that were answered last.
const MaxNodes = 256

// Note stores a text in the token under a name, or only asks for it. It stays until the store loses
// its data.
type Note struct {
	Generation uint64 // under which Text is stored, 0: before the first; any, if nothing is stored
	Name       string // made by NodeNote or DocumentNote
	Text       string // empty: nothing is stored
}

// NodeNote returns the name of a node's note.
func NodeNote(node string) string { return "node:" + node }

// DocumentNote returns the name under which the text of a limits document of an epoch is kept.
func DocumentNote(epoch string) string { return "document:" + epoch }

// Beat makes the store show its time. A node whose clock is not believed is told the latest time
// that the store has shown.
type Beat struct{ Fence }

// Adopt puts other open documents in force, if those expected stand in the token.
type Adopt struct {
	Generation uint64
	Expected   string
	Epoch      string
	Forgotten  []string // names of notes that are of no use any more
}

// Keys returns the script's KEYS after the token's: Receipt, Once, and the buckets of the charges
// in order.
func (c Settle) Keys() []string {
	keys := append(make([]string, 0, len(c.Charges)+2), cmp.Or(c.Receipt, c.Once), c.Once)
	for _, charge := range c.Charges {
		keys = append(keys, charge.Key)
	}
	return keys
}

// RememberedUntil returns the store time, in milliseconds, until which the store remembers the
// call: until none of its charges is settled any more. Without such a time, that is for a window's charge
// until its cell no longer weighs. For a bucket's charge it is refundableFor, the longest that it can be
// taken back at any rate, because the rate may change. The same goes for a charge without a limit, because
// the limit may come back. 0: not at all.
func (c Settle) RememberedUntil() quantity.StoreTime {
	if c.Receipt == "" {
		return 0
	}
	var until quantity.StoreTime
	for _, charge := range c.Charges {
		switch t := charge.Terms; {
		case charge.Until > 0:
			until = max(until, charge.Until)
		case t.Kind == "" || t.Kind.Bucket():
			until = max(until, c.At+refundableFor)
		default:
			until = max(until, t.Weighs(charge.Cell))
		}
	}
	return (until+KeySlack)/1000 + 1
}
