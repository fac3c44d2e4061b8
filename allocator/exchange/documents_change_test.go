//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// asks has a peer ask for 10 units of a bucket.
func asks(b *Bucket, now quantity.NodeTime, agreed uint64) Asked {
	return Asked{ID: 5, Message: Message{From: "eu", Generation: 9, Asks: []Ask{{Bucket: b.ID, Agreed: agreed,
		Cell: algorithms.CellAt(quantity.StoreTime(now), b.Cell), Lent: 10}}}, Buckets: []*Bucket{b}}
}

func opened(generation uint64) TenureChanged {
	return TenureChanged{Generation: generation, Epoch: "2-test", Peers: []string{"eu", "ap"}}
}

// TestAReplyUnderWayOutlastsADocument: while a lender's store debits, other documents are opened.
// The reply leaves all the same. It does not if another generation began.
func TestAReplyUnderWayOutlastsADocument(t *testing.T) {
	for generation, want := range map[uint64]int{7: 1, 8: 0} {
		b, m, now := long(allocator.Second)
		if out := m.Step(now, asks(b, now, b.Agreed)); len(out.Lend) != 1 {
			t.Fatalf("%+v", out)
		}
		m.Step(now, opened(generation))
		given := algorithms.Given{Head: algorithms.Head{Status: algorithms.StatusOK, Now: quantity.StoreTime(now)}}
		out := m.Step(now, Lent{ID: 5, Given: []algorithms.Given{given}})
		if len(out.Replies) != want {
			t.Errorf("generation %d: %d replies, want %d", generation, len(out.Replies), want)
		}
	}
}

// TestWhatADocumentRefusesIsTriedSoon: an ask that meets documents which have just been opened may
// come again soon, whether the lender or its store noticed. One under other terms, and one that the
// store refuses for another reason, may not.
func TestWhatADocumentRefusesIsTriedSoon(t *testing.T) {
	b, m, now := long(allocator.Second)
	refused := func(status algorithms.Status) int64 {
		m.Step(now, asks(b, now, b.Agreed))
		given := algorithms.Given{Head: algorithms.Head{Status: status, Now: quantity.StoreTime(now)}}
		return m.Step(now, Lent{ID: 5, Given: []algorithms.Given{given}}).Replies[0].Reply.Grants[0].Retry
	}
	if got := refused(algorithms.StatusUnknown); got != soon {
		t.Errorf("by a store under other documents: %d µs", got)
	}
	if got := refused(algorithms.StatusFinished); got != allocator.MaxRetry {
		t.Errorf("by a store whose cell is over: %d µs", got)
	}
	m.Step(now, opened(7))
	retry := func(agreed uint64) int64 {
		return m.Step(now, asks(b, now, agreed)).Replies[0].Reply.Grants[0].Retry
	}
	if got := retry(b.Agreed); got != soon {
		t.Errorf("terms looked up before: %d µs", got)
	}
	if got := retry(b.Agreed + 1); got != allocator.MaxRetry {
		t.Errorf("other terms: %d µs", got)
	}
}
