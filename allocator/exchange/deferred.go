package exchange

import "slices"

// MaxDeferred bounds the deferred credits. Beyond it they are dropped, and asked for again.
const MaxDeferred = 4 * MaxAsks

// minDeferral is how long a credit is kept at least: a store's time may stand still.
const minDeferral = Interval / 4

// deferredCredit is a credit that came too early: our store's clock is behind where the peer's was
// when the peer gave the rights up.
type deferredCredit struct {
	Credit
	until int64
}

// deferCredit keeps a credit until our store's clock, at s now, has come to where the peer's was;
// if we asked again, the peer would be as early again. Until then others are asked for what it
// brings. This peer is not, unless use fades. It returns false, and keeps nothing, if there is no
// room, or if the peer's time is beyond the cell that the credit is for.
func (m *Machine) deferCredit(now int64, v *view, c Credit, s int64) bool {
	if c.At >= (c.Cell+1)*c.Bucket.Cell || len(m.deferredCredits) == MaxDeferred {
		return false
	}
	until := now + max(c.At-s, minDeferral)
	if !v.keepsAsking() {
		v.dealing(c.Peer).at(c.Cell).noteRefusal(gain{units: c.Gain, burst: c.GainBurst}, until)
	}
	c.Gain, c.GainBurst = 0, 0
	m.deferredCredits = append(m.deferredCredits, deferredCredit{Credit: c, until: until})
	return true
}

// creditDeferred has our store credit what is not too early any more.
func (m *Machine) creditDeferred(now int64) {
	m.deferredCredits = slices.DeleteFunc(m.deferredCredits, func(h deferredCredit) bool {
		if now < h.until {
			return false
		}
		m.out.Credits = append(m.out.Credits, h.Credit)
		return true
	})
}
