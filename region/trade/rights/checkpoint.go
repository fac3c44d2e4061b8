package rights

import (
	"cmp"
	"context"

	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/copies"
)

// Checkpoint writes to the journal the uses that have moved and which nodes used the store. With
// last, it writes all uses that have moved at all: it is the last time. Then it makes the store
// remember how far this node's journal has come.
func (e *Engine) Checkpoint(ctx context.Context, last bool) {
	e.watchCopies()
	if err := cmp.Or(e.writeUses(ctx, last), e.noteNames()); err != nil {
		if ctx.Err() == nil {
			e.config.Log.Error("use of long windows is not written down: a loss of the store would forget it", "err", err)
		}
		return
	}
	_ = e.config.Tenure.NoteJournal(ctx) // the next checkpoint does, or the next row
}

// writeUses writes to the journal the uses that have moved (see lastSeen.checkpoints), and then
// hands them to the sender of copies.
func (e *Engine) writeUses(ctx context.Context, all bool) error {
	asOf := e.config.Store.Latest()
	if e.standsStill() { // more may be used at this time
		asOf = 0
	}
	moved, own := e.seen.checkpoints(e.config.Tenure.Generation(), all)
	for len(moved) > 0 {
		part := moved[:min(len(moved), maxCheckpoints)]
		moved = moved[len(part):]
		if err := e.config.Journal.Checkpoint(ctx, part, e.config.Store.Seen()...); err != nil {
			e.sender.Anew() // what is written of it would not be told
			return err
		}
		e.seen.written(part)
	}
	since := e.config.Journal.WholeSince()
	ofAll, all := e.gone.all(e.config.Node)
	e.sender.Note(copies.Seen{Uses: own, Since: since, SinceAll: max(since, ofAll), Read: e.gone.readBy(e.config.Node), AsOf: asOf,
		All: all})
	repeat.Signal(e.written)
	return nil
}

// maxCheckpoints bounds the checkpoints in one call of the journal.
const maxCheckpoints = 4096
