package tenure

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/journal"
	"github.com/quotad/quotad/region/rules"
	"github.com/quotad/quotad/region/store"
)

// Config is all a tenure is made of.
type Config struct {
	Region, Node string
	Bootstrap    bool // the region never served before: an empty store is no loss
	Policy       *policy.Document
	Store        *store.Store
	Journal      *journal.Journal
	Now          func() time.Time // the node's wall clock
	Log          *slog.Logger
	// Changed is called whenever the generation or the document has changed, one call at a time. No function given to During
	// runs meanwhile.
	Changed func(Change)
	// Closed is closed when the node ends.
	Closed <-chan struct{}
}

// Change says on what terms the store may be used from now on.
type Change struct {
	Rules      *rules.Rules
	Generation uint64
	Now        int64 // the store's time, microseconds
	// Anew says that nothing which was known of the store's contents holds any more: a generation began. The terms of a
	// store that was only looked at again, or of another document alone, leave it as it was.
	Anew bool
	// Unused says that no node of the region ever used a bucket: it serves for the first time.
	Unused bool
}

// Tenure is on what terms one node may use its region's store. Safe for concurrent use.
type Tenure struct {
	config   Config
	rules    atomic.Pointer[rules.Rules]
	refusals *refusals
	times    storeTimes
	due      chan struct{} // the store is to be opened again

	turn chan struct{} // holds one while the terms change

	mu       sync.Mutex
	changing bool // the terms change: whoever has the turn has set it

	// Of whoever has the turn.
	since uint64 // generation that this node last joined
	ended uint64 // generation that is to end although the store lost nothing

	noted  atomic.Value // what the store remembers of this node's journal: a string
	losses atomic.Int64
	lostAt atomic.Int64
}

// New returns the tenure of a node whose store is still to be opened. It fails if the document does not have the region.
func New(c Config) (*Tenure, error) {
	r, err := rules.New(c.Policy, c.Region, c.Store.Shards())
	if err != nil {
		return nil, err
	}
	t := &Tenure{config: c, refusals: newRefusals(c.Log, c.Now), due: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	t.times.journal, t.times.log = c.Journal, c.Log
	t.rules.Store(r)
	c.Store.Heed(t.heed)
	return t, nil
}

// Rules returns the document in force.
func (t *Tenure) Rules() *rules.Rules { return t.rules.Load() }

// Generation returns that of the store; 0 while it is not open.
func (t *Tenure) Generation() uint64 { return t.config.Store.Generation() }

// Losses returns how many losses of the store's data this node found since its start.
func (t *Tenure) Losses() int64 { return t.losses.Load() }

// LostAt returns when the store last lost data, by its clock in microseconds; 0: never that it knows.
func (t *Tenure) LostAt() int64 { return t.lostAt.Load() }

// During calls f with the generation, and keeps the terms as they are until it returns; f must not wait. It does not call f
// and returns false while they change.
func (t *Tenure) During(f func(generation uint64)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changing {
		return false
	}
	f(t.Generation())
	return true
}

// begin takes the turn to change the terms, and end gives it back.
func (t *Tenure) begin() {
	t.turn <- struct{}{}
	t.setChanging(true)
}

func (t *Tenure) end() {
	t.setChanging(false)
	<-t.turn
}

// tryBegin is begin, but does not wait for its turn; false: somebody has it.
func (t *Tenure) tryBegin() bool {
	select {
	case t.turn <- struct{}{}:
		t.setChanging(true)
		return true
	default:
		return false
	}
}

func (t *Tenure) setChanging(to bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changing = to
}

// heed hears the outcome of every script call. A store that is not this node's any more is opened again; what a server
// refuses is said.
func (t *Tenure) heed(outcome error) {
	if errors.Is(outcome, store.ErrNotOpen) {
		t.Reopen()
		outcome = nil
	}
	t.refusals.saw(outcome)
}

// Reopen has the store opened again soon.
func (t *Tenure) Reopen() {
	select {
	case t.due <- struct{}{}:
	default:
	}
}

// Due holds one value while the store is to be opened again. Watch receives from it; whoever steps a node by hand may.
func (t *Tenure) Due() <-chan struct{} { return t.due }

// Watch opens the store again when it is due, until ctx ends.
func (t *Tenure) Watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.due:
		}
		err := t.openAgain(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !isRefusal(err) { // else it is logged, once a minute
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

// openAgain opens the store. Its server may be another one by now, with rights of its own.
func (t *Tenure) openAgain(ctx context.Context) error {
	err := t.config.Store.TryRights(ctx)
	if err == nil {
		err = t.OpenOnce(ctx)
	}
	t.refusals.saw(err)
	return err
}
