package exchange

import (
	"slices"

	"github.com/quotad/quotad/quantity"
)

// MaxDeferred bounds the deferred credits. Credits beyond it are dropped, and the machine asks for
// them again.
const MaxDeferred = 4 * MaxAsks

// minDeferral is the shortest time for which a credit is deferred, in microseconds: a store's time
// may stand still.
const minDeferral = Interval / 4

// deferredCredit is a credit that came too early: our store's clock is behind the peer's store
// clock as it was when the peer gave up the rights.
type deferredCredit struct {
	Credit
	until quantity.NodeTime
}

// deferCredit keeps a credit until our store's clock, which shows s now, reaches the peer's store
// time. Asking again would not help: the peer's clock would be as far ahead as before. In the
// meantime the machine asks other peers for the units. It asks this peer only if use fades.
// deferCredit returns false, and keeps nothing, if there is no room or if the peer's time is after
// the end of the credit's cell.
func (m *Machine) deferCredit(now quantity.NodeTime, v *view, c Credit, s quantity.StoreTime) bool {
	if c.At >= c.Bucket.Cells().Opens(c.Cell+1) || len(m.deferredCredits) == MaxDeferred {
		return false
	}
	until := now.Add(max(c.At.Sub(s), minDeferral))
	if !v.keepsAsking() {
		v.dealing(c.Peer).at(c.Cell).noteRefusal(gain{units: c.Gain, burst: c.GainBurst}, until)
	}
	c.Gain, c.GainBurst = 0, 0
	m.deferredCredits = append(m.deferredCredits, deferredCredit{Credit: c, until: until})
	return true
}

// creditDeferred has our store credit the deferred credits whose time has come.
func (m *Machine) creditDeferred(now quantity.NodeTime) {
	m.deferredCredits = slices.DeleteFunc(m.deferredCredits, func(h deferredCredit) bool {
		if now < h.until {
			return false
		}
		m.out.Credits = append(m.out.Credits, h.Credit)
		return true
	})
}
