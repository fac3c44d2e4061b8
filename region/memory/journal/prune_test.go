package journal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// due returns how many records end before a time.
func (w *twin) due(before quantity.StoreTime) (n int) {
	for _, r := range w.rows {
		if r.Until < before {
			n++
		}
	}
	for _, c := range w.checkpoints {
		if c.Until < before {
			n++
		}
	}
	return n
}

// pruneSome looks at a few records. Each that is removed is due.
func (w *twin) pruneSome(t *rapid.T, j *Journal) (n int, done bool) {
	before := quantity.StoreTime(drawUntil.Draw(t, "before"))
	return w.pruneOnce(t, j, before, rapid.IntRange(1, 4).Draw(t, "limit"))
}

func (w *twin) pruneOnce(t *rapid.T, j *Journal, before quantity.StoreTime, limit int) (n int, done bool) {
	t.Helper()
	n, done, err := j.prune(before, limit)
	if err != nil || n > limit {
		t.Fatalf("%d records pruned of %d, %v", n, limit, err)
	}
	had := len(w.rows) + len(w.checkpoints)
	for id, r := range w.rows {
		got, err := j.RowsOf(id.bucket, id.cell, id.cell)
		suite.Must(t, err)
		if r.Until < before && !slices.Contains(got, r) {
			delete(w.rows, id)
		}
	}
	for id, c := range w.checkpoints {
		got, err := j.Checkpoints(id.bucket)
		suite.Must(t, err)
		if c.Until < before && !slices.Contains(got, c) {
			delete(w.checkpoints, id)
		}
	}
	if gone := had - len(w.rows) - len(w.checkpoints); gone != n {
		t.Fatalf("Prune(%d) = %d, and %d are gone", before, n, gone)
	}
	return n, done
}

// pruneAll ends a round, if one was begun, and goes through another one. Then nothing is left that
// is due.
func (w *twin) pruneAll(t *rapid.T, j *Journal) {
	before := quantity.StoreTime(drawUntil.Draw(t, "before"))
	limit := rapid.SampledFrom([]int{1, 3, PruneLimit}).Draw(t, "limit")
	most := (len(w.rows)+len(w.checkpoints))/limit + 1
	for range 2 {
		for calls, done := 0, false; !done; calls++ {
			if _, done = w.pruneOnce(t, j, before, limit); calls == most {
				t.Fatalf("the round is not over after %d calls", calls+1)
			}
		}
	}
	if left := w.due(before); left > 0 {
		t.Fatalf("Prune(%d) left %d", before, left)
	}
}

// TestPruneIsBounded: a call looks at PruneLimit records and the next one goes on behind them, over
// rows and then checkpoints, until all were looked at.
func TestPruneIsBounded(t *testing.T) {
	memory := newDirect(t, lab.NewDisk())
	file, path := newJournal(t, unsynced())
	for name, j := range map[string]*Journal{"file": file, "memory": memory} {
		t.Run(name, func(t *testing.T) {
			const each = PruneLimit/2 + 10
			var rows []Row
			var checkpoints []Checkpoint
			for i := range quantity.StoreTime(each) { // each second one ends before 1
				rows = append(rows, Row{Bucket: fmt.Sprintf("%06d", i), Peer: "eu", Until: i % 2})
				checkpoints = append(checkpoints, Checkpoint{Bucket: "b", Cell: quantity.Cell(i), Until: i % 2})
			}
			record := func() {
				for chunk := range slices.Chunk(rows, MaxRecordRows) {
					mustRecord(t, j, chunk...)
				}
			}
			record()
			for chunk := range slices.Chunk(checkpoints, MaxCheckpoints) {
				mustCheckpoint(t, j, chunk...)
			}
			prune := func(want, left int, over bool) {
				t.Helper()
				n, done, err := j.Prune(1)
				if s := j.Stats(); err != nil || n != want || done != over || s.Rows+s.Checkpoints != uint64(left) {
					t.Fatalf("Prune = %d, %v, %v and left %d, want %d, %v and %d", n, done, err,
						s.Rows+s.Checkpoints, want, over, left)
				}
			}
			prune(PruneLimit/2, each+20/2, false)
			record() // those that were removed end when the round has passed them
			prune(20/2, each+each/2, true)
			prune(each/2, each, true)
			prune(0, each, true)
			ended := func(until quantity.StoreTime) bool { return until == 0 }
			sameRows(t, j, slices.DeleteFunc(rows, func(r Row) bool { return ended(r.Until) }))
			sameCheckpoints(t, j, "b", slices.DeleteFunc(checkpoints, func(c Checkpoint) bool { return ended(c.Until) })...)
		})
	}
	mustClose(t, file)
	mustOpen(t, path, unsynced()) // it checks all tallies
}

// TestPruneBeginsAnewWithAnOpening: how far a round had come is not kept.
func TestPruneBeginsAnewWithAnOpening(t *testing.T) {
	j, path := newJournal(t, unsynced())
	mustRecord(t, j, numbered(1), numbered(2), numbered(3))
	if n, done, err := j.prune(0, 2); n != 0 || done || err != nil {
		t.Fatalf("Prune = %d, %v, %v", n, done, err)
	}
	mustClose(t, j)
	j = mustOpen(t, path, unsynced())
	if n, done, err := j.Prune(11); n != 3 || !done || err != nil {
		t.Fatalf("Prune = %d, %v, %v", n, done, err)
	}
}

// TestPruneGoesOnWhereARecordIsGone: between two calls TakeBack removes the checkpoint at which the
// round would go on.
func TestPruneGoesOnWhereARecordIsGone(t *testing.T) {
	j, _ := newJournal(t, unsynced())
	for cell := range quantity.Cell(4) {
		mustCheckpoint(t, j, Checkpoint{Bucket: "b", Cell: cell, At: quantity.StoreTime(cell), Until: 10})
	}
	if n, done, err := j.prune(0, 2); n != 0 || done || err != nil {
		t.Fatalf("Prune = %d, %v, %v", n, done, err)
	}
	suite.Must(t, j.TakeBack(1, func(c Checkpoint) (Checkpoint, bool) { return c, c.Cell != 2 }))
	if n, done, err := j.Prune(11); n != 1 || !done || err != nil {
		t.Fatalf("Prune = %d, %v, %v, want the last one", n, done, err)
	}
}

// TestPruneInTheCommitOfOthers: a row to which a call in the same commit gives a later end stays. One
// that such a call raises, but that has ended, is removed, and must not be taken for durable.
func TestPruneInTheCommitOfOthers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		j, _ := newJournal(t, g.options())
		raised, longer := numbered(0), numbered(1)
		raised.Lent, longer.Until = 7, 20
		results := make(chan error, 4)
		record := func(rows ...Row) { results <- j.Record(t.Context(), rows) }
		go record(numbered(0), numbered(1), numbered(2))
		g.pass()
		suite.Must(t, <-results)
		go record(kept)
		<-g.enter
		go record(raised, longer)
		synctest.Wait() // in the queue, before the prune
		go func() {
			n, done, err := j.Prune(11)
			if err == nil && (n != 2 || !done) {
				err = fmt.Errorf("%d rows pruned, %v, want 2", n, done)
			}
			results <- err
		}()
		synctest.Wait()
		g.leave <- struct{}{}
		g.pass()
		for range 3 {
			suite.Must(t, <-results)
		}
		sameRows(t, j, []Row{longer, kept}) // which was not durable yet when Prune looked
		go record(raised)
		g.pass()
		suite.Must(t, <-results)
		sameRows(t, j, []Row{raised, longer, kept})
		mustClose(t, j)
	})
}

// TestPruneChecksWhatItRemoves: a record whose seal is broken is not removed, but fails the journal.
func TestPruneChecksWhatItRemoves(t *testing.T) {
	for of, record := range map[string]func(j *Journal){
		"row":        func(j *Journal) { mustRecord(t, j, numbered(1)) },
		"checkpoint": func(j *Journal) { mustCheckpoint(t, j, Checkpoint{Bucket: "b1", Until: 10}) },
	} {
		t.Run(of, func(t *testing.T) {
			j, path := newJournal(t, unsynced())
			record(j)
			spoil(t, j, "")
			if _, _, err := j.Prune(10); err != nil {
				t.Fatalf("nothing is to be removed, and Prune = %v", err)
			}
			if _, _, err := j.Prune(math.MaxInt64); !errors.Is(err, ErrFailed) || !errors.Is(err, errSeal) {
				t.Fatalf("Prune = %v", err)
			}
			mustClose(t, j)
			if _, err := Open(path, unsynced()); !errors.Is(err, ErrDamaged) {
				t.Fatalf("Open = %v", err)
			}
		})
	}
}

// TestPruneAllocatesNothingForWhatStays: a round over many records costs as much memory as one over
// none.
func TestPruneAllocatesNothingForWhatStays(t *testing.T) {
	j, _ := newJournal(t, unsynced())
	look := func() float64 {
		return testing.AllocsPerRun(10, func() { mustPrune(t, j, 10) })
	}
	none := look()
	for i := range 2_000 {
		mustCheckpoint(t, j, Checkpoint{Bucket: fmt.Sprint(i), Until: 10})
		if i == 0 {
			mustRecord(t, j, numbered(0))
		}
	}
	if many := look(); many > none+10 { // bbolt has more pages on its way
		t.Errorf("%v allocations for 2001 records, %v for none", many, none)
	}
}
