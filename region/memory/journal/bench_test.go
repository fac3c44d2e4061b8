package journal

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/quantity"
)

// The cost of a call of Checkpoint with 100 checkpoints, compared with a call of Record with 100
// rows. Each call renews all of them, with its fsync.

const benchRecords = 100

func benchBucket(i int) string { return fmt.Sprintf("api/account-day/account-%09d", i) }

func BenchmarkRecord100(b *testing.B) {
	j, _ := newJournal(b, us1)
	rows := make([]Row, benchRecords)
	for i := range rows {
		rows[i] = Row{Bucket: benchBucket(i), Peer: "eu-west", Cell: 19_000, Generation: 1,
			Until: 1 << 50}
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
		checkpoints[i] = Checkpoint{Bucket: benchBucket(i), Cell: 19_000, Generation: 1,
			Until: 1 << 50}
	}
	for b.Loop() {
		for i := range checkpoints {
			checkpoints[i].Used++
			checkpoints[i].At += 1_000_000
		}
		mustCheckpoint(b, j, checkpoints...)
	}
}

// The reads of recovery, on journals of more and more buckets. The cost of one must not grow with
// their number, except for the depth of the tree.
func BenchmarkQuestions(b *testing.B) {
	for _, buckets := range []int{100, 10_000} {
		j, _ := newJournal(b, unsynced())
		for i := range buckets {
			rows := make([]Row, 10)
			checkpoints := make([]Checkpoint, len(rows))
			for cell := range rows {
				rows[cell] = Row{Bucket: benchBucket(i), Peer: "eu-west", Cell: quantity.Cell(cell)}
				checkpoints[cell] = Checkpoint{Bucket: benchBucket(i), Cell: quantity.Cell(cell)}
			}
			mustRecord(b, j, rows...)
			mustCheckpoint(b, j, checkpoints...)
		}
		b.Run(fmt.Sprintf("RowsOf/buckets=%d", buckets), func(b *testing.B) {
			for b.Loop() {
				if rows, err := j.RowsOf(benchBucket(7), 0, MaxCells-1); len(rows) != 10 ||
					err != nil {
					b.Fatal(len(rows), err)
				}
			}
		})
		b.Run(fmt.Sprintf("Checkpoints/buckets=%d", buckets), func(b *testing.B) {
			for b.Loop() {
				if checkpoints, err := j.Checkpoints(benchBucket(7)); len(checkpoints) != 10 ||
					err != nil {
					b.Fatal(len(checkpoints), err)
				}
			}
		})
	}
}

// The cost of a call of Prune that removes 100 records, and of one with nothing to remove, beside
// 1000 records that stay.
func BenchmarkPrune(b *testing.B) {
	for _, each := range []int{0, benchRecords} {
		b.Run(fmt.Sprint(each), func(b *testing.B) {
			j, _ := newJournal(b, unsynced())
			stay := make([]Row, 1000)
			for i := range stay {
				stay[i] = Row{Bucket: benchBucket(i), Peer: "eu-west", Cell: 19_000, Until: 1 << 50}
			}
			mustRecord(b, j, stay...)
			rows := make([]Row, each)
			for b.Loop() {
				for i := range rows {
					rows[i] = Row{Bucket: benchBucket(i), Peer: "eu-west", Cell: 1, Generation: 1,
						Until: 1}
				}
				mustRecord(b, j, rows...)
				if n := mustPrune(b, j, 2); n != each {
					b.Fatal(n)
				}
			}
		})
	}
}

// The cost of a call of Record without its fsync: processor time only.
func BenchmarkRecord100Unsynced(b *testing.B) {
	j, _ := newJournal(b, unsynced())
	rows := make([]Row, benchRecords)
	for i := range rows {
		rows[i] = Row{Bucket: benchBucket(i), Peer: "eu-west", Cell: 19_000, Generation: 1,
			Until: 1 << 50}
	}
	for b.Loop() {
		for i := range rows {
			rows[i].Lent++
		}
		mustRecord(b, j, rows...)
	}
}

// A call of Record with one row, in a journal of many rows, as most calls are.
func BenchmarkRecord1Unsynced(b *testing.B) {
	j, _ := newJournal(b, unsynced())
	for i := range 100 {
		rows := make([]Row, benchRecords)
		for k := range rows {
			rows[k] = Row{Bucket: benchBucket(i*benchRecords + k), Peer: "eu-west", Cell: 19_000,
				Until: 1 << 50}
		}
		mustRecord(b, j, rows...)
	}
	r := Row{Bucket: benchBucket(7), Peer: "eu-west", Cell: 19_000, Until: 1 << 50}
	for b.Loop() {
		r.Lent++
		mustRecord(b, j, r)
	}
}
