package second

import (
	"slices"
	"time"

	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

const (
	// silence is how long a node stays stopped after an answer last confirmed the older store.
	silence = 10 * time.Second
	// hearsayStops is how long gossip alone may stop a node, and hearsayAgain after what time it
	// may do so once more.
	hearsayStops = time.Minute
	hearsayAgain = time.Hour
)

// judge decides whether this node stops or goes on. It has no clock and asks nobody.
type judge struct {
	to        *Rival    // this node stopped for that one; nil: it did not stop
	confirmed time.Time // when it last answered that it decides with its store
	outlasted []string  // IDs of stores that stopped in favour of this node's
	had       []string  // IDs of stores that this node had, the present one among them
	before    uint64    // the latest generation that this node had before it started

	hearsayUntil time.Time // gossip alone may stop the node until then
	hearsayFrom  time.Time // and again from then on
}

// stopped reports whether this node has stopped.
func (j *judge) stopped() bool { return j.to != nil }

// verdict takes what the other nodes of the region say, and returns those with another store. own
// is this node's store, which has just answered it unless the node has stopped. answers were given
// at peer ports. hearsay is what gossip shows of nodes that did not answer there.
func (j *judge) verdict(own store.Origin, answers, hearsay []peer.StoreAnswer, now time.Time) []Rival {
	j.had = remember(j.had, own.ID)
	hearsay = j.news(hearsay)
	rivals := append(others(own, answers, false), others(own, hearsay, true)...)
	if own.ID == "" {
		return rivals
	}
	winner := j.winner(own, answers)
	if winner == nil && !j.confirms(own, answers, now) {
		winner = j.fromHearsay(own, hearsay, now)
	}
	switch {
	case winner != nil:
		j.to = winner
		if !winner.Hearsay {
			j.confirmed = now
		}
	case j.stopped() && j.mayGoOn(own, answers, now):
		j.to = nil
	}
	if !j.stopped() {
		j.outlast(rivals)
	}
	return rivals
}

// others returns the nodes that have another store.
func others(own store.Origin, said []peer.StoreAnswer, hearsay bool) (all []Rival) {
	for _, a := range said {
		if a.Use != peer.StoreUnsure && a.Origin.ID != "" && a.Origin.ID != own.ID {
			all = append(all, Rival{Node: a.Node, Origin: a.Origin, Stopped: a.Use == peer.StoreStopped,
				Hearsay: hearsay})
		}
	}
	return all
}

// news drops what gossip says of stores that this node itself had, also before it started. They
// were lost, or this node would still have them. A node that gossip shows with one may have ended,
// or may not have noticed the loss yet. Only its own answer would count.
func (j *judge) news(hearsay []peer.StoreAnswer) []peer.StoreAnswer {
	return slices.DeleteFunc(slices.Clone(hearsay), func(a peer.StoreAnswer) bool {
		return slices.Contains(j.had, a.Origin.ID) || a.Origin.Generation <= j.before
	})
}

// winner returns a node whose store this node stops for; nil: there is none.
func (j *judge) winner(own store.Origin, answers []peer.StoreAnswer) *Rival {
	var oldest *Rival
	for _, a := range answers {
		if a.Use != peer.StoreDecides || a.Origin.ID == "" || a.Origin.ID == own.ID || !j.loses(own, a) {
			continue
		}
		if oldest == nil || a.Origin.OlderThan(oldest.Origin) {
			oldest = &Rival{Node: a.Node, Origin: a.Origin}
		}
	}
	return oldest
}

// loses reports whether this node stops because another node decides with another store. A node
// that has stopped stays so. A store whose nodes stopped for this one does not win against it
// later.
func (j *judge) loses(own store.Origin, a peer.StoreAnswer) bool {
	if j.stopped() && !j.to.Hearsay {
		return true
	}
	stoppedBefore := slices.Contains(a.Outlasted, own.ID)
	outlasted := slices.Contains(j.outlasted, a.Origin.ID)
	if stoppedBefore != outlasted {
		return stoppedBefore
	}
	return a.Origin.OlderThan(own)
}

// fromHearsay returns a node that gossip alone shows with an older store, while gossip alone may
// stop this node.
func (j *judge) fromHearsay(own store.Origin, hearsay []peer.StoreAnswer, now time.Time) *Rival {
	for _, a := range hearsay {
		if a.Use != peer.StoreDecides || a.Origin.ID == "" || a.Origin.ID == own.ID ||
			!a.Origin.OlderThan(own) || slices.Contains(j.outlasted, a.Origin.ID) {
			continue
		}
		if !now.Before(j.hearsayFrom) {
			j.hearsayUntil, j.hearsayFrom = now.Add(hearsayStops), now.Add(hearsayAgain)
		}
		if now.Before(j.hearsayUntil) {
			return &Rival{Node: a.Node, Origin: a.Origin, Hearsay: true}
		}
	}
	return nil
}

// confirms reports whether this node stays stopped because of what it heard at a peer port.
func (j *judge) confirms(own store.Origin, answers []peer.StoreAnswer, now time.Time) bool {
	return j.stopped() && !j.to.Hearsay && !j.mayGoOn(own, answers, now)
}

// mayGoOn reports whether a node that stopped may use its store again, if no answer makes it stop.
// The store that it stopped for must have been withdrawn, or nobody must have confirmed it for a
// while.
func (j *judge) mayGoOn(own store.Origin, answers []peer.StoreAnswer, now time.Time) bool {
	if j.to.Hearsay || now.Sub(j.confirmed) >= silence {
		return true
	}
	return slices.ContainsFunc(answers, func(a peer.StoreAnswer) bool {
		withdrawn := a.Use == peer.StoreStopped || a.Use == peer.StoreDecides && a.Origin.ID == own.ID
		return a.Node == j.to.Node && withdrawn
	})
}

// outlast remembers stores that stopped.
func (j *judge) outlast(rivals []Rival) {
	for _, r := range rivals {
		if r.Stopped && !r.Hearsay {
			j.outlasted = remember(j.outlasted, r.Origin.ID)
		}
	}
}

// remember adds an ID to some, unless it is there or empty. The first are forgotten if they are
// more than peer.MaxOutlasted.
func remember(ids []string, id string) []string {
	if id != "" && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	return ids[max(0, len(ids)-peer.MaxOutlasted):]
}
