package store

import (
	"context"
	"sync"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestSecret: all nodes that open a store share one secret for each generation, and none has it
// before it has opened the store.
func TestSecret(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		client := fixtures.Operator(t, server)
		seen := map[string]bool{}
		mates := make([]*Store, 4)
		for i := range mates {
			mates[i] = connect(t, Options{URL: server.URL})
			if got := mates[i].Secret(); got != "" {
				t.Errorf("a secret before there is one: %q", got)
			}
		}
		for round := range 3 {
			var all sync.WaitGroup
			for _, s := range mates { // all find it empty
				all.Go(func() {
					if _, err := s.Open(context.Background(), Opening{Region: "eu", Epoch: epoch,
						LastGeneration: s.Generation()}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			secret := mates[0].Secret()
			late := node(t, server, first)
			for _, s := range append(mates, late) {
				if s.Secret() != secret || s.Generation() != mates[0].Generation() {
					t.Errorf("round %d: secret %q of generation %d, another node has %q of %d",
						round, s.Secret(), s.Generation(), secret, mates[0].Generation())
				}
			}
			if len(secret) < 20 || seen[secret] {
				t.Errorf("round %d: secret %q", round, secret)
			}
			seen[secret] = true
			if _, err := late.Adopt(t.Context(), epoch); err != nil || late.Secret() != secret {
				t.Errorf("a policy changes the secret to %q, %v", late.Secret(), err)
			}
			suite.Must(t, client.FlushAll(t.Context()).Err())
			if late.Secret() != secret {
				t.Error("the secret is gone before the store was opened anew")
			}
		}
	})
}

// TestSecretOfAHiddenLoss: a store that stands, but has lost something that a node knew, gets a new
// secret, whichever node noticed.
func TestSecretOfAHiddenLoss(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		mate := node(t, server, first)
		before := mate.Secret()
		s := node(t, server, Opening{Region: "eu", Epoch: epoch, LastGeneration: mate.Generation() +
			1})
		if s.Secret() == before || s.Secret() == "" {
			t.Errorf("secret %q, before the loss %q", s.Secret(), before)
		}
		mustOpen(t, mate, Opening{Region: "eu", Epoch: epoch, LastGeneration: mate.Generation()})
		if mate.Secret() != s.Secret() {
			t.Errorf("the mate has %q, want %q", mate.Secret(), s.Secret())
		}
	})
}
