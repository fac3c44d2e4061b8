package tenure

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// bootstrapped is how long the nodes of a region may take to start for the first time. A new node
// that starts later may be replacing another.
const bootstrapped = 10 * time.Minute

// checkJournalWhole finds out, at the start, since when this node's journal is whole, which means
// that it holds every row that the node announced since then.
//
// A new journal in a region that has served before may replace one that was lost. But if the store
// remembers no journal of this node, the node is new, and used nothing since the store last lost
// data. It vouches for that only if it has heard which other nodes there were: after a loss it must
// wait for them. A journal that is behind what the store remembers of it is an old copy.
//
// From the start on the node writes every row to its journal, whatever becomes of the store. If a
// start is tried again, the first finding stands: by then the store may remember this very journal.
func (t *turn) checkJournalWhole(ctx context.Context, opened store.Opened) error {
	if !t.vouched {
		before, err := t.config.Store.Note(ctx, t.config.Node, "")
		if err != nil {
			return err
		}
		if err := t.vouch(before, opened); err != nil {
			return err
		}
	}
	at := t.journalAt()
	if _, err := t.config.Store.Note(ctx, t.config.Node, at); err != nil {
		return err
	}
	t.noted.Store(at)
	return nil
}

// vouch records in the journal since when it is whole. before is what the store remembers of it.
func (t *turn) vouch(before string, opened store.Opened) (err error) {
	journal := t.config.Journal
	fresh := journal.WholeSince() == math.MaxInt64
	var incarnation, sequence uint64
	_, _ = fmt.Sscanf(before, "%d %d", &incarnation, &sequence)
	old := incarnation >= journal.Incarnation() || sequence > journal.Found()
	heard := len(t.config.Store.Named()) > 0
	age := t.config.Now().Sub(time.UnixMilli(int64(opened.Since)))
	switch {
	case fresh && heard && t.config.Bootstrap && before == "" && opened.LostAt == 0 && age < bootstrapped:
		t.unused = true
		err = journal.SetWholeSince(0) // the node had no earlier life either
	case fresh && heard && before == "":
		err = journal.SetWholeSince(opened.LostAt)
	case fresh || old:
		if old {
			t.config.Log.Warn("the journal is older than what the store remembers of it: what it misses counts as not known",
				"journal", t.journalAt(), "store", before)
		}
		err = journal.SetWholeSince(opened.Now)
	}
	t.vouched = err == nil
	return err
}

// rememberOthers writes to the journal which nodes the store has answered, and when last, before
// this node does anything there. If this one ends at once and the store loses all, nobody else may
// know.
func (t *turn) rememberOthers(opened store.Opened) error {
	all := t.config.Journal.Names()
	if all == nil {
		all = map[string]journal.Name{}
	}
	for node, at := range t.config.Store.Named() {
		n, known := all[node]
		if !known {
			n.First = opened.LostAt
		}
		n.Last = max(n.Last, at)
		all[node] = n
	}
	return t.config.Journal.RememberNames(all)
}

// journalAt returns the journal's incarnation and sequence number as the text that the store
// remembers.
func (t *Tenure) journalAt() string {
	return fmt.Sprintf("%d %d", t.config.Journal.Incarnation(), t.config.Journal.Sequence())
}

// NoteJournal writes to the store how far this node's journal has come, unless the store knows
// already. Before that nothing may be announced of what the journal has: an older copy of it that
// is put back would not be known as one.
func (t *Tenure) NoteJournal(ctx context.Context) error {
	t.noting.Lock() // else an earlier note may take the place of a later one
	defer t.noting.Unlock()
	at := t.journalAt()
	if at == t.noted.Load() {
		return nil
	}
	_, err := t.config.Store.Note(ctx, t.config.Node, at)
	if err == nil {
		t.noted.Store(at)
	}
	return err
}
