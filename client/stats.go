package client

import "sync/atomic"

// Stats are running totals since a client began, all but Holding. Units that were taken are
// admitted, returned or lost, once the client holds them no more.
type Stats struct {
	Asked    int64 // calls of Check, also those that Allow made
	Taken    int64 // units that nodes gave
	Admitted int64 // of these, units that requests were admitted from
	Returned int64 // and units given back
	// Lost are units that were neither admitted nor returned. The call failed, and unless the node
	// did it all the same, they count as used until their windows end; or these had ended.
	Lost       int64
	Denied     int64 // units denied from memory, as far as that was reported or failed to be
	Unreported int64 // units admitted or denied from memory that no node was told of
	Exact      int64 // calls for units that met an exact limit
	Failed     int64 // other calls for units, or to give them back, that failed
	Batches    int64 // calls in which several requests went together
	Batched    int64 // and the requests of these calls
	// Unreachable is calls of Check and Allow for which no node could be asked. Of these so many
	// were allowed and denied by Options.OnUnreachable; all others were errors.
	Unreachable, UnreachableAllowed, UnreachableDenied int64

	Crowded int64 // times that a bucket found MaxHolders others in its place
	Holding int   // buckets that hold units, or denials to report
}

type counters struct {
	asked, taken, admitted, returned, lost, denied, unreported, exact, failed, crowded atomic.Int64
	batches, batched, unreachable, allowedAlone, deniedAlone                           atomic.Int64
}

// Stats returns what the client did so far.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	holding := len(c.holders)
	c.mu.Unlock()
	n := &c.counters
	return Stats{Asked: n.asked.Load(), Taken: n.taken.Load(), Admitted: n.admitted.Load(),
		Returned: n.returned.Load(), Lost: n.lost.Load(), Denied: n.denied.Load(),
		Unreported: n.unreported.Load(), Exact: n.exact.Load(), Failed: n.failed.Load(),
		Batches: n.batches.Load(), Batched: n.batched.Load(),
		Unreachable: n.unreachable.Load(), UnreachableAllowed: n.allowedAlone.Load(),
		UnreachableDenied: n.deniedAlone.Load(), Crowded: n.crowded.Load(), Holding: holding}
}
