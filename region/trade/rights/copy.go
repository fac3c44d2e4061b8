package rights

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/copies"
)

const (
	// copyTimeout bounds the call that tells another node a part. partsAtOnce bounds the parts that a
	// node is told in a row.
	copyTimeout = time.Second
	partsAtOnce = 16
)

// newSender returns what tells other nodes what this one has seen.
func (e *Engine) newSender() *copies.Sender {
	j := e.config.Journal
	return copies.NewSender(e.config.Region, e.config.Node, e.config.Life, func(from string) (page []copies.Use, next string, err error) {
		all, next, err := j.CheckpointsFrom(from, copies.MaxUses)
		for _, c := range all {
			if _, other := policy.ParseBucketID(policy.BucketID(c.Bucket)); other != nil {
				continue // what this node alone has of the store's buckets
			}
			page = append(page, copies.Use{Bucket: c.Bucket, Cell: c.Cell, Units: c.Used, At: c.At, Until: c.Until, Generation: c.Generation})
		}
		return page, next, err
	})
}

// CopyOut tells other nodes what this one has seen, whenever the journal has more of it, until ctx
// ends. A node that does not answer does not hold up the others.
func (e *Engine) CopyOut(ctx context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.written:
		}
		for _, mate := range e.Mates() {
			if e.telling.begin(mate) {
				under.Go(func() {
					defer e.telling.end(mate)
					e.tellOver(ctx, mate)
				})
			}
		}
	}
}

// CopyLast tells other nodes all that this one has seen, and waits for their answers. Call it
// before the node ends.
func (e *Engine) CopyLast(ctx context.Context) {
	var last sync.WaitGroup
	for _, mate := range e.Mates() {
		last.Go(func() {
			for !e.telling.begin(mate) {
				select {
				case <-ctx.Done():
					return
				case <-time.After(copyTimeout / 20):
				}
			}
			defer e.telling.end(mate)
			e.tellOver(ctx, mate)
		})
	}
	last.Wait()
}

// Mates returns the nodes that get copies of what this one has seen, and makes the sender tell no
// others. They are nodes of this region. If the store answers no other node of this region, they
// are one node each of two other regions.
func (e *Engine) Mates() (mates []copies.Mate) {
	own := e.config.Region
	for _, address := range spread(e.config.Peers.Nodes(own), e.config.Address) {
		mates = append(mates, copies.Mate{Region: own, Address: address})
	}
	if e.gone.alone(e.config.Node, e.config.Store.Surely()) {
		for _, region := range spread(e.config.Tenure.Rules().Peers, own) {
			if all := e.config.Peers.Nodes(region); len(all) > 0 {
				mates = append(mates, copies.Mate{Region: region, Address: all[0]})
			}
		}
	}
	e.sender.To(mates)
	return mates
}

// tellOver tells a mate the parts that come next, over the network.
func (e *Engine) tellOver(ctx context.Context, mate copies.Mate) {
	e.tellMate(mate, func(p copies.Part) (uint64, error) {
		limited, cancel := context.WithTimeout(ctx, copyTimeout)
		defer cancel()
		return e.config.Peers.Copy(limited, mate.Region, mate.Address, p)
	})
}

// telling has the mates that are being told. Each of them gets one part at a time.
type telling struct {
	mu   sync.Mutex
	busy map[copies.Mate]bool
}

func (t *telling) begin(mate copies.Mate) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy == nil {
		t.busy = map[copies.Mate]bool{}
	}
	if t.busy[mate] {
		return false
	}
	t.busy[mate] = true
	return true
}

func (t *telling) end(mate copies.Mate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, mate)
}

// CopyBy does what CopyOut does, once. It is for a caller that steps the node by hand and carries
// parts to the mates itself.
func (e *Engine) CopyBy(mates []copies.Mate, carry func(mate copies.Mate, p copies.Part) (next uint64, err error)) {
	e.sender.To(mates)
	for _, mate := range mates {
		e.tellMate(mate, func(p copies.Part) (uint64, error) { return carry(mate, p) })
	}
}

// tellMate tells a mate the parts that come next, until one of them does not arrive.
func (e *Engine) tellMate(mate copies.Mate, carry func(copies.Part) (next uint64, err error)) {
	for range partsAtOnce {
		part, ok, err := e.sender.Next(mate)
		if err != nil {
			e.config.Log.Debug("use of long windows is not copied to other nodes: the journal cannot be read", "err", err)
		}
		if !ok {
			return
		}
		next, err := carry(part)
		if err != nil {
			e.config.Log.Debug("use of long windows is not copied to another node", "region", mate.Region, "mate", mate.Address, "err", err)
			return
		}
		e.sender.Answered(mate, part, next)
	}
}

// spread returns the nodes that get copies of what this one has seen: two, if there are as many.
// All nodes of a region stand in a ring, in which those of one zone are mostly neighbours, so one
// of the two is half of the ring away. Each node has copies at others, and all keep equally many.
func spread(others []string, own string) (mates []string) {
	all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(others), own))))
	at, _ := slices.BinarySearch(all, own)
	half, third := len(all)/2, len(all)/3
	if third == 0 || third == half {
		third = half + 1
	}
	for _, away := range []int{half, third} {
		if mate := all[(at+away)%len(all)]; mate != own {
			mates = append(mates, mate)
		}
	}
	return mates
}

// longestUse is how long a use may count at most, in microseconds: a year's window and the one before.
const longestUse = int64(3 * 366 * 24 * time.Hour / time.Microsecond)

// CopyIn keeps what another node of the region has seen, and returns the number of the part that it
// takes next. It fails, and keeps nothing, if a use is of no bucket, or later than any clock can
// be: nobody knows of use to come.
func (e *Engine) CopyIn(p copies.Part) (next uint64, err error) {
	if err := e.canBe(p.Uses); err != nil {
		return 0, err
	}
	e.seen.learn(p.Uses)
	return e.receiver.Take(e.config.Elapsed(), p), nil
}

// canBe returns why uses that another node says it has seen are impossible; nil: they are possible.
func (e *Engine) canBe(all []copies.Use) error {
	latest := max(e.config.Store.Latest(), quantity.StoreTime(e.config.Now().UnixMicro())).Add(algorithms.MaxClockStep)
	for _, u := range all {
		if _, err := policy.ParseBucketID(policy.BucketID(u.Bucket)); err != nil {
			return err
		}
		if b := e.config.Tenure.Rules().Find(u.Bucket); b != nil && u.Cell > b.Cells().At(u.At) {
			return fmt.Errorf("use of a cell to come, %d, seen at %d", u.Cell, u.At)
		}
		if u.At > latest || u.Until > u.At.Add(longestUse) {
			return fmt.Errorf("use seen at %d, which counts until %d, is later than all clocks here: set the machines' clocks by NTP", u.At, u.Until)
		}
	}
	return nil
}

// copied returns what this node knows of other nodes of its region that do not answer for
// themselves: by their copies, and by what it has read from the store since they were gone.
// generation is the one under which the question is asked.
func (e *Engine) copied(generation uint64) (all []exchange.Copied) {
	lostAt := quantity.StoreTime(0)
	if e.config.Tenure.Generation() >= generation { // this node knows of the loss that it is about
		_, lostAt = e.config.Store.Lost()
	}
	e.watchCopies()
	all = e.gone.known(e.config.Node, lostAt)
	// While windows stand still the store's time says nothing of how old a copy is.
	if e.standsStill() {
		return all
	}
	for _, c := range e.receiver.Complete() {
		at := slices.IndexFunc(all, func(n exchange.Copied) bool { return n.Node == c.Node })
		if at >= 0 && !e.config.Alive(e.config.Region+"/"+c.Node, c.Life) {
			all = append(all, exchange.Copied{Node: c.Node, First: all[at].First, Answered: all[at].Answered, Since: c.Since, Until: c.Until, Read: c.Read, Settled: c.Settled})
		}
	}
	return all
}

// standsStill reports whether the store may show the same time again and again, because its time is
// ahead of this node's clock.
func (e *Engine) standsStill() bool {
	return e.config.Store.Latest().Sub(quantity.StoreTime(e.config.Now().UnixMicro())) > mostAhead
}

// mostAhead is how far the store's time may be ahead of this node's clock without standing still,
// in microseconds.
const mostAhead = int64(time.Second / time.Microsecond)

// watchCopies finds out which nodes go on without telling this one what they see. It also settles
// the copies of lives that were over when the store last lost data: such a copy may have everything
// up to the loss.
func (e *Engine) watchCopies() {
	own := func(node string) string { return e.config.Region + "/" + node }
	e.receiver.Watch(e.config.Elapsed(), func(node string) bool { return e.config.Alive(own(node), 0) })
	e.others.Watch(e.config.Elapsed(), func(name string) bool { return e.config.Alive(name, 0) })
	_, lostAt := e.config.Store.Lost()
	e.receiver.Settle(lostAt, func(c copies.Copy) bool {
		return !e.standsStill() && e.gone.wasThere(e.config.Node, lostAt) && !e.config.Alive(own(c.Node), c.Life) && e.gone.asLate(c, lostAt)
	})
}
