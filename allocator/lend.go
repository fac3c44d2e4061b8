package allocator

// Kept returns how many units of a cell, beyond those counted, a region keeps when a peer asks: what its floor, the
// lesser of entitlement and expected use, still lacks; at least its demand over grace (a round trip and a tick: the
// time in which it could ask for them back); and a reserve of at most a twentieth of its entitlement for what hints
// say that regions other than the asker want.
func Kept(o Outlook, counted, entitlement, grace, othersWant int64) int64 {
	kept := max(min(entitlement, o.Total())-counted, 0)
	if !o.Steady {
		kept = max(kept, o.Until(grace)-counted)
	}
	return kept + min(entitlement/20, max(othersWant, 0))
}

// KeptBurst returns how many tokens a region keeps when a peer asks for burst: what it expects to take from them within
// the horizon, beyond its refill, and at least its demand over grace.
func KeptBurst(o Outlook, share, grace int64) int64 {
	o.Stock = 0
	return max(Lacking(o, Horizon, share), Over(o.Rate, grace), 0)
}
