package rivals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/peer"
	"github.com/quotad/quotad/region/store"
)

const (
	// joinPatience is how long --bootstrap waits for gossip to find another node.
	joinPatience = 10 * time.Second
	// bootstrapPatience bounds the wait for the answers of other regions' nodes.
	bootstrapPatience = 3 * time.Second
)

// ErrKnown is why --bootstrap is refused where the region is known to have a store.
var ErrKnown = errors.New("start it without --bootstrap, or mend redis.url; " +
	"if no store of the region is in use any more and what it admitted may be forgotten, " +
	"use --bootstrap=alone")

// MayBegin asks the other nodes of this region, before this node begins a generation of its store,
// whether one of them decides with another store. It returns an error if so. Before a region's
// first generation it asks the other regions, too, whether they know of a store here. It returns
// the latest time that the store has shown to the other nodes, 0 if none of them told.
func (w *Watch) MayBegin(ctx context.Context, b store.Beginning) (shown quantity.StoreTime,
	err error) {
	first := b.First && !w.config.Alone
	any := false
	if b.First {
		joining, cancel := context.WithTimeout(ctx, joinPatience)
		any = w.config.Join(joining, first)
		cancel()
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	mates := w.config.Mates(asking)
	for _, a := range mates {
		shown = max(shown, a.Shown)
		if a.Use == peer.StoreDecides && a.Origin.ID != b.Found {
			return 0, fmt.Errorf("%s decides with another store of this region (%s), and has just had an "+
				"answer from it: give this node the same redis.url, or end %s", a.Node, a.Origin.ID,
				a.Node)
		}
	}
	if first {
		err = w.mayBootstrap(ctx, mates, any)
	}
	return shown, err
}

// mayBootstrap returns why --bootstrap is refused. mates are the answers of this region's nodes.
// any says that there is somebody to ask.
func (w *Watch) mayBootstrap(ctx context.Context, mates []peer.StoreAnswer, any bool) error {
	ctx, cancel := context.WithTimeout(ctx, bootstrapPatience)
	defer cancel()
	others, asked := w.config.Everyone(ctx)
	for _, a := range append(mates, others...) {
		if a.Known > 0 {
			return fmt.Errorf("--bootstrap is refused, for %s knows this region to have a store, of "+
				"generation %d: %w", a.Node, a.Known, ErrKnown)
		}
	}
	for _, h := range unanswered(w.config.Hearsay(), mates) {
		asked++
		if h.Origin.ID != "" {
			return fmt.Errorf("--bootstrap is refused, for gossip shows %s of this region with a store, "+
				"and it does not answer at its peer port: %w", h.Node, ErrKnown)
		}
	}
	switch {
	case len(mates)+len(others) > 0:
		return nil
	case asked > 0:
		return fmt.Errorf("--bootstrap is refused, for none of the %d other nodes that gossip shows "+
			"answers at its peer port, so that nobody can say whether this region has a store: check "+
			"advertise.peer and peer_tls, or use --bootstrap=alone if it has none", asked)
	case any:
		return fmt.Errorf("--bootstrap is refused, for no seed answered within %v, so that nobody can "+
			"say whether this region has a store: check seeds and gossip_keys, or use "+
			"--bootstrap=alone for the very first node of all", joinPatience)
	}
	return nil
}
