package second

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

const (
	// joinPatience is how long --bootstrap waits for gossip to find another node.
	joinPatience = 10 * time.Second
	// bootstrapPatience bounds the wait for the answers of other regions' nodes.
	bootstrapPatience = 3 * time.Second
	// confirmPatience bounds the wait for the nodes that are to confirm a store. Those that have not
	// are asked again every confirmPoll.
	confirmPatience = 2 * time.Second
	confirmPoll     = 100 * time.Millisecond
)

// ErrKnown is why --bootstrap is refused where the region is known to have a store.
var ErrKnown = errors.New("start it without --bootstrap, or mend redis.url; " +
	"if no store of the region is in use any more and what it admitted may be forgotten, " +
	"use --bootstrap=alone")

// MayBegin asks the other nodes of this region, before this node begins a generation of its store,
// whether one of them decides with another store. It returns an error if so. Before a region's
// first generation it asks the other regions, too, whether they know of a store here. It returns
// what the other nodes told of this node's store.
func (w *Watch) MayBegin(ctx context.Context, b store.Beginning) (told store.Told, err error) {
	first := b.First && !w.config.Alone
	any := false
	if b.First {
		joining, cancel := context.WithTimeout(ctx, joinPatience)
		any = w.config.Join(joining, first)
		cancel()
	}
	mates := w.askMates(ctx, b.Confirm)
	for _, a := range mates {
		told.Shown = max(told.Shown, a.Shown)
		if a.Use == peer.StoreDecides && a.Origin.ID != b.Found {
			return store.Told{}, fmt.Errorf("%s decides with another store of this region (%s), and has just had an "+
				"answer from it: give this node the same redis.url, or end %s", a.Node, a.Origin.ID,
				a.Node)
		}
	}
	told.Confirmed = b.Confirm != nil && confirmed(*b.Confirm, mates)
	if first {
		err = w.mayBootstrap(ctx, mates, any)
	}
	return told, err
}

// askMates asks the other nodes of this region, and waits longer if they are to confirm something. One
// that decides with another store ends the wait.
func (w *Watch) askMates(ctx context.Context, confirm *store.Confirmation) (mates []peer.StoreAnswer) {
	if confirm == nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return w.config.Mates(ctx, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, confirmPatience)
	defer cancel()
	for {
		mates = w.config.Mates(ctx, confirm)
		if confirmed(*confirm, mates) || slices.ContainsFunc(mates, func(a peer.StoreAnswer) bool { return a.Use == peer.StoreDecides }) {
			return mates
		}
		select {
		case <-ctx.Done():
			return mates
		case <-time.After(confirmPoll):
		}
	}
}

// confirmed reports whether all nodes that a confirmation names confirm it, and whoever else works with
// the region's store.
func confirmed(c store.Confirmation, mates []peer.StoreAnswer) bool {
	var by []string
	for _, a := range mates {
		_, node, _ := strings.Cut(a.Node, "/")
		switch {
		case a.Confirms:
			by = append(by, node)
		case a.Origin.ID != "":
			return false
		}
	}
	return len(c.Without(by)) == 0
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
