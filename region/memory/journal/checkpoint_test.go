package journal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestCheckpointMergeLaws(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		a, b, c := drawCheckpoint.Draw(t, "a"), drawCheckpoint.Draw(t, "b"), drawCheckpoint.Draw(t,
			"c")
		b.Bucket, b.Cell = a.Bucket, a.Cell
		c.Bucket, c.Cell = a.Bucket, a.Cell
		switch {
		case a.merge(b) != b.merge(a):
			t.Fatal("not commutative")
		case a.merge(b).merge(c) != a.merge(b.merge(c)):
			t.Fatal("not associative")
		case a.merge(b).merge(b) != a.merge(b):
			t.Fatal("not idempotent")
		}
	})
}

func TestNewestCheckpointIsKept(t *testing.T) {
	base := Checkpoint{Bucket: "b", Cell: 3, Used: 100, At: 50, Until: 900, Generation: 2}
	with := func(change func(*Checkpoint)) Checkpoint {
		c := base
		change(&c)
		return c
	}
	for _, c := range []struct {
		name        string
		other, want Checkpoint
	}{
		{"later, more", with(func(c *Checkpoint) { c.At, c.Used = 51, 120 }),
			with(func(c *Checkpoint) { c.At, c.Used = 51, 120 })},
		{"later, less: refunded or reset", with(func(c *Checkpoint) { c.At, c.Used = 51, 0 }),
			with(func(c *Checkpoint) { c.At, c.Used = 51, 0 })},
		{"earlier, more: since taken back", with(func(c *Checkpoint) { c.At, c.Used = 49, 120 }),
			base},
		{"same time, more", with(func(c *Checkpoint) { c.Used = 101 }),
			with(func(c *Checkpoint) { c.Used = 101 })},
		{"same time, less", with(func(c *Checkpoint) { c.Used = 99 }), base},
		{"next generation, clock behind",
			with(func(c *Checkpoint) { c.Generation, c.At, c.Used = 3, 10, 7 }),
			with(func(c *Checkpoint) { c.Generation, c.At, c.Used = 3, 10, 7 })},
		{"generation before, clock ahead",
			with(func(c *Checkpoint) { c.Generation, c.At, c.Used = 1, 99, 500 }), base},
		{"newer, ends earlier", with(func(c *Checkpoint) { c.At, c.Until = 51, 800 }),
			with(func(c *Checkpoint) { c.At = 51 })},
		{"older, ends later", with(func(c *Checkpoint) { c.At, c.Until = 49, 1000 }),
			with(func(c *Checkpoint) { c.Until = 1000 })},
	} {
		for order, calls := range map[string][][]Checkpoint{
			"one call":            {{base, c.other}},
			"one call, turned":    {{c.other, base}},
			"two calls":           {{base}, {c.other}},
			"two calls, turned":   {{c.other}, {base}},
			"each of them thrice": {{base, base}, {c.other, c.other, base}, {c.other}},
		} {
			t.Run(c.name+"/"+order, func(t *testing.T) {
				j, _ := newJournal(t, unsynced())
				for _, call := range calls {
					mustCheckpoint(t, j, call...)
				}
				sameCheckpoints(t, j, "b", c.want)
			})
		}
	}
}

func TestCheckpointsShareACommitWithRows(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		j, _ := newJournal(t, g.options())
		seen := Checkpoint{Bucket: "b", Cell: 1, Used: 5, At: 1, Until: 10}
		later := Checkpoint{Bucket: "b", Cell: 2, Used: 6, At: 2, Until: 10}
		results := make(chan error, 4)
		go func() { results <- j.Checkpoint(t.Context(), []Checkpoint{seen}) }()
		<-g.enter
		go func() { results <- j.Checkpoint(t.Context(), []Checkpoint{later}) }()
		go func() { results <- j.Record(t.Context(), []Row{numbered(0)}) }()
		go func() { results <- j.SetWholeSince(7) }()
		synctest.Wait()
		if s := j.Stats(); len(results) != 0 || s.Waiting != 3 || s.Checkpoints != 0 ||
			j.WholeSince() == 7 {
			t.Fatalf("while the first commit runs: %d results, %+v, whole since %d", len(results),
				s, j.WholeSince())
		}
		sameCheckpoints(t, j, "b")
		if rows, err := j.RowsOf("b0", 0, 0); len(rows) != 0 || err != nil {
			t.Fatalf("a row that waits for its commit shows: %v, %v", rows, err)
		}
		g.leave <- struct{}{}
		g.pass()
		for range cap(results) {
			suite.Must(t, <-results)
		}
		if s := j.Stats(); s.Commits != 2 || s.Calls != 4 || s.Checkpoints != 2 || s.Rows != 1 {
			t.Fatalf("stats %+v, want 4 calls in 2 commits", s)
		}
		sameCheckpoints(t, j, "b", seen, later)
		if rows, err := j.RowsOf("b0", 0, 0); !slices.Equal(rows, []Row{numbered(0)}) ||
			err != nil {
			t.Fatalf("RowsOf = %v, %v", rows, err)
		}
		mustClose(t, j)
	})
}

func TestCallerMayReuseCheckpointsAfterCancel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		j, _ := newJournal(t, g.options())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- j.Record(t.Context(), []Row{numbered(0)}) }()
		<-g.enter
		ctx, cancel := context.WithCancel(t.Context())
		given := Checkpoint{Bucket: "given", Used: 1}
		checkpoints := []Checkpoint{given}
		go func() { second <- j.Checkpoint(ctx, checkpoints) }()
		synctest.Wait()
		cancel()
		if err := <-second; err != context.Canceled {
			t.Fatal(err)
		}
		checkpoints[0].Used = 2
		g.leave <- struct{}{}
		g.pass()
		suite.Must(t, <-first)
		synctest.Wait()
		sameCheckpoints(t, j, "given", given)
		mustClose(t, j)
	})
}

func TestCheckpointNamesTheFaultyOne(t *testing.T) {
	long := strings.Repeat("x", MaxBucketBytes+1)
	good := Checkpoint{Bucket: "b", Used: MaxUnits}
	for _, c := range []struct {
		name string
		bad  Checkpoint
		says string
	}{
		{"no bucket", Checkpoint{}, "bucket id has 0 bytes"},
		{"long bucket", Checkpoint{Bucket: long}, "bucket id has 4097 bytes"},
		{"used below", Checkpoint{Bucket: "b", Used: -1}, "used is -1"},
		{"used above", Checkpoint{Bucket: "b", Used: MaxUnits + 1}, "used is 2251799813685249"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, _ := newJournal(t, unsynced())
			err := j.Checkpoint(t.Context(), []Checkpoint{good, c.bad})
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "checkpoint 2 of 2") {
				t.Fatalf("Checkpoint = %v, want ErrInvalid, checkpoint 2 of 2 and %q", err, c.says)
			}
			sameCheckpoints(t, j, "b")
		})
	}
	j, _ := newJournal(t, unsynced())
	if err := j.Checkpoint(t.Context(), make([]Checkpoint, MaxCheckpoints+1)); !errors.Is(err,
		ErrInvalid) {
		t.Fatalf("Checkpoint of %d = %v", MaxCheckpoints+1, err)
	}
}
