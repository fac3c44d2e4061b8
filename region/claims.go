package region

import (
	"context"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/journal"
)

// mostClaims bounds the buckets and windows of which the journal remembers that this life of the
// node spent without the store: each is a record of some 200 bytes, kept for an hour beyond its
// window, and an fsync that is shared by who comes at the same time. Beyond the bound a limit's
// whole window is claimed at once. That costs nothing while the node runs; started again within the
// window, it spends nothing without the store of any bucket of that limit.
const mostClaims = 100_000

// claims is what this life of the node knows of the claims in its journal. Safe for concurrent use.
type claims struct {
	most int

	mu sync.Mutex
	// whole are the limits' windows that were looked at, without the windows' numbers.
	whole map[windowKey]wholeClaim
	kept  int           // claims of this life that the journal holds
	ends  map[int64]int // of these, how many end in a minute

	making sync.Mutex // held while a whole window is claimed
}

// wholeClaim says who claimed a window of a limit as a whole.
type wholeClaim struct {
	window int64
	by     claimant
}

type claimant int

const (
	nobody claimant = iota
	thisLife
	earlierLife
)

func newClaims() *claims {
	return &claims{most: mostClaims, whole: map[windowKey]wholeClaim{}, ends: map[int64]int{}}
}

// claimLocal is the claim of this node's fallback: its journal remembers, for each bucket and
// window, that a life of the node spent of its part.
func (n *Node) claimLocal(c claiming) (before bool, err error) {
	whole, err := n.wholeClaim(c.key)
	if err != nil || whole == earlierLife {
		return true, err
	}
	id := "local:" + c.bucket // an id of a bucket begins with a digit
	by, err := n.claimant(id, c.key.number)
	switch {
	case err != nil || by == earlierLife:
		return true, err
	case by == thisLife || whole == thisLife || !c.spend:
		return false, nil
	case n.claims.full(n.now()):
		return false, n.claimWhole(c.key)
	}
	if err := n.writeClaim(id, c.key); err != nil {
		return true, err
	}
	n.claims.made(c.key)
	return false, nil
}

// claimant says who claimed what the journal names by an id, in a window.
func (n *Node) claimant(id string, window int64) (claimant, error) {
	all, err := n.journal.Checkpoints(id)
	for _, c := range all {
		if c.Cell == window && c.Generation < n.journal.Incarnation() {
			return earlierLife, err
		}
		if c.Cell == window {
			return thisLife, err
		}
	}
	return nobody, err
}

func (n *Node) writeClaim(id string, k windowKey) error {
	ctx, cancel := context.WithTimeout(context.Background(), n.deadline)
	defer cancel()
	return n.journal.Checkpoint(ctx, []journal.Checkpoint{{Bucket: id, Cell: k.number, Used: 1,
		At: n.now().UnixMicro(), Until: k.ends(), Generation: n.journal.Incarnation()}})
}

// wholeID is what the journal calls all buckets of a limit.
func wholeID(k windowKey) string { return "local:*" + k.head }

// wholeClaim says who claimed a window of a limit as a whole. The journal is asked once for each.
func (n *Node) wholeClaim(k windowKey) (claimant, error) {
	limit := k
	limit.number = 0
	n.claims.mu.Lock()
	w, known := n.claims.whole[limit]
	n.claims.mu.Unlock()
	if known && w.window == k.number {
		return w.by, nil
	}
	by, err := n.claimant(wholeID(k), k.number)
	if err == nil {
		n.claims.note(limit, wholeClaim{k.number, by})
	}
	return by, err
}

// note remembers who claimed a window, unless a later one, or more of this one, is known by now.
func (c *claims) note(limit windowKey, w wholeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.whole[limit]
	if !known || w.window > old.window || w.window == old.window && w.by > old.by {
		c.whole[limit] = w
	}
}

// claimWhole claims a window of a limit for all its buckets.
func (n *Node) claimWhole(k windowKey) error {
	n.claims.making.Lock()
	defer n.claims.making.Unlock()
	if by, err := n.wholeClaim(k); err != nil || by == thisLife {
		return err
	}
	if err := n.writeClaim(wholeID(k), k); err != nil {
		return err
	}
	n.log.Warn("very many buckets are spent of without the store: if this node starts again before "+
		"their window ends, it spends nothing of their limit without the store until then",
		"buckets", n.claims.most, "limit", k.head)
	limit := k
	limit.number = 0
	n.claims.note(limit, wholeClaim{k.number, thisLife})
	return nil
}

// made counts a claim that the journal keeps for a clock step beyond its end.
func (c *claims) made(k windowKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept++
	c.ends[(k.ends()+algorithms.MaxClockStep)/time.Minute.Microseconds()+1]++
}

// full says whether the journal holds as many claims as it may.
func (c *claims) full(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept < c.most {
		return false
	}
	for minute, n := range c.ends {
		if minute*time.Minute.Microseconds() <= now.UnixMicro() {
			c.kept -= n
			delete(c.ends, minute)
		}
	}
	return c.kept >= c.most
}
