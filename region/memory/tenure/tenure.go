package tenure

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// Config holds what a tenure consists of.
type Config struct {
	Region, Node string
	// Bootstrap says that the region never served before, so that an empty store is not a loss.
	Bootstrap bool
	Policy    *policy.Document // the document in the node's file
	// Fetch returns the text of a limits document that another region has.
	Fetch   func(ctx context.Context, region string, e policy.Epoch) ([]byte, error)
	Store   *store.Store
	Journal *journal.Journal
	Now     func() time.Time // the node's wall clock
	Log     *slog.Logger
	// Changed is called whenever the generation or the document has changed, one call at a time. No
	// function given to During runs at the same time.
	Changed func(Change)
	// Adopted is called with each document that is open here now because another node of this or
	// another region has it, the newest one of before, and where it came from. nil: nobody is told.
	Adopted func(before, d *policy.Document, from string)
	// MayBegin is asked before this node begins a generation of the store. See
	// store.Opening.MayBegin. It may be nil.
	MayBegin func(context.Context, store.Beginning) (store.Told, error)
	// Panicked is called with each document that could not be read by a fault of quotad. The place
	// is for counting. nil: nobody counts.
	Panicked func(place string, was any)
	// Seedless says that the node has no seeds: by itself it calls no other node. So it looks
	// whether another node uses its store. Knows reports whether gossip knows a node of the region.
	Seedless bool
	Knows    func(node string) bool
	// Named is called with the nodes that the store has answered, and when last. nil: nobody listens.
	Named func(map[string]quantity.StoreTime)
	// Waits reports whether this node waits for what others know of lost buckets. Waived is called with
	// the operator's word about losses up to a store time; see exchange.Waived. nil: it never waits.
	Waits  func() bool
	Waived func(until quantity.StoreTime)
	// Closed is closed when the node ends.
	Closed <-chan struct{}
}

// Change holds the terms on which the store may be used from now on.
type Change struct {
	Rules      *rules.Rules
	Generation uint64
	Now        quantity.StoreTime // the store's time, microseconds since 1970
	// Anew says that a generation began, so that nothing known of the store's contents holds any
	// more. It is false if the store was only opened again, or only the document changed.
	Anew bool
	// Unused says that the region serves for the first time: none of its nodes ever used a bucket.
	Unused bool
}

// Tenure holds the terms on which one node may use its region's store. Safe for concurrent use.
type Tenure struct {
	config   Config
	rules    atomic.Pointer[rules.Rules]
	known    *knowledge
	refusals *refusals
	times    storeTimes
	due      chan struct{} // holds a value while the store is to be opened again
	heard    chan struct{} // holds a value while something was heard of documents

	users users
	turn  chan *turn // holds the turn while nobody has it

	mu       sync.Mutex
	changing bool // somebody has the turn

	stopped atomic.Pointer[Stopped] // nil: this node uses the store

	noting sync.Mutex   // held while the store is told
	noted  atomic.Value // what the store remembers of this node's journal, a string
	losses atomic.Int64
	waived atomic.Int64 // store time up to which losses are waived
}

// turn is the right to change the terms, and what is known only to whoever has it.
type turn struct {
	*Tenure
	since   uint64 // the generation that this node last joined
	ended   uint64 // the generation that is to end although the store lost nothing
	guess   bool   // the journal knew no document, and the store is not open yet
	vouched bool   // the journal has noted since when it is whole
	unused  bool   // and no node of the region ever used a bucket
	// where the documents that are being opened come from; all others come from the store
	origins map[policy.Epoch]string
}

// New returns the tenure of a node whose store is not open yet. It works under the documents that
// its journal says were open, and that of its file. It fails if these cannot be read, or if the
// journal has none and the file's does not have the region.
func New(c Config) (*Tenure, error) {
	if c.Panicked == nil {
		c.Panicked = func(string, any) {}
	}
	if c.Adopted == nil {
		c.Adopted = func(_, _ *policy.Document, _ string) {}
	}
	a, err := firstAgenda(c)
	if err != nil {
		return nil, err
	}
	t := &Tenure{config: c, refusals: newRefusals(c.Log, c.Now), due: make(chan struct{}, 1),
		heard: make(chan struct{}, 1), known: newKnowledge(c.Region, c.Log, c.Now),
		turn: make(chan *turn, 1)}
	t.times.journal, t.times.log = c.Journal, c.Log
	guess := len(c.Journal.Documents()) == 0
	if !guess {
		a = t.behind(a, c.Policy)
	}
	t.turn <- &turn{Tenure: t, guess: guess, origins: map[policy.Epoch]string{}}
	t.rules.Store(rules.New(t.known.view(a, 0), c.Store.Shards()))
	c.Store.Heed(t.heed)
	return t, nil
}

// Rules returns the rules by which the node decides.
func (t *Tenure) Rules() *rules.Rules { return t.rules.Load() }

// Generation returns the store's generation, 0 while the store is not open.
func (t *Tenure) Generation() uint64 { return t.config.Store.Generation() }

// Losses returns how many losses of the store's data this node found since its start.
func (t *Tenure) Losses() int64 { return t.losses.Load() }

// LostAt returns when the store last lost data, by its clock in microseconds since 1970. 0: the
// store knows of no loss.
func (t *Tenure) LostAt() quantity.StoreTime {
	_, at := t.config.Store.Lost()
	return at
}

// During calls f with the generation, and keeps the terms as they are until f returns. f must not
// block. While the terms change During does not call f and returns false.
func (t *Tenure) During(f func(generation uint64)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changing {
		return false
	}
	f(t.Generation())
	return true
}

// begin waits for the turn to change the terms and takes it. end gives it back.
func (t *Tenure) begin() *turn {
	turn := <-t.turn
	t.setChanging(true)
	return turn
}

func (t *turn) end() {
	t.setChanging(false)
	t.turn <- t
}

// tryBegin takes the turn without waiting for it. It returns nil if somebody else has it.
func (t *Tenure) tryBegin() *turn {
	select {
	case turn := <-t.turn:
		t.setChanging(true)
		return turn
	default:
		return nil
	}
}

func (t *Tenure) setChanging(to bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changing = to
}

// heed takes the outcome of every script call. If this node may no longer use the store, heed makes
// Watch open it again. It records refusals.
func (t *Tenure) heed(outcome error) {
	if errors.Is(outcome, store.ErrUnknownStore) {
		t.Reopen()
	}
	t.refusals.saw(outcome)
}

// Reopen makes Watch open the store again.
func (t *Tenure) Reopen() { repeat.Signal(t.due) }

// Due returns the channel that holds a value while the store is to be opened again. Watch receives
// from it. A caller that steps the node by hand may do so instead.
func (t *Tenure) Due() <-chan struct{} { return t.due }

// Watch opens the store again whenever that is due, and reviews the documents whenever something
// was heard of them, until ctx ends.
func (t *Tenure) Watch(ctx context.Context) {
	var said string // why the store could not be opened, when that was last logged
	var saidAt time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.heard:
			t.Review(ctx)
			continue
		case <-t.due:
		}
		err := t.openAgain(ctx)
		if err == nil || ctx.Err() != nil {
			said = ""
			continue
		}
		// Refusals are logged apart, once a minute for each kind, and so is why a node stopped.
		again := err.Error() == said && time.Since(saidAt) < refusalLoggedEvery
		if !isRefusal(err) && t.Stopped() == nil && !again {
			said, saidAt = err.Error(), time.Now()
			t.config.Log.Error("the store cannot be opened", "err", err)
		}
		select {
		case <-time.After(openPause):
			t.Reopen()
		case <-ctx.Done():
		}
	}
}

// openPause is how long Watch waits after a store could not be opened.
const openPause = time.Second

// openAgain opens the store. It tries the rights first, because another server with other rights
// may have taken the place of the first.
func (t *Tenure) openAgain(ctx context.Context) error {
	_, err := t.config.Store.TryRights(ctx)
	if err == nil {
		err = t.OpenOnce(ctx)
	}
	t.refusals.saw(err)
	return err
}
