package exchange

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// maxShown is how many generations of a peer's store are remembered with the times that it showed:
// the latest.
const maxShown = 8

// shown is the latest time of a peer's store that was heard under a generation.
type shown struct {
	generation uint64
	HeardOf
}

// noteShown records the latest time that a peer has heard of its own store, under a generation that
// is believed. A message without a time says that the peer goes on, and not until when.
func (p *peer) noteShown(generation uint64, at quantity.StoreTime) {
	i := slices.IndexFunc(p.shown, func(s shown) bool { return s.generation == generation })
	if i < 0 {
		i = len(p.shown)
		p.shown = append(p.shown, shown{generation: generation})
	}
	switch s := &p.shown[i]; {
	case at <= 0 || at > maxTime:
		s.Unsure = true
	case at > s.At && (!s.Unsure || at >= s.At.Add(CopyLag)): // and no message from before it was unsure
		s.HeardOf = HeardOf{At: at}
	}
	if len(p.shown) > maxShown {
		p.shown = slices.Delete(p.shown, 0, 1)
	}
}

// heardOf returns the times of its store that a peer showed, by generation.
func (p *peer) heardOf() (all []HeardOf) {
	for _, s := range p.shown {
		all = append(all, s.HeardOf)
	}
	return all
}

// shows returns the latest time that our store has shown. It returns 0 if the store may show the
// same time again and again, because its time is ahead of this node's clock.
func (m *Machine) shows(now quantity.NodeTime) quantity.StoreTime {
	if m.nodeClock != 0 && m.shown > quantity.StoreTime(now.Add(m.nodeClock)).Add(allocator.Second) {
		return 0
	}
	return m.shown
}
