package rights

import "context"

// Checkpoint writes to the journal the uses that have moved, all of them if last is set (this is
// the last time). Then it has the store remember how far this node's journal is.
func (e *Engine) Checkpoint(ctx context.Context, last bool) {
	all := e.seen.checkpoints(e.config.Tenure.Generation(), last)
	for len(all) > 0 {
		part := all[:min(len(all), maxCheckpoints)]
		all = all[len(part):]
		if err := e.config.Journal.Checkpoint(ctx, part, e.config.Store.Seen()...); err != nil && ctx.Err() == nil {
			e.config.Log.Error("use of long windows is not written down: a loss of the store would forget it", "err", err)
			return
		}
		e.seen.written(part)
	}
	e.config.Tenure.NoteJournal(ctx)
}

// maxCheckpoints bounds the checkpoints in one call of the journal.
const maxCheckpoints = 4096
