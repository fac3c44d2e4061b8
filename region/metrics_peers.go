package region

import (
	"github.com/quotad/quotad/allocator/exchange"
)

var peerReadings = []reading{
	{gauge, "quotad_degraded", "1 if the region's last answer is older than 3 s.", []string{"peer"},
		eachPeer(func(p Peer, is emit) { is(one(p.Degraded), p.Region) })},
	{gauge, "quotad_peer_age_seconds",
		"Time since the last answered call to the region was sent; absent before the first.",
		[]string{"peer"},
		eachPeer(func(p Peer, is emit) {
			if p.Heard {
				is(p.Age.Seconds(), p.Region)
			}
		})},
	{gauge, "quotad_peer_round_trip_seconds",
		"Round trip to the region, smoothed; absent before the first answer.", []string{"peer"},
		eachPeer(func(p Peer, is emit) {
			if p.Heard {
				is(p.RoundTrip.Seconds(), p.Region)
			}
		})},
	{gauge, "quotad_peer_clock_apart_seconds",
		"How far the region's store clock is ahead of ours, wrong by at most half a round trip; absent while no answer of the last minute told. Beyond 0.1 s the sliding kinds are not exact in real time.", []string{"peer"},
		eachPeer(func(p Peer, is emit) {
			if p.ClockKnown {
				is(p.ClockApart.Seconds(), p.Region)
			}
		})},
	{total, "quotad_moved_units_total",
		"Rights moved by this node: lent to the region and regained from it, borrowed from it and returned to it; burst in tokens.", []string{"peer", "direction"},
		eachPeer(func(p Peer, is emit) {
			m := p.Moved
			is(float64(m.Lent), p.Region, "lent")
			is(float64(m.Regained), p.Region, "regained")
			is(float64(m.Borrowed), p.Region, "borrowed")
			is(float64(m.Returned), p.Region, "returned")
			is(float64(m.BurstLent), p.Region, "burst_lent")
			is(float64(m.BurstBorrowed), p.Region, "burst_borrowed")
		})},
	{total, "quotad_limit_moved_units_total",
		"Rights moved by this node, by limit and direction as in quotad_moved_units_total.",
		[]string{"limit", "direction"},
		func(n *Node, _ Status, is emit) {
			for limit, m := range n.rights.MovedByLimit() {
				is(float64(m.Lent), limit, "lent")
				is(float64(m.Regained), limit, "regained")
				is(float64(m.Borrowed), limit, "borrowed")
				is(float64(m.Returned), limit, "returned")
				is(float64(m.BurstLent), limit, "burst_lent")
				is(float64(m.BurstBorrowed), limit, "burst_borrowed")
			}
		}},
	{gauge, "quotad_peer_documents",
		"Limits documents that are open in the region, as this node heard; 0: it heard nothing.",
		[]string{"peer"},
		func(_ *Node, s Status, is emit) {
			for _, r := range s.Documents.Regions {
				is(float64(len(r.Open)), r.Region)
			}
		}},
	{gauge, "quotad_peer_policy_version",
		"Version of the newest limits document that is open in the region, as this node heard; absent: it heard nothing.",
		[]string{"peer"},
		func(_ *Node, s Status, is emit) {
			for _, r := range s.Documents.Regions {
				if len(r.Open) > 0 {
					is(float64(r.Open[len(r.Open)-1].Epoch.Version), r.Region)
				}
			}
		}},
	{total, "quotad_peer_refused_total", "Calls of other regions that were refused, by reason.",
		[]string{"reason"},
		func(n *Node, _ Status, is emit) {
			refused := n.server.Refused()
			is(float64(refused.Handshakes), "handshake")
			is(float64(refused.OtherRegion), "other_region")
			is(float64(refused.OtherNode), "other_node")
			is(float64(refused.TooManyAsks), "too_many_asks")
		}},
	{total, "quotad_peer_certificates_total",
		"Changes of the files of certificates for calls between regions, by what came of them: taken, or refused where the last good ones stayed; absent without TLS.", []string{"outcome"},
		func(n *Node, _ Status, is emit) {
			if t := n.config.PeerTLS; t != nil {
				changes := t.Changes()
				is(float64(changes.Taken), "taken")
				is(float64(changes.Refused), "refused")
			}
		}},
	{gauge, "quotad_peer_certificate_end_timestamp_seconds",
		"When this node's certificate for calls between regions ends, in seconds since 1970; absent without TLS.", nil,
		func(n *Node, _ Status, is emit) {
			if t := n.config.PeerTLS; t != nil {
				is(float64(t.Expires().Unix()))
			}
		}},
}

var exchangeReadings = []reading{
	{total, "quotad_exchange_total",
		"What the exchange of rights has done, in units or asks, by name.", []string{"what"},
		func(_ *Node, s Status, is emit) {
			for _, c := range s.Counters() {
				is(float64(c.Value), c.Name)
			}
		}},
	{total, "quotad_asks_declined_total",
		"Asks for rights that were not looked into, by reason and by whom: ours by peers, theirs here.", []string{"by", "reason"},
		func(_ *Node, s Status, is emit) {
			for i := range s.Exchange.RefusedHere {
				if why := exchange.Refusal(i); why != exchange.NotRefused {
					is(float64(s.Exchange.RefusedByPeers[i]), "peers", why.String())
					is(float64(s.Exchange.RefusedHere[i]), "here", why.String())
				}
			}
		}},
	{total, "quotad_events_dropped_total",
		"Events for the exchange of rights that were dropped because too many waited, by what they were: asks and questions of other nodes, wants of this node's requests, hints.", []string{"what"},
		func(n *Node, _ Status, is emit) {
			for lane, events := range n.rights.Numbers().Dropped {
				is(float64(events), lane)
			}
		}},
	{total, "quotad_generations_refused_total",
		"Messages and rows of other nodes that name a generation further ahead of the store's clock than any can be: a forger's, or one of a clock that is wrong by more than an hour.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Exchange.GenerationsRefused)) }},
	{total, "quotad_names_dropped_total",
		"Names of nodes of this region that the store answered and that are not remembered, since there are over a thousand: after a loss nobody waits for them.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Exchange.NamesDropped)) }},
	{gauge, "quotad_exchange_fenced",
		"1 if this node lends nothing because another node of its region named a later generation than the store was opened under.", nil,
		func(_ *Node, s Status, is emit) { is(one(s.Exchange.Fenced)) }},
	{total, "quotad_rows_rejected_total",
		"Rows that peers announced and that were not credited, by reason.", []string{"reason"},
		func(_ *Node, s Status, is emit) {
			for _, why := range exchange.Rejections {
				is(float64(s.Exchange.RowsRejected[why]), why.String())
			}
		}},
	{total, "quotad_denied_with_spare_units_total",
		"Units denied here while other regions had said that they had spare ones, each time at most as many as they said: a sign of false denials, not their number.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Exchange.DeniedWithSpare)) }},
	{gauge, "quotad_exchange_buckets",
		"Buckets that this node plans for; others keep to their fixed split.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Exchange.Buckets)) }},
}

func eachPeer(read func(p Peer, is emit)) func(*Node, Status, emit) {
	return func(_ *Node, s Status, is emit) {
		for _, p := range s.Peers {
			read(p, is)
		}
	}
}
