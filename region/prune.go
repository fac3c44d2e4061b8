package region

import (
	"runtime"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
)

// pruneRound is how long it takes until each record of the journal was looked at, if the node does so
// every housekeepEvery.
const pruneRound = time.Minute

// prune drops the journal's records that count neither by the time of any shard of the store nor by
// this node's clock. The claims on the node's local part follow the node's clock. A clock that is
// ahead therefore drops nothing too early. If both are ahead for a moment, as on one machine, nothing
// is dropped that counts by this node's clock at its start and the time since: the operator may take
// the store's time back. A machine that was suspended drops later, by that time.
//
// Each call looks at a part of the records, so that all are looked at in pruneRound, of however many
// there are. What no longer counts costs its bytes until then. A million records take 20 ms each time,
// so it lets requests run in between.
func (n *Node) prune() {
	before := min(n.config.Store.Surely(), quantity.StoreTime(n.config.Now().UnixMicro()),
		quantity.StoreTime(n.started.Add(n.elapsed()+clockAhead).UnixMicro()))
	has := n.config.Journal.Stats()
	share := (has.Rows + has.Checkpoints) / uint64(pruneRound/housekeepEvery)
	for range 1 + share/journal.PruneLimit {
		_, done, err := n.config.Journal.Prune(before)
		if err != nil {
			n.log.Error("the journal cannot be pruned", "err", err)
		}
		if err != nil || done {
			return
		}
		runtime.Gosched()
	}
}

// elapsedSince returns the time since this call by a clock that is never set; nil: this process's.
func elapsedSince(clock func() time.Duration) func() time.Duration {
	if clock == nil {
		begun := time.Now()
		return func() time.Duration { return time.Since(begun) }
	}
	begun := clock()
	return func() time.Duration { return clock() - begun }
}
