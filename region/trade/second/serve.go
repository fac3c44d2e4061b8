package second

import (
	"context"
	"slices"
	"sync"

	"github.com/quotad/quotad/region/trade/peer"
)

// Serve answers a node that asks which store this node decides with. mate says that the asker is of
// the same region. Before this node says that it decides with its store, it asks the store.
func (w *Watch) Serve(ctx context.Context, region string, mate bool) peer.StoreAnswer {
	a := peer.StoreAnswer{Node: w.config.Self}
	if !mate {
		w.mu.Lock()
		defer w.mu.Unlock()
		a.Known = w.known[region]
		return a
	}
	a.Origin, a.Known, a.Shown = w.config.Own(), w.config.Known(), w.config.Shown()
	switch {
	case w.config.Tenure.Stopped() != nil:
		a.Use = peer.StoreStopped
	case a.Origin.ID != "" && w.verified.since(ctx, w.config.Verify) && w.config.Own() == a.Origin:
		a.Use = peer.StoreDecides
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a.Outlasted = slices.Clone(w.outlasted)
	return a
}

// Heard notes the generation that a node of another region said its region's store has. region is
// one of the limits document.
func (w *Watch) Heard(region string, generation uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[region] = max(w.known[region], generation)
}

// verification asks this node's store at most once at a time, however many ask for it.
type verification struct {
	running sync.Mutex // held during a round trip

	mu   sync.Mutex
	next *outcome // of a round trip that has not begun yet
}

type outcome struct {
	once sync.Once
	ok   bool
}

// since returns the outcome of a round trip that began after this call.
func (v *verification) since(ctx context.Context, verify func(context.Context) bool) bool {
	v.mu.Lock()
	if v.next == nil {
		v.next = &outcome{}
	}
	next := v.next
	v.mu.Unlock()
	next.once.Do(func() {
		v.running.Lock()
		defer v.running.Unlock()
		v.mu.Lock()
		v.next = nil
		v.mu.Unlock()
		next.ok = verify(ctx)
	})
	return next.ok
}
