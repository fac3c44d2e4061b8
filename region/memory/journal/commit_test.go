package journal

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	bolt "go.etcd.io/bbolt"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// gate holds back commits until they are let through one by one.
type gate struct{ enter, leave chan struct{} }

func newGate() gate { return gate{make(chan struct{}), make(chan struct{})} }

func (g gate) options() Options {
	opts := us1
	opening := true
	opts.commit = func(tx *bolt.Tx) error {
		if opening { // the commit of Open itself
			opening = false
			return commitUnsynced(tx)
		}
		g.enter <- struct{}{}
		<-g.leave
		return commitUnsynced(tx)
	}
	return opts
}

func (g gate) pass() { <-g.enter; g.leave <- struct{}{} }

func numbered(i int) Row { return Row{Bucket: fmt.Sprint("b", i), Peer: "eu", Lent: 1, Until: 10} }

func TestConcurrentRecordsShareOneCommit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		j, _ := newJournal(t, g.options())
		const calls = 100
		results := make(chan error, calls+1)
		go func() { results <- j.Record(t.Context(), []Row{numbered(0)}) }()
		<-g.enter
		for i := range calls {
			go func() { results <- j.Record(t.Context(), []Row{numbered(1 + i)}) }()
		}
		synctest.Wait()
		if s := j.Stats(); s.Waiting != calls || s.Commits != 0 || len(results) != 0 {
			t.Fatalf("while the first commit runs: %+v and %d results, want %d waiting and none", s,
				len(results), calls)
		}
		g.leave <- struct{}{}
		g.pass()
		for range calls + 1 {
			suite.Must(t, <-results)
		}
		if s := j.Stats(); s.Commits != 2 || s.Calls != calls+1 || s.Rows != calls+1 ||
			s.Recorded != calls+1 {
			t.Fatalf("stats %+v, want %d calls in 2 commits", s, calls+1)
		}
		mustClose(t, j)
	})
}

func TestRecordReturnsOnlyAfterItsCommit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		j, _ := newJournal(t, g.options())
		done := make(chan error, 1)
		go func() { done <- j.Record(t.Context(), []Row{numbered(0)}) }()
		<-g.enter
		synctest.Wait()
		if len(done) != 0 {
			t.Fatal("Record returned before its commit did")
		}
		sameRows(t, j, nil)
		g.leave <- struct{}{}
		suite.Must(t, <-done)
		sameRows(t, j, []Row{numbered(0)})
		mustClose(t, j)
	})
}

func TestFullQueueHoldsCallersBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		j, _ := newJournal(t, g.options())
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 2*queueCalls)
		for i := range cap(results) {
			go func() { results <- j.Record(ctx, []Row{numbered(i)}) }()
			if i == 0 {
				synctest.Wait() // it is alone in the commit at the gate
			}
		}
		synctest.Wait()
		if s := j.Stats(); s.Waiting != queueCalls {
			t.Fatalf("%d calls wait, want %d", s.Waiting, queueCalls)
		}
		cancel()
		for range cap(results) {
			if err := <-results; err != context.Canceled {
				t.Fatalf("Record whose context ended = %v", err)
			}
		}
		g.pass()
		g.pass()
		synctest.Wait()
		if n := len(allRows(t, j.Rows())); n != queueCalls+1 {
			t.Fatalf("%d rows, want those of the %d calls that were in the queue or the commit", n,
				queueCalls+1)
		}
		mustClose(t, j)
	})
}

func TestCallerMayReuseRowsAfterCancel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		j, _ := newJournal(t, g.options())
		first := make(chan error, 1)
		go func() { first <- j.Record(t.Context(), []Row{numbered(0)}) }()
		<-g.enter
		ctx, cancel := context.WithCancel(t.Context())
		rows, second := []Row{numbered(1)}, make(chan error, 1)
		go func() { second <- j.Record(ctx, rows) }()
		synctest.Wait()
		cancel()
		if err := <-second; err != context.Canceled {
			t.Fatal(err)
		}
		rows[0] = numbered(2)
		g.leave <- struct{}{}
		g.pass()
		suite.Must(t, <-first)
		synctest.Wait()
		sameRows(t, j, []Row{numbered(0), numbered(1)})
		mustClose(t, j)
	})
}

func TestDurableRowsCostNoCommit(t *testing.T) {
	high := Row{Bucket: "b", Peer: "eu", Cell: 3, Lent: 10, Returned: 4, Burst: 7, Generation: 2,
		Until: 50}
	lower := func(change func(*Row)) Row {
		r := high
		change(&r)
		return r
	}
	for _, c := range []struct {
		name    string
		row     Row
		commits uint64
	}{
		{"same", high, 0},
		{"less lent", lower(func(r *Row) { r.Lent = 9 }), 0},
		{"less returned", lower(func(r *Row) { r.Returned = 0 }), 0},
		{"less burst", lower(func(r *Row) { r.Burst = 6 }), 0},
		{"older generation", lower(func(r *Row) { r.Generation = 1 }), 0},
		{"earlier end", lower(func(r *Row) { r.Until = -1 }), 0},
		{"more lent", lower(func(r *Row) { r.Lent = 11 }), 1},
		{"more returned", lower(func(r *Row) { r.Returned = 5 }), 1},
		{"more burst", lower(func(r *Row) { r.Burst = 8 }), 1},
		{"more burst, less of all else",
			lower(func(r *Row) {
				*r = Row{Bucket: r.Bucket, Peer: r.Peer, Cell: r.Cell, Burst: 8}
			}), 1},
		{"newer generation", lower(func(r *Row) { r.Generation = 3 }), 1},
		{"later end", lower(func(r *Row) { r.Until = 51 }), 1},
		{"other cell", lower(func(r *Row) { r.Cell = 4 }), 1},
		{"other peer", lower(func(r *Row) { r.Peer = "ap" }), 1},
		{"other bucket", lower(func(r *Row) { r.Bucket = "c" }), 1},
	} {
		for _, cached := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/cached=%v", c.name, cached), func(t *testing.T) {
				j, path := newJournal(t, unsynced())
				mustRecord(t, j, high)
				if !cached {
					mustClose(t, j)
					j = mustOpen(t, path, unsynced())
				}
				before := j.Stats()
				mustRecord(t, j, c.row)
				after := j.Stats()
				if got := after.Commits - before.Commits; got != c.commits ||
					got != after.Sequence-before.Sequence {
					t.Fatalf("%d commits and sequence %d after %d, want %d commits", got,
						after.Sequence, before.Sequence, c.commits)
				}
				if covered := after.Covered > before.Covered; covered != (cached &&
					c.commits == 0) {
					t.Fatalf("answered from memory: %v", covered)
				}
			})
		}
	}
}

func TestPrunedRowIsRecordedAnew(t *testing.T) {
	j, _ := newJournal(t, unsynced())
	mustRecord(t, j, numbered(0))
	if n := mustPrune(t, j, 11); n != 1 {
		t.Fatalf("Prune = %d", n)
	}
	mustRecord(t, j, numbered(0))
	sameRows(t, j, []Row{numbered(0)})
}

// A loop over the rows may write. bolt's writer waits for readers when the file outgrows its
// mapping, so a reader held open here would wait for itself.
func TestRecordWithinRows(t *testing.T) {
	j, _ := newJournal(t, unsynced())
	var want []Row
	for i := range 2 * rowsPage {
		want = append(want, numbered(i))
	}
	mustRecord(t, j, want...)
	seen := 0
	for r, err := range j.Rows() {
		suite.Must(t, err)
		if seen++; seen%100 == 0 {
			r.Cell, r.Bucket = -1, string(make([]byte, MaxBucketBytes-seen))
			mustRecord(t, j, r)
		}
	}
	if seen != len(want) {
		t.Fatalf("%d rows seen, want %d: those recorded meanwhile sort before", seen, len(want))
	}
	for range j.Rows() {
		break // leaves no transaction open: Close would wait for it
	}
	mustClose(t, j)
}
