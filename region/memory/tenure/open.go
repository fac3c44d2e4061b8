package tenure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// startTries is how often a starting node tries a store whose server is slow to answer.
const startTries = 3

// firstAgenda returns the documents under which a node starts: those that were open when it last
// ran, or else that of its file.
func firstAgenda(c Config) (a barrier.Agenda, err error) {
	var known []*policy.Document
	for _, saved := range c.Journal.Documents() {
		d, err := policy.ParseOpen("the document in the journal", saved.Source)
		if err != nil {
			return a, fmt.Errorf("version %d, under which this node worked before: %w", saved.Version,
				err)
		}
		known = append(known, d)
	}
	if len(known) == 0 {
		if _, has := c.Policy.RegionIndex(c.Region); !has && !c.Policy.Removes(c.Region) {
			return a, fmt.Errorf(
				"policy %s %w %q: add it to the document's regions, or correct this node's region",
				c.Policy.Epoch(), rules.ErrNoRegion, c.Region)
		}
		return barrier.Of(c.Policy), nil
	}
	return barrier.Union(known...)
}

// behind returns an agenda with the document of the node's file, unless that is older or
// contradicts it: a node with an old file must not bring it back.
func (t *Tenure) behind(a barrier.Agenda, filed *policy.Document) barrier.Agenda {
	var err error
	if newest := a.Newest().Epoch(); filed.Version < newest.Version {
		err = fmt.Errorf("%s is open: %w", newest, barrier.ErrOlder)
	} else if err = policy.CheckStep(a.Newest(), filed); err == nil {
		a, err = a.Learn(filed)
	}
	if err != nil {
		t.config.Log.Warn("the limits document in the node's file is passed over", "epoch",
			filed.Epoch().String(), "err", err)
	}
	t.NoteFile(err)
	return a
}

// Open opens the store at the node's start.
func (t *Tenure) Open(ctx context.Context) (err error) {
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
	turn := t.begin()
	defer turn.end()
	return turn.openUnder(ctx, t.agenda(), bootstrap)
}

var errChanging = errors.New("the store is being opened")

// EndGeneration ends a generation in which only a bucket was lost. It does nothing if the
// generation has ended already, and fails while the store is being opened.
func (t *Tenure) EndGeneration(ctx context.Context, generation uint64) error {
	turn := t.tryBegin()
	if turn == nil {
		return errChanging
	}
	defer turn.end()
	if t.Generation() != generation {
		return nil
	}
	turn.ended = generation
	return turn.openUnder(ctx, t.agenda(), false)
}

// openUnder opens the store under documents. Afterwards these are open beside those that other
// nodes of the region opened. Where the store is opened, and what follows fails, it is to be opened
// again: it answers this node by now, so nobody else would notice that the node's other parts have
// not heard of the generation.
func (t *turn) openUnder(ctx context.Context, a barrier.Agenda, bootstrap bool) error {
	for range merges {
		if !t.guess {
			t.save(a) // should the answer be lost, nobody else may have their texts
		}
		opened, err := t.openStore(ctx, a, bootstrap)
		if err == nil {
			if err = t.takeOver(ctx, a, opened); err != nil {
				t.Reopen()
			}
			return err
		}
		var other *store.OtherDocuments
		var elsewhere *Elsewhere
		switch {
		case errors.As(err, &elsewhere):
			if a, err = barrier.Union(slices.Concat(a.Documents(), elsewhere.Documents)...); err != nil {
				return err
			}
			for _, d := range elsewhere.Documents {
				t.origins[d.Epoch()] = fromRegions
			}
			t.work(rules.New(t.known.view(a, 0), t.config.Store.Shards()))
		case !errors.As(err, &other):
			return err
		default:
			if a, err = t.merged(ctx, a, other); err != nil {
				return err
			}
		}
	}
	return errMerging
}

// openStore opens the store under documents, and no others.
func (t *turn) openStore(ctx context.Context, a barrier.Agenda,
	bootstrap bool) (store.Opened, error) {
	c := t.config
	seen, latest := c.Journal.StoreTime()
	return c.Store.Open(ctx, store.Opening{Region: c.Region, Node: c.Node, Epoch: a.String(), Folded: a.Folded(),
		Guess: t.guess, Bootstrap: bootstrap,
		LastGeneration: max(c.Journal.Generation(), t.Generation()), Ended: t.ended, Seen: seen,
		Latest: latest, Reserve: t.times.reserve, MayBegin: c.MayBegin,
		Keep: func(ctx context.Context, generation uint64) error {
			return t.keepDocuments(ctx, generation, a)
		}})
}

// takeOver makes the node work with the store that it has opened.
func (t *turn) takeOver(ctx context.Context, a barrier.Agenda, opened store.Opened) error {
	c := t.config
	if err := c.Journal.SetGeneration(opened.Generation); err != nil {
		return err
	}
	t.noteLoss(opened)
	if err := c.Store.Beat(ctx, a.String()); err != nil {
		return err
	}
	t.tellNamed()
	if err := t.rememberOthers(opened); err != nil {
		return err
	}
	opened.Now = max(opened.Now, c.Store.Latest())
	if err := t.checkJournalWhole(ctx, opened); err != nil {
		return err
	}
	// The store may have lost the texts between their keeping and its opening.
	if err := t.keepDocuments(ctx, opened.Generation, a); err != nil {
		return err
	}
	if err := errors.Join(t.learnWhetherSure(ctx, a, opened), t.learnFence(ctx)); err != nil {
		return err
	}
	// If this is false, all that this node knows of the store still holds.
	anew := opened.Since > t.since
	unused := t.unused && t.since == 0 && opened.LostAt == 0
	t.since, t.guess = opened.Generation, false
	t.save(a)
	t.known.acknowledge(a, opened.Now)
	t.known.again()
	r := rules.New(t.known.view(a, c.Store.Surely()), c.Store.Shards())
	t.work(r)
	t.known.wait(r.View)
	c.Changed(Change{Rules: r, Generation: opened.Generation, Now: opened.Now, Anew: anew,
		Unused: unused})
	return nil
}

func (t *Tenure) noteLoss(opened store.Opened) {
	if opened.Confirmed {
		t.config.Log.Info("the store's data are others by master_replid, and all nodes confirm that nothing was lost",
			"generation", opened.Generation)
	}
	if !opened.Lost {
		return
	}
	t.losses.Add(1)
	why := "the store lost data, or its master_replid is another"
	if opened.Foreign {
		why = fmt.Sprintf("another version of quotad wrote what the store holds, in layout %d, "+
			"which counts as lost", opened.FoundLayout)
	}
	t.config.Log.Warn("the store counts as lost: windows up to a minute are closed until nothing of "+
		"before weighs, longer ones are restored", "why", why, "generation", opened.Generation)
}

// Deleted reports whether a lost bucket was deleted from a store that lost nothing else. That is so if
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
		var lacks []string
		if lacks, err = t.config.Store.TryRights(ctx); !store.Unreached(err) || ctx.Err() != nil {
			t.lacks(lacks)
			return err
		}
	}
	return err
}

// lacks logs the rights that the store's user lacks and that a node can do without.
func (t *Tenure) lacks(rights []string) {
	if len(rights) > 0 {
		t.config.Log.Warn("the store's user lacks rights that a node can do without, until something is lost",
			"rights", strings.Join(rights, " "), "give", store.MinimalACL)
	}
}
