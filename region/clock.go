package region

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quotad/quotad/region/trade/peer"
)

const (
	// clockAhead is how far a node's clock may be ahead of all clocks that it hears when it starts. A
	// store holds the latest time that it was shown: windows stand still in it until clocks come there.
	clockAhead = time.Minute
	// clockPatience bounds the wait for the other nodes' answers, and clockPoll is how often they are
	// asked again while this node's clock is ahead of all of theirs.
	clockPatience = 2 * time.Second
	clockPoll     = time.Second
)

// clockAgrees waits until this node's clock is not ahead of all clocks that it hears, and fails if ctx
// ends before. A node that hears nobody has its own clock alone. What its store has shown is one of these
// clocks: a node that is started again asks nobody else.
func (n *Node) clockAgrees(ctx context.Context) error {
	if n.config.TrustClock {
		return nil
	}
	for said := false; ; said = true {
		all, err := n.config.Store.Standing(ctx)
		if err == nil && latestOf(all) > 0 && n.ahead(latestOf(all)) >= -clockAhead {
			return nil
		}
		nearest, by := n.leastAhead(ctx)
		if by == "" || nearest <= clockAhead {
			return nil
		}
		err = fmt.Errorf("this machine's clock is %v ahead of that of %s, and further of all others that answer: set it by NTP; if the others are wrong, start this node with trust_clock",
			nearest.Round(time.Second), by)
		if !said {
			n.log.Error("the store is not opened: this node's clock is ahead of all others", "why", err.Error())
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(clockPoll):
		}
	}
}

// leastAhead returns by how much this node's clock is ahead of the one that is nearest of those that it
// hears, and whose that is; empty: it hears none.
func (n *Node) leastAhead(ctx context.Context) (least time.Duration, by string) {
	for _, a := range n.otherClocks(ctx) {
		if ahead := n.config.Now().Sub(a.Clock); by == "" || ahead < least {
			least, by = ahead, a.Node
		}
	}
	return least, by
}

// otherClocks asks all other nodes, and returns the answers of those that tell their clock.
func (n *Node) otherClocks(ctx context.Context) []peer.StoreAnswer {
	ctx, cancel := context.WithTimeout(ctx, clockPatience)
	defer cancel()
	self := peer.Identity{Region: n.config.Region, Node: n.config.Node}
	mates := make(chan []peer.StoreAnswer, 1)
	go func() {
		answers, _ := n.peers.AskStore(ctx, self.Region, self, nil)
		mates <- answers
	}()
	all, _ := n.askEveryone(ctx)
	return slices.DeleteFunc(append(all, <-mates...), func(a peer.StoreAnswer) bool {
		return a.Clock.IsZero() || a.Node == self.String()
	})
}
