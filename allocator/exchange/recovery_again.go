package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// lostAgain makes the store restore a bucket once more if the bucket was deleted after it was
// restored, and no node had recorded that it was there. Its recovery still goes on, because not
// everything is known.
func (m *Machine) lostAgain(now quantity.NodeTime, l LostBucket, at quantity.StoreTime) {
	r := m.recoveries[l.Bucket.ID]
	if r == nil || !r.restored || r.awaitingStore || r.lostAt != l.At || at <= r.restoredAt {
		return
	}
	m.stats.PartlyKnown--
	r.restored, r.knownPeers, r.useKnown = false, 0, false
	m.restoreIfKnown(now, r)
}

// recoverDoubted goes on with the recovery of a bucket that the store has restored without knowing
// what some peers were lent or some nodes used. The node that restored it may be gone. Such
// recoveries take at most half of the room, so that buckets for which requests wait have the rest.
func (m *Machine) recoverDoubted(now quantity.NodeTime, b *Bucket, s algorithms.State) {
	if len(m.recoveries) >= MaxBuckets/2 {
		return
	}
	if r := m.newRecovery(now, LostBucket{Bucket: b, At: s.Doubt}); r != nil {
		r.restored, r.useKnown = true, s.Shut == 0
		m.stats.PartlyKnown++
		m.beginRecoveries(now, []*recovery{r})
	}
}
