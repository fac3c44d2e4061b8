package gossip

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestASeedThatLeftIsCalledAgain: a seed says goodbye soon after the other nodes had called it. It
// comes back knowing no other node.
func TestASeedThatLeftIsCalledAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		seed := start(t, net, "seed", func(*Config) {})
		others := []*node{start(t, net, "a", seeds(net, "seed")),
			start(t, net, "b", seeds(net, "seed"))}
		within(t, 5*time.Second, "all to meet",
			func() error { return sameView(append(others, seed), "a", "b", "seed") })
		suite.Must(t, seed.Leave(t.Context()))
		seed.Close()
		time.Sleep(time.Second)
		back := start(t, net, "seed", func(*Config) {})
		within(t, 15*time.Second, "the seed to be seen",
			func() error { return sameView(append(others, back), "a", "b", "seed") })
	})
}
