package algorithms

import "strconv"

// MaxUnits is the largest amount, limit or time a script computes with: twice it still is an exact double.
const MaxUnits = int64(1) << 51

// MaxClockStep is the largest difference between a node's clock and its store's that is believed, in microseconds.
// Beyond it a script changes nothing, and a bucket's hash outlives its cells by as much.
const MaxClockStep = int64(3600 * 1_000_000)

// Kind names an algorithm, by its word in the policy document.
type Kind string

// The algorithms that are built.
const FixedWindow Kind = "fixed_window"

// Guard is what a node believes of its region's store; a script that finds otherwise changes nothing and answers
// StatusUnknown.
type Guard struct {
	Generation uint64
	Epoch      string // policy epoch in force
	Clock      int64  // the node's wall clock
}

// Terms are what a script must know of a bucket.
type Terms struct {
	Kind        Kind
	Window      int64 // length of a cell for fixed_window, at least 1
	Entitlement int64 // F of this region
}

// Target is one bucket of a request.
type Target struct {
	Key    string // Redis key of its hash
	Terms  Terms
	Shadow bool // reports, never denies
}

// Decide is a list of requests on the same buckets, decided in order and atomically.
type Decide struct {
	Guard
	Commit  bool // false: say what would be decided, charge nothing that stays
	Buckets []Target
	Costs   []int64 // each 1..MaxUnits
}

// Lend asks the store to raise what this region gives Peer of a cell, giving back borrowed rights first.
type Lend struct {
	Guard
	Key      string
	Terms    Terms
	Peer     string
	Cell     int64
	Returned int64 // value that Q[self->peer] should reach
	Lent     int64 // value that R[self->peer] should reach
	Kept     int64 // units of the cell this region keeps beyond those it has used
	Cap      int64 // most this region may have lent out of the cell, net, over all peers
}

// Credit tells the store what Peer says it gave this region of a cell.
type Credit struct {
	Guard
	Key            string
	Terms          Terms
	Peer           string
	PeerGeneration uint64 // of the peer's store when it wrote the rows
	Cell           int64
	Lent           int64
	Returned       int64
	Most           int64 // that Peer may have lent us of the cell, net of what we returned
}

// Inspect reads the ledger of one bucket.
type Inspect struct {
	Guard
	Key   string
	Terms Terms
}

// Open begins a generation of a store.
type Open struct {
	Expected   uint64 // generation found before, 0 for none
	Generation uint64
	Region     string
	Epoch      string
	Lost       bool  // the store may have lost data of an earlier generation
	Seen       int64 // the latest time that the store is known to have shown, or should show
}

// Adopt puts a newer policy epoch in force; an epoch begins with the version of its document and a dash.
type Adopt struct {
	Generation uint64
	Epoch      string
}

// args collects script arguments; numbers are written in full.
type args []any

func (a *args) str(v ...string) {
	for _, s := range v {
		*a = append(*a, s)
	}
}

func (a *args) num(v ...int64) {
	for _, n := range v {
		*a = append(*a, strconv.FormatInt(n, 10))
	}
}

func (a *args) guard(g Guard) {
	a.str(strconv.FormatUint(g.Generation, 10), g.Epoch)
	a.num(g.Clock, MaxClockStep)
}

func (a *args) terms(t Terms) {
	a.str(string(t.Kind))
	a.num(t.Window, t.Entitlement)
}

// Args returns the script's ARGV; KEYS are the token's key and those of the buckets in order.
func (c Decide) Args() []any {
	var a args
	a.guard(c.Guard)
	a.num(flag(c.Commit))
	for _, b := range c.Buckets {
		a.terms(b.Terms)
		a.num(flag(b.Shadow))
	}
	a.num(c.Costs...)
	return a
}

// Args returns the script's ARGV; KEYS are the token's key and Key.
func (c Lend) Args() []any {
	var a args
	a.guard(c.Guard)
	a.terms(c.Terms)
	a.str(c.Peer)
	a.num(c.Cell, c.Returned, c.Lent, c.Kept, c.Cap)
	return a
}

// Args returns the script's ARGV; KEYS are the token's key and Key.
func (c Credit) Args() []any {
	var a args
	a.guard(c.Guard)
	a.terms(c.Terms)
	a.str(c.Peer)
	a.num(int64(c.PeerGeneration), c.Cell, c.Lent, c.Returned, c.Most)
	return a
}

// Args returns the script's ARGV; KEYS are the token's key and Key.
func (c Inspect) Args() []any {
	var a args
	a.guard(c.Guard)
	a.terms(c.Terms)
	return a
}

// Args returns the script's ARGV; KEYS is the token's key.
func (c Open) Args() []any {
	var a args
	expected := ""
	if c.Expected > 0 {
		expected = strconv.FormatUint(c.Expected, 10)
	}
	a.str(expected, strconv.FormatUint(c.Generation, 10), c.Region, c.Epoch)
	a.num(flag(c.Lost), c.Seen)
	return a
}

// Args returns the script's ARGV; KEYS is the token's key.
func (c Adopt) Args() []any {
	var a args
	a.str(strconv.FormatUint(c.Generation, 10), c.Epoch)
	return a
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
