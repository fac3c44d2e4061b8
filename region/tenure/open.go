package tenure

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/rules"
	"github.com/quotad/quotad/region/store"
)

// startTries is how often a starting node tries a store whose server is slow to answer.
const startTries = 3

// Open opens the store at the node's start, under the document of the configuration, and remembers
// that document in the journal. It fails if the document is older than the one under which the node
// worked before.
func (t *Tenure) Open(ctx context.Context) error {
	document := t.config.Policy
	if err := t.checkPolicy(document); err != nil {
		return err
	}
	if err := t.openFirst(ctx); err != nil {
		return err
	}
	return t.config.Journal.SavePolicy(document.Version, document.Source())
}

func (t *Tenure) openFirst(ctx context.Context) (err error) {
	for range startTries {
		var refused *store.Error
		if err = t.open(ctx, t.config.Bootstrap); !errors.As(err, &refused) ||
			!store.Unreached(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// OpenOnce opens the store again. If the store lost its data it begins a new generation.
func (t *Tenure) OpenOnce(ctx context.Context) error { return t.open(ctx, false) }

func (t *Tenure) open(ctx context.Context, bootstrap bool) error {
	t.begin()
	defer t.end()
	return t.openUnder(ctx, t.Rules(), bootstrap)
}

var errChanging = errors.New("the store is being opened")

// EndGeneration ends a generation in which nothing but a bucket was lost, unless it has ended
// already. It fails while the store is being opened.
func (t *Tenure) EndGeneration(ctx context.Context, generation uint64) error {
	if !t.tryBegin() {
		return errChanging
	}
	defer t.end()
	if t.Generation() != generation {
		return nil
	}
	t.ended = generation
	return t.openUnder(ctx, t.Rules(), false)
}

// openUnder opens the store under a document, which is in force afterwards. The caller has the
// turn.
func (t *Tenure) openUnder(ctx context.Context, r *rules.Rules, bootstrap bool) error {
	c := t.config
	seen, latest := c.Journal.StoreTime()
	opened, err := c.Store.Open(ctx, store.Opening{Region: c.Region, Node: c.Node, Epoch: r.Epoch,
		Bootstrap:      bootstrap,
		LastGeneration: max(c.Journal.Generation(), t.Generation()), Ended: t.ended, Seen: seen,
		Latest: latest, Reserve: t.times.reserve, MayBegin: c.MayBegin})
	if err != nil {
		return err
	}
	if err := c.Journal.SetGeneration(opened.Generation); err != nil {
		return err
	}
	t.noteLoss(opened)
	if err := c.Store.Beat(ctx, r.Epoch); err != nil {
		return err
	}
	opened.Now = max(opened.Now, c.Store.Latest())
	unused, err := t.checkJournalWhole(ctx, opened)
	if err != nil {
		return err
	}
	// If this is false, all that this node knows of the store still holds.
	anew := opened.Since > t.since
	t.since = opened.Generation
	t.rules.Store(r)
	c.Changed(Change{Rules: r, Generation: opened.Generation, Now: opened.Now, Anew: anew,
		Unused: unused})
	return nil
}

func (t *Tenure) noteLoss(opened store.Opened) {
	t.lostAt.Store(int64(opened.LostAt))
	if !opened.Lost {
		return
	}
	t.losses.Add(1)
	why := "the store lost data, or its master_replid is another"
	if opened.Foreign {
		why = fmt.Sprintf("another version of quotad wrote what the store holds, in layout %d, "+
			"which counts as lost", opened.FoundLayout)
	}
	t.config.Log.Warn(why+": windows up to a minute are closed until nothing of before weighs, "+
		"longer ones are restored", "generation", opened.Generation)
}

// Deleted says whether a lost bucket was deleted from a store that lost nothing else. That is so if
// the bucket was lost after the generation began. A new generation must then begin: rows of the
// bucket may be on their way, and once other nodes have told what they know of the bucket, such
// rows are refused only if they are of an earlier generation.
func (t *Tenure) Deleted(bucket string, lostAt quantity.StoreTime) bool {
	return lostAt > t.config.Store.Begun(store.ShardOf(t.Rules().Key(bucket)))
}

// TryRights fails if the store's user lacks a right that scripts need, so that the node does not
// start: the store would charge requests without answering them. A server that is slow to answer is
// tried again.
func (t *Tenure) TryRights(ctx context.Context) (err error) {
	for range startTries {
		if err = t.config.Store.TryRights(ctx); !store.Unreached(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}
