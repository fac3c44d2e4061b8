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

// doubt is whether anybody knows for sure which documents were open in a store, and which a region
// has that began anew with a document newer than those of others.
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

// learnWhetherSure finds out whether newer documents may have been open in this region than the
// node knows, when it starts and when a generation has begun. That is so if the store lost its
// data, and the node that opens it has nothing but its file. The region then serves nothing until
// each of the other regions has told its documents: one of them may work under a document that this
// region has acknowledged. The store remembers it, so that it stays so for a node that is started
// again. What stands in the store before a node notes it counts, and not who opened the store: the
// note may be missing because its reply was late.
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

// learnDoubt takes in what the store remembers, and returns what it is to remember.
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

// sure notes that a region has told documents of which all are known here, or older than those. Who
// lost all it knew, and began with a newer document than others work under, waits until each of them
// works under one that is known here, too.
func (k *knowledge) sure(a barrier.Agenda, region string) {
	if !k.unsure[region] || !slices.ContainsFunc(k.told[region].Open, func(t Told) bool { return a.Has(t.Epoch) }) {
		return
	}
	k.news = true
	if delete(k.unsure, region); len(k.unsure) == 0 && k.newer {
		k.after, k.newer = k.heard.By(k.region, a), false
	}
}

// noteSure has the store remember what this node has learned since of the region's documents.
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
