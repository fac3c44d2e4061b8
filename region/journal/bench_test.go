package journal

import (
	"fmt"
	"testing"
)

// What a call of Checkpoint with 100 checkpoints costs beside one of Record with
// 100 rows. Each call renews all of them, with its fsync.

const benchRecords = 100

func benchBucket(i int) string { return fmt.Sprintf("api/account-day/account-%09d", i) }

func BenchmarkRecord100(b *testing.B) {
	j, _ := newJournal(b, us1)
	rows := make([]Row, benchRecords)
	for i := range rows {
		rows[i] = Row{Bucket: benchBucket(i), Peer: "eu-west", Cell: 19_000, Generation: 1, Until: 1 << 50}
	}
	for b.Loop() {
		for i := range rows {
			rows[i].Lent++
		}
		mustRecord(b, j, rows...)
	}
}

func BenchmarkCheckpoint100(b *testing.B) {
	j, _ := newJournal(b, us1)
	checkpoints := make([]Checkpoint, benchRecords)
	for i := range checkpoints {
		checkpoints[i] = Checkpoint{Bucket: benchBucket(i), Cell: 19_000, Generation: 1, Until: 1 << 50}
	}
	for b.Loop() {
		for i := range checkpoints {
			checkpoints[i].Used++
			checkpoints[i].At += 1_000_000
		}
		mustCheckpoint(b, j, checkpoints...)
	}
}

// The questions of recovery, on journals of more and more buckets: the cost of
// one must not grow with them but for the depth of the tree.
func BenchmarkQuestions(b *testing.B) {
	for _, buckets := range []int{100, 10_000} {
		j, _ := newJournal(b, unsynced())
		for i := range buckets {
			rows := make([]Row, 10)
			checkpoints := make([]Checkpoint, len(rows))
			for cell := range rows {
				rows[cell] = Row{Bucket: benchBucket(i), Peer: "eu-west", Cell: int64(cell)}
				checkpoints[cell] = Checkpoint{Bucket: benchBucket(i), Cell: int64(cell)}
			}
			mustRecord(b, j, rows...)
			mustCheckpoint(b, j, checkpoints...)
		}
		b.Run(fmt.Sprintf("RowsOf/buckets=%d", buckets), func(b *testing.B) {
			for b.Loop() {
				if rows, err := j.RowsOf(benchBucket(7), 0, MaxCells-1); len(rows) != 10 || err != nil {
					b.Fatal(len(rows), err)
				}
			}
		})
		b.Run(fmt.Sprintf("Checkpoints/buckets=%d", buckets), func(b *testing.B) {
			for b.Loop() {
				if checkpoints, err := j.Checkpoints(benchBucket(7)); len(checkpoints) != 10 || err != nil {
					b.Fatal(len(checkpoints), err)
				}
			}
		})
	}
}
