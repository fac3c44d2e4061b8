package tenure

import (
	"context"

	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/region/store"
)

// unsureNote is the name of the note by which a store remembers that nobody knows for sure which
// documents were open in it.
const unsureNote = "unsure of documents"

// learnWhetherSure finds out at the start whether newer documents may have been open in this region
// than the node knows. That is so if the store lost its data, and the node has nothing but its
// file. The region then serves nothing until each of the other regions has told its documents: one
// of them may work under a document that this region has acknowledged.
func (t *Tenure) learnWhetherSure(ctx context.Context, a barrier.Agenda,
	opened store.Opened) error {
	if t.since != 0 {
		return nil
	}
	note := ""
	if opened.Lost && t.guess {
		note = "yes"
	}
	before, err := t.config.Store.Note(ctx, unsureNote, note)
	if err != nil || note == "" && before != "yes" {
		return err
	}
	t.known.doubt(a)
	return nil
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
	if _, err := t.config.Store.Note(ctx, unsureNote, "no"); err != nil {
		return err
	}
	t.known.mu.Lock()
	t.known.unsure = nil
	t.known.mu.Unlock()
	return nil
}
