package tenure

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// waivedNote is the name of the note by which a store remembers the operator's word about its losses.
const waivedNote = "losses are waived until"

// Waive takes the operator's word about all losses of the store so far: what nobody can tell was not
// used, and not lent. The store remembers it for the other nodes, which look while they wait.
func (t *Tenure) Waive(ctx context.Context) error {
	until := t.config.Store.Latest()
	if t.Generation() == 0 || until == 0 {
		return fmt.Errorf("the operator's word is not noted: %w", store.ErrUnknownStore)
	}
	if _, err := t.config.Store.Note(ctx, waivedNote, strconv.FormatInt(int64(until), 10)); err != nil {
		return err
	}
	t.waive(until)
	return nil
}

// LearnWaived reads the operator's word that the store remembers, if this node waits for something.
func (t *Tenure) LearnWaived(ctx context.Context) {
	if t.config.Waits == nil || !t.config.Waits() {
		return
	}
	text, err := t.config.Store.Note(ctx, waivedNote, "")
	if until, bad := strconv.ParseInt(text, 10, 64); err == nil && bad == nil {
		t.waive(quantity.StoreTime(until))
	}
}

func (t *Tenure) waive(until quantity.StoreTime) {
	for before := t.waived.Load(); int64(until) > before; before = t.waived.Load() {
		if t.waived.CompareAndSwap(before, int64(until)) {
			t.config.Log.Warn("by the operator's word nothing was used that nobody knows of", "until",
				time.UnixMicro(int64(until)).UTC())
			t.config.Waived(until)
		}
	}
}
