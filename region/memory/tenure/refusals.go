package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/store"
)

const (
	// A node stops being ready once the store has refused everything for refusedFor, and at least
	// refusedCalls calls. One call that succeeds makes the node ready again.
	refusedFor   = 2 * time.Second
	refusedCalls = 3
	// refusalLoggedEvery is the shortest time between two log lines about one kind of refusal.
	refusalLoggedEvery = time.Minute
	// refusingFor is how long after a refusal the status and the metrics report it.
	refusingFor = 10 * time.Second
	// refusalTriedEvery is how often a node whose last call was refused tries the store. No request
	// does so, because a node that is not ready gets none.
	refusalTriedEvery = 500 * time.Millisecond
)

// refusals counts the calls that the region's Redis refuses, by kind. A server that refuses a call
// answers, but does not do what is asked. A server whose clock is too far from the node's counts as
// refusing, too. Safe for concurrent use.
type refusals struct {
	log *slog.Logger
	now func() time.Time

	any   atomic.Bool // the last call was refused
	mu    sync.Mutex
	since time.Time // the first call refused after the last success
	calls int       // refused since then
	kinds map[string]*refusedKind
}

// refusedKind is the refusals of one kind.
type refusedKind struct {
	err      *store.Error // the last refusal
	total    int64
	at       time.Time // when it was
	logged   time.Time
	unlogged int64 // calls since it was logged
}

// Refusal is one kind of call that the region's Redis refuses at present.
type Refusal struct {
	Kind   string // one of store.Kinds
	Calls  int64  // number of calls refused since the node's start
	Advice string // what an operator can do
}

func newRefusals(log *slog.Logger, now func() time.Time) *refusals {
	return &refusals{log: log, now: now, kinds: map[string]*refusedKind{}}
}

// saw takes the outcome of a call.
func (r *refusals) saw(err error) {
	var e *store.Error
	switch clock := store.ClockRefusal(err); {
	case clock != nil:
		r.count(clock) // it is logged when it is known how far the clocks are apart (tryOnceMore)
	case store.Answered(err):
		r.done()
	case errors.As(err, &e) && e.Kind != "":
		r.refused(e)
	}
}

// isRefusal reports whether an error is a refusal.
func isRefusal(err error) bool {
	var e *store.Error
	return errors.As(err, &e) && e.Kind != ""
}

// done records that a call succeeded.
func (r *refusals) done() {
	if !r.any.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.all(); err != nil {
		r.log.Info("the store takes calls again", "after",
			r.now().Sub(r.since).Round(time.Millisecond))
	}
	r.any.Store(false)
	r.since, r.calls = time.Time{}, 0
}

// refused records a refusal, and logs it if none of its kind was logged lately.
func (r *refusals) refused(err *store.Error) {
	k := r.count(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell(err.Kind, k, r.now())
}

// count records a refusal, and returns those of its kind.
func (r *refusals) count(err *store.Error) *refusedKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if already := r.any.Swap(true); !already {
		r.since = now
	}
	r.calls++
	k := r.kinds[err.Kind]
	if k == nil {
		k = &refusedKind{}
		r.kinds[err.Kind] = k
	}
	if k.at = now; err.Server != "" || k.err == nil { // else the one before says more
		k.err = err
	}
	k.total++
	k.unlogged++
	return k
}

// tell logs a kind of refusal with the number of calls since it was last logged. The caller holds
// mu.
func (r *refusals) tell(kind string, k *refusedKind, now time.Time) {
	if k.unlogged == 0 || !k.logged.IsZero() && now.Sub(k.logged) < refusalLoggedEvery {
		return
	}
	r.log.Warn("the store refuses calls: requests are decided as on_store_failure says",
		"kind", kind, "calls", k.unlogged, "err", k.err)
	k.logged, k.unlogged = now, 0
}

// tellAll logs the refusals that were not logged yet, so that no count is lost when refusals end.
func (r *refusals) tellAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range store.Kinds() {
		if k := r.kinds[kind]; k != nil {
			r.tell(kind, k, r.now())
		}
	}
}

// all returns an error while everything is refused. The caller holds mu.
func (r *refusals) all() error {
	if r.calls < refusedCalls || r.now().Sub(r.since) < refusedFor {
		return nil
	}
	var last *refusedKind
	for _, k := range r.kinds {
		if last == nil || k.at.After(last.at) {
			last = k
		}
	}
	return fmt.Errorf("the store refuses everything (%s), since %v: %w",
		last.err.Kind, r.now().Sub(r.since).Round(time.Second), last.err)
}

// ready returns an error while everything is refused.
func (r *refusals) ready() error {
	if !r.any.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all()
}

// unreached forgets the refusals: nobody knows what a server refuses that does not answer.
func (r *refusals) unreached() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.any.Store(false)
	r.since, r.calls = time.Time{}, 0
}

// current returns the present kinds of refusals in alphabetical order.
func (r *refusals) current() (all []Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, k := range r.kinds {
		if r.now().Sub(k.at) < refusingFor {
			all = append(all, Refusal{Kind: kind, Calls: k.total, Advice: k.err.Next})
		}
	}
	slices.SortFunc(all, func(a, b Refusal) int { return cmp.Compare(a.Kind, b.Kind) })
	return all
}

// totals returns the number of refused calls since the node's start, by kind.
func (r *refusals) totals() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]int64, len(r.kinds))
	for kind, k := range r.kinds {
		all[kind] = k.total
	}
	return all
}

// TryRefused tries the store while its calls are refused, until ctx ends.
func (t *Tenure) TryRefused(ctx context.Context) {
	repeat.Every(ctx, refusalTriedEvery, func(time.Time) {
		t.tryOnceMore(ctx)
		t.refusals.tellAll()
	})
}

// tryOnceMore tries the store if the last call was refused.
func (t *Tenure) tryOnceMore(ctx context.Context) {
	if !t.refusals.any.Load() {
		return
	}
	switch _, err := t.config.Store.TryRights(ctx); {
	case ctx.Err() != nil:
	case store.Unreached(err):
		t.refusals.unreached()
	case err != nil:
		t.refusals.saw(err)
	default:
		t.refusals.saw(t.config.Store.ClocksAgree(ctx))
	}
}

// Ready returns an error while the store is not open or not used, or refuses everything, and while
// the documents give the region nothing.
func (t *Tenure) Ready() error {
	if stopped := t.Stopped(); stopped != nil {
		return stopped
	}
	if t.Generation() == 0 {
		return store.ErrUnknownStore
	}
	if err := t.users.alone(t.config.Region); err != nil {
		return err
	}
	if err := t.Rules().Serves(); err != nil {
		return err
	}
	return t.refusals.ready()
}

// Refusing returns what the store's servers refuse at present, in alphabetical order.
func (t *Tenure) Refusing() []Refusal { return t.refusals.current() }

// Refused returns the number of calls that the servers refused since the node's start, by kind.
func (t *Tenure) Refused() map[string]int64 { return t.refusals.totals() }
