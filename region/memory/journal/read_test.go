package journal

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// TestRowsOfAreThoseOfTheBucketAndCells compares RowsOf, which seeks, with a filter of all rows,
// over trees of several pages with cells that are full, thin or empty.
func TestRowsOfAreThoseOfTheBucketAndCells(t *testing.T) {
	suite.Check(t, func(rt *rapid.T) {
		j, _ := newJournal(t, unsynced())
		drawNear := rapid.OneOf(rapid.Int64Range(-30, 30), rapid.Int64Range(900, 1100))
		var rows []Row
		for range rapid.IntRange(0, 200).Draw(rt, "rows") {
			rows = append(rows, Row{
				Bucket: strings.Repeat(rapid.SampledFrom([]string{"a", "b", "\xff"}).Draw(rt,
					"letter"), rapid.SampledFrom([]int{1, 2, 300}).Draw(rt, "bytes")),
				Peer: rapid.SampledFrom([]string{"ap", "eu"}).Draw(rt, "peer"),
				Cell: quantity.Cell(drawNear.Draw(rt, "cell")), Lent: 1,
			})
		}
		mustRecord(t, j, rows...)
		for range 5 {
			bucket := strings.Repeat(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "letter"),
				rapid.SampledFrom([]int{1, 2, 300}).Draw(rt, "bytes"))
			from := quantity.Cell(drawNear.Draw(rt, "from"))
			to := from + quantity.Cell(rapid.Int64Range(0, MaxCells-1).Draw(rt, "more"))
			got, err := j.RowsOf(bucket, from, to)
			if err != nil {
				rt.Fatal(err)
			}
			want := slices.DeleteFunc(allRows(rt, j.Rows()),
				func(r Row) bool { return r.Bucket != bucket || r.Cell < from || r.Cell > to })
			if !slices.Equal(got, want) {
				rt.Fatalf("RowsOf(%.9q, %d, %d) is\n%v, want\n%v", bucket, from, to, got, want)
			}
		}
		if err := j.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestQuestionsLeaveOtherBucketsAlone damages every record except those of one bucket, in the open
// file. Reads of that bucket do not notice, as they would if they read more than that bucket. Any
// other read fails the journal.
func TestQuestionsLeaveOtherBucketsAlone(t *testing.T) {
	for other, ask := range map[string]func(j *Journal) error{
		"RowsOf":      func(j *Journal) error { _, err := j.RowsOf("a", 0, 9); return err },
		"Checkpoints": func(j *Journal) error { _, err := j.Checkpoints("a"); return err },
	} {
		t.Run(other, func(t *testing.T) {
			j, _ := newJournal(t, unsynced())
			var rows []Row
			var checkpoints []Checkpoint
			for cell := range quantity.Cell(10) {
				for _, bucket := range []string{"a", "b", "c", "bb", "b\x00"} {
					rows = append(rows, Row{Bucket: bucket, Peer: "eu", Cell: cell, Lent: 1})
					checkpoints = append(checkpoints, Checkpoint{Bucket: bucket, Cell: cell,
						Used: 1})
				}
			}
			mustRecord(t, j, rows...)
			mustCheckpoint(t, j, checkpoints...)
			spoil(t, j, "b")
			rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Bucket != "b" })
			if got, err := j.RowsOf("b", 0, 9); !slices.Equal(got, rows) || err != nil {
				t.Fatalf("RowsOf = %v, %v", got, err)
			}
			checkpoints = slices.DeleteFunc(checkpoints,
				func(c Checkpoint) bool { return c.Bucket != "b" })
			sameCheckpoints(t, j, "b", checkpoints...)
			if err := ask(j); !errors.Is(err, ErrFailed) {
				t.Fatalf("%s of a spoilt bucket = %v", other, err)
			}
			if err := j.Checkpoint(t.Context(), nil); !errors.Is(err, ErrFailed) {
				t.Fatalf("a journal that could not be read takes more: %v", err)
			}
		})
	}
}

// spoil breaks the seals of all rows and checkpoints but one bucket's.
func spoil(t *testing.T, j *Journal, but string) {
	t.Helper()
	err := j.disk.(*file).db.Update(func(tx *bolt.Tx) error {
		for name, of := range map[string]func(key []byte) (string, error){
			string(disk.Rows): func(key []byte) (string, error) {
				id, err := decodeRowKey(key)
				return id.bucket, err
			},
			string(disk.Checkpoints): func(key []byte) (string, error) {
				id, err := decodeCheckpointKey(key)
				return id.bucket, err
			},
		} {
			b := tx.Bucket([]byte(name))
			var keys [][]byte
			err := b.ForEach(func(key, _ []byte) error {
				keys = append(keys, bytes.Clone(key))
				return nil
			})
			for _, key := range keys {
				bucket, e := of(key)
				if err = errors.Join(err, e); bucket != but {
					err = errors.Join(err, b.Put(key, []byte("spoilt")))
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	suite.Must(t, err)
}

func TestQuestionsOutOfRangeAreRefused(t *testing.T) {
	file, _ := newJournal(t, unsynced())
	long := strings.Repeat("x", MaxBucketBytes+1)
	wrapping := strings.Repeat("x", 1<<16+1) // of length 1 in the two bytes of a key
	for name, j := range map[string]*Journal{"file": file, "memory": newDirect(t, lab.NewDisk())} {
		for _, c := range []struct {
			bucket   string
			from, to quantity.Cell
			ok       bool
		}{
			{"b", 5, 5, true},
			{"b", 0, MaxCells - 1, true},
			{"b", math.MinInt64, math.MinInt64 + MaxCells - 1, true},
			{"b", math.MaxInt64 - MaxCells + 1, math.MaxInt64, true},
			{long[1:], 0, 0, true},
			{"b", 0, MaxCells, false},
			{"b", 1, 0, false},
			{"b", math.MinInt64, math.MaxInt64, false},
			{"b", math.MaxInt64, math.MinInt64, false},
			{"", 0, 0, false},
			{long, 0, 0, false},
			{wrapping, 0, 0, false},
		} {
			if _, err := j.RowsOf(c.bucket, c.from, c.to); c.ok != (err == nil) ||
				!c.ok && !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: RowsOf(%.9q, %d, %d) = %v", name, c.bucket, c.from, c.to, err)
			}
		}
		for bucket, ok := range map[string]bool{"b": true, long[1:]: true, "": false, long: false,
			wrapping: false} {
			if _, err := j.Checkpoints(bucket); ok != (err == nil) ||
				!ok && !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: Checkpoints of %d bytes = %v", name, len(bucket), err)
			}
		}
	}
}

func TestWholeSinceIsSetByNobodyElse(t *testing.T) {
	j, path := newJournal(t, unsynced())
	if got := j.WholeSince(); got != math.MaxInt64 {
		t.Fatalf("a new journal is whole since %d, want not known", got)
	}
	for _, since := range []quantity.StoreTime{1_700_000_000_000_000, 0, 5} {
		suite.Must(t, j.SetWholeSince(since))
		mustRecord(t, j, kept)
		mustCheckpoint(t, j, Checkpoint{Bucket: "b", At: since})
		if _, _, err := j.Prune(math.MaxInt64); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
		j = mustOpen(t, path, unsynced())
		if got := j.WholeSince(); got != since {
			t.Fatalf("whole since %d after opening anew, want %d", got, since)
		}
	}
	err := j.SetWholeSince(-1)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "-1 is before 1970") ||
		j.WholeSince() != 5 {
		t.Fatalf("SetWholeSince(-1) = %v, then whole since %d", err, j.WholeSince())
	}
}
