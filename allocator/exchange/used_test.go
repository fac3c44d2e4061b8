//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// afterALoss plays a region of one node without peers, whose store has lost a bucket of a kind. It
// returns what follows from the node's own testimony, at once and in the minute after.
func afterALoss(kind algorithms.Kind, recovered bool, word func(lostAt quantity.StoreTime,
	b *Bucket) Testimony) (all Effects) {
	const hour int64 = 3600 * allocator.Second
	b := &Bucket{ID: "b", Epoch: "1", Kind: kind, Limit: 100, Window: hour,
		Cell: algorithms.CellLength(kind, hour), Tick: 1,
		Entitlements: map[string]quantity.Units{"us": 100}, Borrowing: -1, Recovered: recovered}
	m, now := New("us", "n1", Options{}), quantity.NodeTime(100*hour+hour/2)
	m.Step(1, TenureChanged{Generation: 2, Epoch: "1"})
	add := func(e Effects) {
		all.Restores, all.Settled = append(all.Restores, e.Restores...), append(all.Settled,
			e.Settled...)
	}
	out := m.Step(now, Lost{Generation: 2, Now: quantity.StoreTime(now),
		Buckets: []LostBucket{{Bucket: b, At: quantity.StoreTime(now)}}})
	for _, c := range out.Consults {
		add(m.Step(now, Consulted{Consult: c, All: []Testimony{word(quantity.StoreTime(now), b)}}))
	}
	for range 600 {
		now += Interval
		add(m.Step(now, Tick{Jitter: allocator.PPM}))
	}
	return all
}

// TestUseIsKnownFromItsBeginning: a node's testimony is all that it used if it reaches back to the
// first moment whose use may still count, or to when the bucket was last seen. If it begins a microsecond later, as
// many units count as used as any region can have had.
func TestUseIsKnownFromItsBeginning(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		for _, late := range []quantity.Units{0, 1} {
			out := afterALoss(kind, true, func(lostAt quantity.StoreTime, b *Bucket) Testimony {
				since := quantity.StoreTime(int64(max(b.Terms("us").CountsSince(lostAt), 0)) +
					int64(late))
				return Testimony{Bucket: "b", UseSince: since,
					Use: algorithms.Use{Cell: quantity.Cell(int64(lostAt) / b.Cell), Units: 10,
						At: since - 1}}
			})
			if len(out.Restores) == 0 || out.Restores[0].Most != 100*late ||
				out.Restores[0].Use.Units != 10 {
				t.Errorf("%s, known from %d µs after the beginning: %+v", kind, late, out.Restores)
			}
		}
	}
}

// TestAUsedBucketStaysClosed: a bucket that is not worth recovering opens if its nodes know that
// none of them used it or lent of it. A bucket that was used or lent of, or may have been, stays
// closed, and requests that wait for it are told so.
func TestAUsedBucketStaysClosed(t *testing.T) {
	const hour int64 = 3600 * allocator.Second
	for name, tc := range map[string]struct {
		word  Testimony
		opens bool
	}{
		"nobody used it": {word: Testimony{}, opens: true},
		"it was used": {word: Testimony{Use: algorithms.Use{Cell: 100, Units: 1,
			At: 1}}},
		"it was lent of": {word: Testimony{Rows: []algorithms.RememberedRow{{Peer: "eu", Cell: 100,
			Lent: 1}}}},
		"the memory of use begins late": {word: Testimony{UseSince: quantity.StoreTime(101 *
			hour)}},
		"the journal of rows begins late": {word: Testimony{WholeSince: quantity.StoreTime(101 *
			hour)}},
	} {
		out := afterALoss(algorithms.FixedWindow, false,
			func(quantity.StoreTime, *Bucket) Testimony {
				tc.word.Bucket = "b"
				return tc.word
			})
		if opens := len(out.Restores) > 0; opens != tc.opens || !opens && (len(out.Settled) != 1 ||
			out.Settled[0].RetryHelps) {
			t.Errorf("%s: %+v, %+v", name, out.Restores, out.Settled)
		}
	}
}
