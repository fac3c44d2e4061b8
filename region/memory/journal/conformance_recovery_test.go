package journal

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"pgregory.net/rapid"
)

var drawCheckpoint = rapid.Custom(func(t *rapid.T) Checkpoint {
	return Checkpoint{
		Bucket: drawBucket.Draw(t, "bucket"),
		Cell:   quantity.Cell(drawCell.Draw(t, "cell")),
		Used:   quantity.Units(drawUnits.Draw(t, "used")),
		At: quantity.StoreTime(rapid.SampledFrom([]int64{math.MinInt64, 0, 1, 2,
			math.MaxInt64}).Draw(t, "at")),
		Until:      quantity.StoreTime(drawUntil.Draw(t, "until")),
		Generation: drawGeneration.Draw(t, "generation"),
	}
})

func (w *twin) checkpoint(checkpoints []Checkpoint) {
	for _, c := range checkpoints {
		old, known := w.checkpoints[c.id()]
		until := c.Until
		if known {
			until = max(until, old.Until)
			newer := c.Generation > old.Generation ||
				c.Generation == old.Generation && (c.At > old.At || c.At == old.At &&
					c.Used > old.Used)
			if !newer {
				c = old
			}
		}
		c.Until = until
		w.checkpoints[c.id()] = c
	}
}

// drawSeen draws times that the shards of a store have shown, of how many ever.
var drawSeen = rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 40),
	func(at int64) quantity.StoreTime { return quantity.StoreTime(at) }), 0, 3)

// show is what the shards of a store have shown. If there are as many as before, each has its own
// time, else what all had shown is all that is known of each.
func (w *twin) show(seen []quantity.StoreTime) {
	if len(seen) == 0 {
		return
	}
	before := w.seen
	if len(before) != len(seen) {
		before = slices.Repeat([]quantity.StoreTime{slices.Min(before)}, len(seen))
	}
	w.seen = slices.Clone(seen)
	for i, at := range before {
		w.seen[i] = max(w.seen[i], at)
	}
}

// recoverySteps are the steps of conform that concern what recovery reads.
func (w *twin) recoverySteps(s subject) map[string]func(*rapid.T) {
	ctx := context.Background()
	return map[string]func(*rapid.T){
		"checkpoint": func(t *rapid.T) {
			checkpoints := rapid.SliceOfN(drawCheckpoint, 0, 5).Draw(t, "checkpoints")
			seen := drawSeen.Draw(t, "seen")
			suite.Must(t, s.journal().Checkpoint(ctx, checkpoints, seen...))
			before := maps.Clone(w.checkpoints)
			w.checkpoint(checkpoints)
			if !maps.Equal(w.checkpoints, before) {
				w.show(seen)
			}
		},
		"checkpoint again": func(t *rapid.T) {
			before := s.journal().Sequence()
			suite.Must(t, s.journal().Checkpoint(ctx,
				slices.Collect(maps.Values(w.checkpoints))))
			if after := s.journal().Sequence(); after != before {
				t.Fatalf("durable checkpoints raised the sequence from %d to %d", before, after)
			}
		},
		"checkpoint cancelled": func(t *rapid.T) {
			cancelled, cancel := context.WithCancel(ctx)
			cancel()
			if err := s.journal().Checkpoint(cancelled,
				[]Checkpoint{drawCheckpoint.Draw(t, "checkpoint")}); err != context.Canceled {
				t.Fatalf("Checkpoint with a cancelled context = %v", err)
			}
		},
		"checkpoint invalid": func(t *rapid.T) {
			bad := drawCheckpoint.Draw(t, "checkpoint")
			bad.Used = quantity.Units(rapid.SampledFrom([]int64{-1, MaxUnits + 1}).Draw(t, "used"))
			if err := s.journal().Checkpoint(ctx, []Checkpoint{drawCheckpoint.Draw(t, "checkpoint"),
				bad}); !errors.Is(err, ErrInvalid) {
				t.Fatalf("Checkpoint of an invalid one = %v", err)
			}
		},
		"checkpoint failing": func(t *rapid.T) {
			s.failNext(errDisk)
			fresh := Checkpoint{Bucket: "never seen"}
			if err := s.journal().Checkpoint(ctx, []Checkpoint{fresh}); !errors.Is(err,
				ErrFailed) || !errors.Is(err, errDisk) {
				t.Fatalf("Checkpoint on a failing disk = %v", err)
			}
			s.failNext(nil)
			refuses(t, s.journal(), errDisk)
			s.crash()
			w.incarnation++
		},
		"whole since": func(t *rapid.T) {
			since := quantity.StoreTime(rapid.SampledFrom([]int64{0, 1, 17, math.MaxInt64, -1,
				math.MinInt64}).Draw(t, "since"))
			if err := s.journal().SetWholeSince(since); since < 0 != errors.Is(err, ErrInvalid) ||
				since >= 0 && err != nil {
				t.Fatalf("SetWholeSince(%d) = %v", since, err)
			}
			if since >= 0 {
				w.wholeSince = since
			}
		},
		"store time": func(t *rapid.T) {
			latest, seen := quantity.StoreTime(rapid.Int64Range(0, 40).Draw(t, "latest")),
				drawSeen.Draw(t, "seen")
			if err := s.journal().SetStoreTime(latest, seen...); err != nil {
				t.Fatalf("SetStoreTime(%d, %d) = %v", latest, seen, err)
			}
			w.latest = max(w.latest, latest)
			w.show(seen)
		},
		"rows of": func(t *rapid.T) { w.compareRowsOf(t, s.journal()) },
	}
}

func (w *twin) compareRowsOf(t *rapid.T, j *Journal) {
	bucket := drawBucket.Draw(t, "bucket")
	from := quantity.Cell(rapid.SampledFrom([]int64{math.MinInt64, -MaxCells, -1, 0, 1,
		math.MaxInt64 - MaxCells + 1, math.MaxInt64}).Draw(t, "from"))
	more := quantity.Cell(rapid.SampledFrom([]int64{0, 1, 2, MaxCells - 1, MaxCells, math.MaxInt64,
		-1}).Draw(t, "more"))
	to := from + more // which may wrap around
	got, err := j.RowsOf(bucket, from, to)
	if to < from || more < 0 || more >= MaxCells {
		if !errors.Is(err, ErrInvalid) {
			t.Fatalf("RowsOf(%d, %d) = %v", from, to, err)
		}
		return
	}
	suite.Must(t, err)
	want := slices.DeleteFunc(allRows(t, j.Rows()), func(r Row) bool {
		return r.Bucket != bucket || r.Cell < from || r.Cell > to
	})
	if !slices.Equal(got, want) {
		t.Fatalf("RowsOf(%.20q, %d, %d) is\n%v, want\n%v", bucket, from, to, got, want)
	}
}

func (w *twin) compareCheckpoints(t *rapid.T, j *Journal) {
	for _, bucket := range someBuckets {
		got, err := j.Checkpoints(bucket)
		suite.Must(t, err)
		var want []Checkpoint
		for id, c := range w.checkpoints {
			if id.bucket == bucket {
				want = append(want, c)
			}
		}
		slices.SortFunc(want, func(a, b Checkpoint) int { return a.id().compare(b.id()) })
		if !slices.Equal(got, want) {
			t.Fatalf("checkpoints of %.20q are\n%v, want\n%v", bucket, got, want)
		}
	}
	var paged []Checkpoint
	for from, more := "", true; more; more = from != "" {
		page, next, err := j.CheckpointsFrom(from, 2)
		if err != nil || len(page) > 2 {
			t.Fatalf("a page of %d checkpoints: %v", len(page), err)
		}
		paged, from = append(paged, page...), next
	}
	var all []Checkpoint
	for _, c := range w.checkpoints {
		all = append(all, c)
	}
	byID := func(a, b Checkpoint) int { return a.id().compare(b.id()) }
	slices.SortFunc(all, byID)
	slices.SortFunc(paged, byID)
	if !slices.Equal(paged, all) {
		t.Fatalf("the pages of checkpoints are\n%v, want\n%v", paged, all)
	}
	if got := j.WholeSince(); got != w.wholeSince {
		t.Fatalf("whole since %d, want %d", got, w.wholeSince)
	}
	if seen, latest := j.StoreTime(); !slices.Equal(seen, w.seen) || latest != w.latest {
		t.Fatalf("store time %d to %d, want %d to %d", seen, latest, w.seen, w.latest)
	}
}
