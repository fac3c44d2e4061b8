package tenure

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/region/store"
)

// unsureNote is the name of the note by which a store remembers whether anybody knows for sure which
// documents were open in it: "yes", or since which generation a node does.
const unsureNote = "unsure of documents"

// learnWhetherSure finds out whether newer documents may have been open in this region than the
// node knows, when it starts and when a generation has begun. That is so if the store lost its
// data, and the node that opens it has nothing but its file. The region then serves nothing until
// each of the other regions has told its documents: one of them may work under a document that this
// region has acknowledged. The store remembers it, so that it stays so for a node that is started
// again. What stands in the store before a node notes it counts, and not who opened the store: the
// note may be missing because its reply was late.
func (t *Tenure) learnWhetherSure(ctx context.Context, a barrier.Agenda,
	opened store.Opened) error {
	if t.since == opened.Since {
		return nil
	}
	before, err := t.config.Store.Note(ctx, unsureNote, "")
	if err != nil {
		return err
	}
	sure := sureSince(opened.Since)
	if before == "yes" || t.known.isUnsure() || t.guess && opened.LostAt != 0 && before != sure {
		t.known.doubt(a)
		sure = "yes"
	}
	_, err = t.config.Store.Note(ctx, unsureNote, sure)
	return err
}

// sureSince returns the note of a node that knows which documents were open before a generation.
func sureSince(generation uint64) string { return fmt.Sprintf("no, since %d", generation) }

func (k *knowledge) isUnsure() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.unsure) > 0
}

// doubt has the region serve nothing until each of the other regions has told its documents.
func (k *knowledge) doubt(a barrier.Agenda) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unsure = map[string]bool{}
	for _, r := range a.Newest().Regions {
		if r.Name != k.region {
			k.unsure[r.Name] = true
		}
	}
}

// noteSure has the store remember that this node knows the region's documents, if it did not.
func (t *Tenure) noteSure(ctx context.Context) error {
	t.known.mu.Lock()
	sure := t.known.unsure != nil && len(t.known.unsure) == 0
	t.known.mu.Unlock()
	if !sure {
		return nil
	}
	if _, err := t.config.Store.Note(ctx, unsureNote, sureSince(t.since)); err != nil {
		return err
	}
	t.known.mu.Lock()
	t.known.unsure = nil
	t.known.mu.Unlock()
	return nil
}
