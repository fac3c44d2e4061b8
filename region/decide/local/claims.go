package local

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
)

// maxClaims bounds the claims on single buckets and windows that the journal keeps for this life
// of the node. A claim says that this life spent units of a bucket in a window without the store.
// It is a record of some 200 bytes, kept for an hour beyond its window. It costs an fsync, which
// claims made at the same time share. Beyond the bound the node claims a limit's whole window at
// once. That costs nothing while the node runs. If the node starts again within the window, it
// spends nothing of any bucket of that limit without the store.
const maxClaims = 100_000

// claims is what this life of the node (from its start to its end) knows of the claims in its
// journal. Safe for concurrent use.
type claims struct {
	journal  *journal.Journal
	now      func() time.Time
	deadline time.Duration // for one write
	log      *slog.Logger
	most     int

	mu sync.Mutex
	// whole holds, for each limit and window length, the newest window that was looked up. The keys
	// have number 0.
	whole map[windowKey]wholeClaim
	kept  int           // claims of this life that the journal holds
	ends  map[int64]int // how many of these end, by minute since 1970

	making sync.Mutex // held while a whole window is claimed
}

// wholeClaim says which life claimed a window of a limit as a whole.
type wholeClaim struct {
	window quantity.Cell
	by     claimant
}

type claimant int

const (
	nobody claimant = iota
	thisLife
	earlierLife
)

func newClaims(j *journal.Journal, now func() time.Time, deadline time.Duration, log *slog.Logger) *claims {
	return &claims{journal: j, now: now, deadline: deadline, log: log, most: maxClaims, whole: map[windowKey]wholeClaim{}, ends: map[int64]int{}}
}

// before reports whether an earlier life of this node (a run before it was restarted) may have spent
// its part of a bucket in a window.
func (c *claims) before(of claiming) (before bool, err error) {
	by, err := c.known(of)
	return err != nil || by == earlierLife, err
}

// known says which life claimed a bucket in a window, by itself or with the whole window of its
// limit.
func (c *claims) known(of claiming) (claimant, error) {
	whole, err := c.wholeClaim(of.key)
	if err != nil || whole == earlierLife {
		return whole, err
	}
	by, err := c.claimant(claimID(of.bucket), of.key.number)
	return max(by, whole), err
}

// claim writes to the journal, in one commit unless they are very many, that this life spends of
// buckets in their windows. What a life has claimed already is left out.
func (c *claims) claim(all []claiming) error {
	var made []claiming
	var write []journal.Checkpoint
	for _, of := range all {
		switch by, err := c.known(of); {
		case err != nil:
			return err
		case by != nobody:
		case c.full(c.now(), len(made)):
			if err := c.claimWhole(of.key); err != nil {
				return err
			}
		default:
			made, write = append(made, of), append(write, c.checkpoint(claimID(of.bucket), of.key))
		}
	}
	if len(write) == 0 {
		return nil
	}
	if err := c.write(write); err != nil {
		return err
	}
	for _, of := range made {
		c.made(of.key)
	}
	return nil
}

// claimID returns the journal's id for what is spent of a bucket without the store. It cannot be a
// wholeID: a bucket's id begins with a digit.
func claimID(bucket string) string { return "local:" + bucket }

// claimant says which life claimed the bucket or limit with this journal id, in a window.
func (c *claims) claimant(id string, window quantity.Cell) (claimant, error) {
	all, err := c.journal.Checkpoints(id)
	for _, one := range all {
		if one.Cell == window && one.Generation < c.journal.Incarnation() {
			return earlierLife, err
		}
		if one.Cell == window {
			return thisLife, err
		}
	}
	return nobody, err
}

// checkpoint is a claim as the journal keeps it.
func (c *claims) checkpoint(id string, k windowKey) journal.Checkpoint {
	return journal.Checkpoint{Bucket: id, Cell: k.number, Used: 1,
		At: quantity.StoreTime(c.now().UnixMicro()), Until: k.ends(), Generation: c.journal.Incarnation()}
}

func (c *claims) write(all []journal.Checkpoint) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.deadline)
	defer cancel()
	for some := range slices.Chunk(all, journal.MaxCheckpoints) {
		if err := c.journal.Checkpoint(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// wholeID returns the journal's id for all buckets of a limit.
func wholeID(k windowKey) string { return "local:*" + k.head }

// wholeClaim says which life claimed a window of a limit as a whole. The journal is asked once for
// each window.
func (c *claims) wholeClaim(k windowKey) (claimant, error) {
	limit := k
	limit.number = 0
	c.mu.Lock()
	w, known := c.whole[limit]
	c.mu.Unlock()
	if known && w.window == k.number {
		return w.by, nil
	}
	by, err := c.claimant(wholeID(k), k.number)
	if err == nil {
		c.note(limit, wholeClaim{k.number, by})
	}
	return by, err
}

// note remembers which life claimed a window. A later window replaces an earlier one. For the same
// window, earlierLife replaces thisLife, and both replace nobody.
func (c *claims) note(limit windowKey, w wholeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.whole[limit]
	if !known || w.window > old.window || w.window == old.window && w.by > old.by {
		c.whole[limit] = w
	}
}

// claimWhole claims a window of a limit for all its buckets.
func (c *claims) claimWhole(k windowKey) error {
	c.making.Lock()
	defer c.making.Unlock()
	if by, err := c.wholeClaim(k); err != nil || by == thisLife {
		return err
	}
	if err := c.write([]journal.Checkpoint{c.checkpoint(wholeID(k), k)}); err != nil {
		return err
	}
	c.log.Warn("very many buckets are spent of without the store: if this node starts again before "+
		"their window ends, it spends nothing of their limit without the store until then",
		"buckets", c.most, "limit", k.head)
	limit := k
	limit.number = 0
	c.note(limit, wholeClaim{k.number, thisLife})
	return nil
}

// made counts a claim. The journal keeps it until algorithms.MaxClockStep after its window counts.
func (c *claims) made(k windowKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept++
	c.ends[int64(k.ends()+algorithms.MaxClockStep)/time.Minute.Microseconds()+1]++
}

// full reports whether the journal will hold as many claims as it may, when some more are written.
func (c *claims) full(now time.Time, more int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept+more < c.most {
		return false
	}
	for minute, n := range c.ends {
		if minute*time.Minute.Microseconds() <= now.UnixMicro() {
			c.kept -= n
			delete(c.ends, minute)
		}
	}
	return c.kept+more >= c.most
}
