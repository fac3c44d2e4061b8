package region

import (
	"context"
	"fmt"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

// TakenBack says how far the store's time went back by the operator's word. The zero value: it did not.
type TakenBack struct{ From, To quantity.StoreTime }

// Cost says what that may exceed.
func (t TakenBack) Cost() string {
	return fmt.Sprintf("windows between %s and %s come once more: at most S_max in each, and B_max + S_max x %v of a bucket, as quotad limits bound prints for clock-back",
		shownTime(t.To), shownTime(t.From), quantity.Duration(int64(t.From-t.To)).Round(time.Second))
}

// TakenBack returns how far the store's time went back at this node's start.
func (n *Node) TakenBack() TakenBack { return n.taken }

// forgetTime has this node's journal forget that the store's time ever was after this node's clock, if
// the operator says so. It fails if the store still has the time, or data of before, and if another
// clock that it hears, or another node of the region that does not forget, says otherwise: then the
// region's time would not go back, or go back too far.
func (n *Node) forgetTime(ctx context.Context) error {
	if !n.config.ForgetStoreTime {
		return nil
	}
	all, err := n.config.Store.Standing(ctx)
	if err == nil {
		err = n.mayForget(all)
	}
	if err != nil {
		return fmt.Errorf("forget_store_time: %w", err)
	}
	_, from := n.config.Journal.StoreTime()
	if n.ahead(from) <= clockAhead {
		n.log.Info("forget_store_time has no use here, for this node's journal remembers no time of its Redis that is ahead: start it without")
		return nil
	}
	if err := n.othersForget(ctx); err != nil {
		return fmt.Errorf("forget_store_time: %w", err)
	}
	taken := TakenBack{From: from, To: quantity.StoreTime(n.config.Now().UnixMicro())}
	if err := n.tenure.ForgetTime(taken.To); err != nil {
		return fmt.Errorf("forget_store_time: %w", err)
	}
	n.taken = taken
	n.log.Warn("by the operator's word the store's time goes back", "from", shownTime(taken.From), "to", shownTime(taken.To), "cost", taken.Cost())
	return nil
}

// mayForget returns why the store as it stands does not let its time be taken back. One that another
// node has begun since may stand.
func (n *Node) mayForget(all []store.Standing) error {
	for _, s := range all {
		apart := s.Clock.Sub(n.config.Now())
		ahead := n.ahead(s.Mark)
		switch {
		case max(apart, -apart) > clockAhead:
			return fmt.Errorf("the clock of the Redis at %s is %v from this node's: set both by NTP and start again",
				s.Server, apart.Round(time.Second))
		case ahead > clockAhead:
			return fmt.Errorf("the Redis at %s still has a time that is %v ahead of this node's clock: end all nodes of the region, empty their database there (FLUSHDB), and start again",
				s.Server, ahead.Round(time.Second))
		case s.Generation != 0 && s.Generation <= n.config.Journal.Generation() && n.remembersAhead():
			return fmt.Errorf("the Redis at %s has data of before: end all nodes of the region, empty their database there (FLUSHDB), and start again",
				s.Server)
		}
	}
	return nil
}

// remembersAhead reports whether this node's journal remembers a time of the store that is ahead.
func (n *Node) remembersAhead() bool {
	_, at := n.config.Journal.StoreTime()
	return n.ahead(at) > clockAhead
}

// othersForget waits until no other node of this region that answers knows of a time that is ahead. It
// fails if ctx ends before, or if another clock is not near this node's, unless that is to be trusted.
// Meanwhile this node does not tell others what its journal remembers, so that those which forget do
// not wait for each other.
func (n *Node) othersForget(ctx context.Context) error {
	for {
		answers := n.otherClocks(ctx)
		if err := n.clocksNear(answers); err != nil {
			return err
		}
		n.forgets.Store(true)
		knows := ""
		for _, a := range answers {
			if n.ahead(a.Shown) > clockAhead {
				knows = fmt.Sprintf("%s still knows that the store's time was %s: end it, and start it with forget_store_time, too", a.Node, shownTime(a.Shown))
			}
		}
		if knows == "" {
			return nil
		}
		n.log.Info("the store's time is not forgotten yet", "why", knows)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s", knows)
		case <-time.After(clockPoll):
		}
	}
}

// mayGoBack returns why this node, which starts and forgets, does not begin the store anew: another node
// of the region told a time meanwhile that is ahead, and the store would begin there.
func (n *Node) mayGoBack(told store.Told) error {
	if !n.config.ForgetStoreTime || n.tenure.Generation() != 0 || n.ahead(told.Shown) <= clockAhead {
		return nil
	}
	return fmt.Errorf("forget_store_time: another node of this region still knows that the store's time was %s: end it, and start both with forget_store_time",
		shownTime(told.Shown))
}

// clocksNear returns which of the other nodes' clocks is not near this node's, nil if all are.
func (n *Node) clocksNear(answers []peer.StoreAnswer) error {
	for _, a := range answers {
		apart := a.Clock.Sub(n.config.Now())
		if max(apart, -apart) > clockAhead && !n.config.TrustClock {
			return fmt.Errorf("the clock of %s is %v from this node's: set both by NTP and start again; if this node's is right, start it with trust_clock, too",
				a.Node, apart.Round(time.Second))
		}
	}
	return nil
}
