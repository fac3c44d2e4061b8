package rights

import "github.com/quotad/quotad/allocator/exchange"

// setDegraded keeps which regions this node is degraded towards, for decisions, and logs each
// change.
func (s *Stepper) setDegraded(ages []exchange.PeerAge) {
	old := *s.degraded.Load()
	var changed bool
	for _, a := range ages {
		changed = changed || old[a.Peer] != a.Degraded
	}
	if !changed && len(old) == len(ages) {
		return
	}
	now := make(map[string]bool, len(ages))
	for _, a := range ages {
		now[a.Peer] = a.Degraded
		if was, known := old[a.Peer]; known && was != a.Degraded {
			if a.Degraded {
				s.config.Log.Warn("a region does not answer: limits keep to the fixed split and to what was lent before",
					"region", a.Peer)
			} else {
				s.config.Log.Info("a region answers again", "region", a.Peer)
			}
		}
	}
	s.degraded.Store(&now)
}

// DegradedTowards reports whether a region has not answered this node lately.
func (e *Engine) DegradedTowards(region string) bool { return (*e.degraded.Load())[region] }

// Degraded reports whether this node is degraded towards any region that has a part of the bucket.
func (e *Engine) Degraded(b *exchange.Bucket) bool {
	for region, degraded := range *e.degraded.Load() {
		if degraded && b.Entitlements[region] > 0 {
			return true
		}
	}
	return false
}
