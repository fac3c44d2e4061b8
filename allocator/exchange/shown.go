package exchange

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// maxShown is of how many generations of a peer's store it is remembered which times it showed: the latest.
const maxShown = 8

// shown is the latest time of a peer's store that was heard under a generation.
type shown struct {
	generation uint64
	HeardOf
}

// noteShown notes the latest time of its store that a peer has heard, under a generation that is believed. A
// message without a time says that it goes on, and not until when.
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

// shows returns the latest time that our store has told; 0: it may tell the same time again and again, because its
// time is ahead of this node's clock.
func (m *Machine) shows(now quantity.NodeTime) quantity.StoreTime {
	if m.nodeClock != 0 && m.shown > quantity.StoreTime(now.Add(m.nodeClock)).Add(allocator.Second) {
		return 0
	}
	return m.shown
}
