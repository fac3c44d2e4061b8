package tenure

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// unsureNote is the name of the note by which a store remembers a doubt.
const unsureNote = "unsure of documents"

// doubt is what a store remembers of what its region does not know: whether other documents may
// have been open there (unsure), and whether the region began anew under a document newer than
// those that others work under (newer).
type doubt struct {
	unsure, newer bool
	after         quantity.StoreTime // see [barrier.View]
	generation    uint64             // since which a node is sure
}

// String returns the text of a note, which parseDoubt reads.
func (d doubt) String() string {
	switch {
	case d.newer:
		return "yes, of newer ones"
	case d.unsure:
		return "yes"
	case d.after > 0:
		return fmt.Sprintf("no, since %d, after %d", d.generation, d.after)
	}
	return fmt.Sprintf("no, since %d", d.generation)
}

func parseDoubt(note string) (d doubt) {
	d.unsure = strings.HasPrefix(note, "yes")
	d.newer = d.unsure && note != "yes"
	_, _ = fmt.Sscanf(note, "no, since %d, after %d", &d.generation, &d.after)
	return d
}

// learnWhetherSure finds out whether this region may have worked under newer documents than the
// node knows. It is called when the node starts and when a generation has begun.
//
// That is so if the store lost its data, and the node that opens it has only its file. Then the
// region serves nothing until each of the other regions has told its documents, because one of them
// may work under a document that this region has acknowledged. The store remembers the doubt for
// nodes that start again. What the store remembered before this call counts, and not which node
// opened it: the note may be missing because its reply was late.
func (t *turn) learnWhetherSure(ctx context.Context, a barrier.Agenda,
	opened store.Opened) error {
	if t.since == opened.Since {
		return nil
	}
	note, err := t.config.Store.Note(ctx, unsureNote, "")
	if err != nil {
		return err
	}
	before := parseDoubt(note)
	unsure := before.unsure || t.guess && opened.LostAt != 0 && before.generation != opened.Since
	_, err = t.config.Store.Note(ctx, unsureNote, t.known.learnDoubt(a, before, unsure, opened.Since).String())
	return err
}

// learnDoubt takes in what the store remembers. It returns what the store is to remember now.
func (k *knowledge) learnDoubt(a barrier.Agenda, before doubt, unsure bool, generation uint64) doubt {
	k.mu.Lock()
	defer k.mu.Unlock()
	if unsure || len(k.unsure) > 0 {
		k.unsure = map[string]bool{}
		for _, r := range a.Newest().Regions {
			if r.Name != k.region {
				k.unsure[r.Name] = true
			}
		}
	}
	k.newer, k.after = k.newer || before.newer, max(k.after, before.after)
	return k.doubt(generation)
}

func (k *knowledge) doubt(generation uint64) doubt {
	return doubt{len(k.unsure) > 0, k.newer && len(k.unsure) > 0, k.after, generation}
}

// sure notes that a region has told its documents, and that this node knows all of them or newer
// ones. A region that lost all it knew, and began with a newer document than others work under, is
// sure only when each of the others works under a document that is known here.
func (k *knowledge) sure(a barrier.Agenda, region string) {
	if !k.unsure[region] || !slices.ContainsFunc(k.told[region].Open, func(t Told) bool { return a.Has(t.Epoch) }) {
		return
	}
	k.news = true
	if delete(k.unsure, region); len(k.unsure) == 0 && k.newer {
		k.after, k.newer = k.heard.By(k.region, a), false
	}
}

// noteSure makes the store remember what this node has learned of the region's documents since
// then.
func (t *turn) noteSure(ctx context.Context) error {
	t.known.mu.Lock()
	doubted, now := t.known.unsure != nil, t.known.doubt(t.since)
	t.known.mu.Unlock()
	if !doubted || now.unsure && !now.newer {
		return nil
	}
	if _, err := t.config.Store.Note(ctx, unsureNote, now.String()); err != nil || now.unsure {
		return err
	}
	t.known.mu.Lock()
	t.known.unsure = nil
	t.known.mu.Unlock()
	return nil
}
