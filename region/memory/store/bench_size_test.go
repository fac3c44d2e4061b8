package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
)

// size is a state of a bucket whose memory is measured.
type size struct {
	only
	name  string
	bring func(*stage, bucket)
	less  func(*stage, bucket) // what to take from it, nil: nothing
	by    float64              // what to divide by
}

var sizes = []size{
	{name: "one decision", bring: used(1), by: 1},
	{name: "1000 units singly", bring: used(usual), by: 1},
	{name: "rows of 2 cells", bring: rows(1, false), by: 1},
	{name: "all rows", only: sliding, bring: rows(1, true), by: 1},
	{name: "of an entry", only: logOnly, bring: used(usual), less: used(1), by: usual - 1},
}

// bytes returns what a bucket in a state occupies in the server: its key, hash and entry in the
// keyspace, by Redis' own reckoning, without that of its expiry.
func (st *stage) bytes(kind algorithms.Kind, bring func(*stage, bucket)) float64 {
	on := st.bucket(kind, usual)
	bring(st, on)
	n, err := clientOf(st.Store).MemoryUsage(context.Background(), BucketKey(Whole, on.id),
		0).Result()
	if err != nil {
		st.b.Fatal(err)
	}
	if err := clientOf(st.Store).Del(context.Background(),
		BucketKey(Whole, on.id)).Err(); err != nil {
		st.b.Fatal(err)
	}
	return float64(n)
}

// size measures the memory of a bucket of one algorithm.
func (st *stage) size(b *testing.B, s size, kind algorithms.Kind) string {
	var all []float64
	for b.Loop() {
		n := st.bytes(kind, s.bring)
		if s.less != nil {
			n -= st.bytes(kind, s.less)
		}
		all = append(all, n/s.by)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(all), "bytes/bucket")
	return fmt.Sprintf("%.4g", median(all))
}
