package region

// outsideReadings are about what came from outside and was refused.
var outsideReadings = []reading{
	{total, "quotad_gossip_refused_total",
		"What gossip refused before it was worked on: compressed frames, frames of no form that " +
			"nodes send, frames and states that are too large, frames that no key opens, streams " +
			"beyond the bytes that may be held, and members beyond their number or of no known " +
			"form.", []string{"what"}, readGossipRefused},
	{total, "quotad_hints_refused_total",
		"Hints that were not kept or not passed on: no room, not of a form or region that may " +
			"hint, or left out of a whole state that would have been too large.",
		[]string{"reason"}, readHintsRefused},
	{total, "quotad_peer_addresses_refused_total",
		"Addresses of other regions' nodes that were not kept, because the region has as many as " +
			"are kept.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.peers.AddressesRefused())) }},
}

func readGossipRefused(n *Node, _ Status, is emit) {
	g := n.gossip.Stats()
	is(float64(g.Compressed), "compressed")
	is(float64(g.Malformed), "malformed")
	is(float64(g.TooLarge), "too_large")
	is(float64(g.Unsealed), "unsealed")
	is(float64(g.Crowded), "crowded")
	is(float64(g.MembersRefused), "members")
}

func readHintsRefused(n *Node, _ Status, is emit) {
	c := n.rights.Hints().Counts()
	is(float64(c.Dropped), "no_room")
	is(float64(c.Refused), "form")
	is(float64(c.LeftOut), "state_size")
}
