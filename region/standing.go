package region

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/store"
)

// StoreError is why the region's store did not answer.
type StoreError = store.Error

// openStore takes the store as it stands or opens it anew, and tells the machine.
func (n *Node) openStore(ctx context.Context, bootstrap bool) error {
	n.standing.Lock()
	defer n.standing.Unlock()
	return n.stand(ctx, bootstrap)
}

// firstOpen opens the store at the start: again where a server was slow to answer, which a moment later it may not be.
func (n *Node) firstOpen(ctx context.Context, bootstrap bool) (err error) {
	for range firstOpens {
		var refused *store.Error
		if err = n.openStore(ctx, bootstrap); !errors.As(err, &refused) || !store.Unreached(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// firstOpens is how often a start tries to open the store.
const firstOpens = 3

// beginAnew ends a generation of which nothing was lost but a bucket, unless that is being done.
func (n *Node) beginAnew(ctx context.Context, generation uint64) error {
	if !n.standing.TryLock() {
		return errBeingOpened
	}
	defer n.standing.Unlock()
	if n.store.Generation() != generation {
		return nil
	}
	n.ended.Store(generation)
	return n.stand(ctx, false)
}

var errBeingOpened = errors.New("the store is being opened")

// stand is openStore for who holds standing.
func (n *Node) stand(ctx context.Context, bootstrap bool) error {
	return n.standUnder(ctx, n.rules.Load(), bootstrap)
}

// standUnder is stand under a document, which is in force afterwards.
func (n *Node) standUnder(ctx context.Context, r *rules, bootstrap bool) error {
	known := max(n.journal.Generation(), n.store.Generation())
	seen, latest := n.journal.StoreTime()
	opened, err := n.store.Open(ctx, store.Opening{Region: n.config.Region, Node: n.config.Node, Epoch: r.epoch, Known: known, Bootstrap: bootstrap,
		Ended: n.ended.Load(), Seen: seen, Latest: latest, Reserve: n.times.reserve})
	if err != nil {
		return err
	}
	if err := n.journal.SetGeneration(opened.Generation); err != nil {
		return err
	}
	n.lostAt.Store(opened.LostAt)
	if opened.Lost {
		n.losses.Add(1)
		n.log.Warn("the store lost data, or its master_replid is another: windows up to a minute are closed until nothing of before weighs, longer ones are restored", "generation", opened.Generation)
	}
	if err := n.store.Beat(ctx, r.epoch); err != nil {
		return err
	}
	opened.Now = max(opened.Now, n.store.Latest())
	if err := n.vouch(ctx, opened); err != nil {
		return err
	}
	anew := opened.Since > n.stood // else all that this node knew of still stands
	n.seen.stand(opened.Generation, opened.Now, anew)
	if anew {
		n.fallback.standAnew()
	}
	n.stood = opened.Generation
	n.rules.Store(r)
	n.engine.deliver(exchange.TenureChanged{Generation: opened.Generation, Epoch: r.epoch, Peers: r.peers,
		Clock: n.now().UnixMicro()})
	return nil
}

// heeds hears the outcome of every script call. A store that is not this node's any more is opened anew; what a server
// refuses is said.
func (n *Node) heeds(outcome error) {
	if errors.Is(outcome, store.ErrNotOpen) {
		n.askReopen()
		outcome = nil
	}
	n.refusals.saw(outcome)
}

// askReopen has the store opened anew soon.
func (n *Node) askReopen() {
	select {
	case n.reopen <- struct{}{}:
	default:
	}
}

// deleted says whether a lost bucket was deleted from a store that stands, of which the time of the loss tells. A generation
// must then be begun for its sake: rows of the bucket may be under way, and only as those of an earlier generation will they be
// kept out once others have told what they know of it.
func (n *Node) deleted(bucket string, lostAt int64) bool {
	return lostAt > n.store.Begun(store.ShardOf(n.rules.Load().key(bucket)))
}

// watchStore opens the store anew when it is needed.
func (n *Node) watchStore(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.reopen:
		}
		if err := n.openAgain(ctx); err != nil && ctx.Err() == nil {
			if !isRefusal(err) { // else it is logged, once a minute
				n.log.Error("the store cannot be opened", "err", err)
			}
			select {
			case <-time.After(time.Second):
				n.askReopen()
			case <-ctx.Done():
			}
		}
	}
}

// openAgain opens the store anew. The server may be another one by now, with rights of its own.
func (n *Node) openAgain(ctx context.Context) error {
	err := n.store.TryRights(ctx)
	if err == nil {
		err = n.openStore(ctx, false)
	}
	n.refusals.saw(err)
	return err
}

// journalAt says how far the journal is, in words that the store remembers.
func (n *Node) journalAt() string {
	return fmt.Sprintf("%d %d", n.journal.Incarnation(), n.journal.Sequence())
}

// bootstrapped is how long the nodes of a region may take to start for the first time; a new one that starts later may be
// in the place of another.
const bootstrapped = 10 * time.Minute

// vouch decides at the start since when this node's journal is known to hold every row that the node announced: a new one
// of a region that has served before may be in the place of one that was lost, and one that is behind what the store
// remembers of it is an old copy. From then on this node writes every row there itself, whatever becomes of the store.
func (n *Node) vouch(ctx context.Context, opened store.Opened) error {
	before, err := n.store.Note(ctx, n.config.Node, n.journalAt())
	if err != nil {
		return err
	}
	n.noted.Store(n.journalAt())
	if n.stood != 0 {
		return nil
	}
	fresh := n.journal.WholeSince() == math.MaxInt64
	var incarnation, sequence uint64
	_, _ = fmt.Sscanf(before, "%d %d", &incarnation, &sequence)
	old := incarnation >= n.journal.Incarnation() || sequence > n.journal.Sequence()
	switch {
	case fresh && n.config.Bootstrap && before == "" && opened.LostAt == 0 && n.now().Sub(time.UnixMilli(int64(opened.Since))) < bootstrapped:
		n.seen.since.Store(0) // nor had it an earlier life
		return n.journal.SetWholeSince(0)
	case fresh || old:
		if old {
			n.log.Warn("the journal is older than what the store remembers of it: what it misses counts as not known", "journal", n.journalAt(), "store", before)
		}
		return n.journal.SetWholeSince(opened.Now)
	}
	return nil
}
