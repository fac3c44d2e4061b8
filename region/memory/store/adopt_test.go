package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
)

// TestAdopt: one node puts an epoch in force for all of the region; calls under the old one are
// refused from then on.
func TestAdopt(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		ctx := t.Context()
		server := kind.start(t)
		a, b := node(t, server, first), node(t, server, first)
		serves(t, b, "k")
		if _, err := a.Adopt(ctx, "2-b"); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Store{a, b} {
			allAre(t, s, "k", algorithms.StatusUnknown)
			if _, err := s.Adopt(ctx, "2-b"); err != nil {
				t.Errorf("an epoch that is in force already: %v", err)
			}
		}
		if _, err := b.Adopt(ctx, "10-c"); err != nil { // versions are numbers, not words
			t.Error(err)
		}
		allUnder(t, a, "2-b", "k", algorithms.StatusUnknown)
		c := charge("k", 10, 1)
		c.Fence = under("10-c")
		if d := decide(t, a, c); admitted(d) != 1 || d.Buckets[0].Used != 2 {
			t.Errorf("one charge under each epoch that was in force: %+v", d)
		}
	})
}

// TestAdoptRefused: an older document, or another one of the version in force, changes nothing,
// however it comes.
func TestAdoptRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		owner := node(t, server, Opening{Region: "eu", Epoch: "3-c", Bootstrap: true})
		for _, epoch := range []string{"1-a", "2-z", "3-b", "3-d", "3", "x"} {
			s := connect(t, Options{URL: server.URL})
			_, opening := s.Open(t.Context(), Opening{Region: "eu", Epoch: epoch})
			if n := s.Generation(); n != 0 {
				t.Errorf("%s: works under generation %d after a refusal", epoch, n)
			}
			_, adopting := owner.Adopt(t.Context(), epoch)
			for _, err := range []error{opening, adopting} {
				if !errors.Is(err, ErrOtherDocuments) || !strings.Contains(err.Error(), epoch) ||
					!strings.Contains(err.Error(), "3-c") {
					t.Errorf("%s: %v, want %v", epoch, err, ErrOtherDocuments)
				}
			}
			allUnder(t, owner, epoch, epoch, algorithms.StatusUnknown)
			allUnder(t, owner, "3-c", epoch, algorithms.StatusOK)
		}
	})
}

// TestAdoptNotOpen: nobody's epoch is put in force in a store that is not theirs, and none in one
// that is empty.
func TestAdoptNotOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		stranger := connect(t, Options{URL: server.URL})
		owner := node(t, server, first)
		if _, err := stranger.Adopt(t.Context(), "2-b"); !errors.Is(err, ErrUnknownStore) ||
			!strings.Contains(err.Error(), "2-b") {
			t.Errorf("before Open: %v, want %v", err, ErrUnknownStore)
		}
		allAre(t, owner, "k", algorithms.StatusOK)
		fixtures.Operator(t, server).FlushAll(t.Context())
		if _, err := owner.Adopt(t.Context(), "2-b"); !errors.Is(err, ErrUnknownStore) {
			t.Errorf("after a loss: %v, want %v", err, ErrUnknownStore)
		}
		if n := fixtures.Operator(t, server).DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%d keys were written", n)
		}
	})
}

// TestOpenPutsANewerPolicyInForce: a node that starts with a newer document brings it to the
// region's store.
func TestOpenPutsANewerPolicyInForce(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		a := node(t, server, first)
		b := node(t, server, Opening{Region: "eu", Epoch: "2-b"})
		if a.Generation() != b.Generation() {
			t.Errorf("generations %d and %d of one store", a.Generation(), b.Generation())
		}
		for _, s := range []*Store{a, b} {
			allAre(t, s, "k", algorithms.StatusUnknown)
			allUnder(t, s, "2-b", "k", algorithms.StatusOK)
		}
	})
}
