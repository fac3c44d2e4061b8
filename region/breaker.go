package region

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/store"
)

// breakers keep requests from servers that do not answer: the first call that fails trips the breaker of its shard, from
// then on requests are decided without the store at once, and a probe finds out when it answers again.
type breakers map[store.Shard]*atomic.Bool

// probeEvery is how often a server that does not answer is tried.
const probeEvery = 50 * time.Millisecond

var errOutOfReach = errors.New("the store is out of reach")

func newBreakers(all store.Shards) breakers {
	b := breakers{}
	for _, shard := range all {
		b[shard] = &atomic.Bool{}
	}
	return b
}

// trip keeps requests from a shard.
func (b breakers) trip(s store.Shard) { b[s].Store(true) }

// tripped says whether requests are kept from a shard.
func (b breakers) tripped(s store.Shard) bool { return b[s].Load() }

// probe lets requests through again to servers that answer.
func (n *Node) probe(ctx context.Context) {
	every := time.NewTicker(probeEvery)
	defer every.Stop()
	since := map[store.Shard]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		n.tryAgain(ctx, since)
	}
}

// tryAgain tries the servers that did not answer, since the times noted.
func (n *Node) tryAgain(ctx context.Context, since map[store.Shard]time.Time) {
	for shard, breaker := range n.breakers {
		if !breaker.Load() {
			continue
		}
		err := n.store.Reach(ctx, shard)
		if since[shard].IsZero() {
			since[shard] = n.now()
			n.log.Warn("the store does not answer: requests are decided as on_store_failure says", "shard", shard, "err", err)
		}
		if err == nil {
			breaker.Store(false)
			n.log.Info("the store answers again", "shard", shard, "after", n.now().Sub(since[shard]).Round(time.Millisecond))
			delete(since, shard)
		}
	}
}
