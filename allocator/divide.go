package allocator

import (
	"cmp"
	"slices"

	"github.com/quotad/quotad/quantity"
)

// Offer is what one peer may have to give.
type Offer struct {
	Peer  int            // the caller's number of the peer
	Back  quantity.Units // rights we lent it that it may give back
	Spare quantity.Units // what it may lend of its own
	// it may have something although it is not thought to; used for the tail only
	Some bool
}

// Offered returns how many units all peers together are thought to have.
func Offered(offers []Offer) (units quantity.Units) {
	for _, o := range offers {
		units += o.Back + o.Spare
	}
	return units
}

// Fewest returns the largest offers that together reach 1.5 times the units, the largest first. It
// returns all offers if they do not reach that. The other peers are not asked: they keep what they
// have, and cost no message. It sorts the offers in place.
func Fewest(offers []Offer, units quantity.Units) []Offer {
	slices.SortStableFunc(offers, func(a, b Offer) int {
		return cmp.Compare(b.Back+b.Spare, a.Back+a.Spare)
	})
	var sum quantity.Units
	for i, o := range offers {
		sum += o.Back + o.Spare
		if sum >= units+units/2 {
			return offers[:i+1]
		}
	}
	return offers
}

// Portion is the part of an ask that goes to one peer.
type Portion struct {
	Peer  int
	Units quantity.Units
}

// Divide splits an ask over peers in proportion to what each may have, in whole units. A region in
// need asks for all it lacks, even if the peers are thought to have less: what it knows of them is
// old, and each lender decides what it keeps. Any other region asks for no more than the peers are
// thought to have.
//
// If more is lacking than all peers are thought to have, each peer whose offer says Some is asked
// for at least tail units. jitter (parts per million) decides which peers get the units left over
// from rounding. The largest portion comes first.
func (k *Scratch) Divide(units, tail quantity.Units, offers []Offer, jitter quantity.PPM,
	inNeed bool) []Portion {
	total := Offered(offers)
	k.weights = sized(k.weights, len(offers))
	weights := k.weights
	for i, o := range offers {
		weights[i] = o.Back + o.Spare
	}
	if !inNeed {
		units = min(units, total)
	}
	if units <= 0 || total == 0 && tail == 0 {
		return nil
	}
	split := weights // all 0
	if total > 0 {
		split = k.entitlements(units, weights, uint64(jitter))
	}
	portions := k.portions[:0]
	for i, u := range split {
		if total < units && offers[i].Some {
			u = max(u, tail)
		}
		if u > 0 {
			portions = insertPortion(portions, Portion{Peer: offers[i].Peer, Units: u})
		}
	}
	k.portions = portions
	return portions
}

// Fill asks each peer in turn for all that it may have, until the units are reached.
func (k *Scratch) Fill(units quantity.Units, offers []Offer) []Portion {
	portions := k.portions[:0]
	for _, o := range offers {
		if u := min(units, o.Back+o.Spare); u > 0 {
			portions = append(portions, Portion{Peer: o.Peer, Units: u})
			units -= u
		}
	}
	k.portions = portions
	return portions
}

// insertPortion puts a portion in its place: larger portions first, and of equal ones the lower
// peer first.
func insertPortion(portions []Portion, p Portion) []Portion {
	portions = append(portions, p)
	at := len(portions) - 1
	for ; at > 0; at-- {
		before := portions[at-1]
		if before.Units > p.Units || before.Units == p.Units && before.Peer < p.Peer {
			break
		}
		portions[at] = before
	}
	portions[at] = p
	return portions
}
