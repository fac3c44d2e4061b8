package sim

import "github.com/quotad/quotad/allocator"

// comings adds, to a third of the plans of the wider draw, scenes in which a region has other nodes after
// the loss than before, and operators' words. They have a random stream of their own, so that what the
// wider draw drew before keeps its meaning.
func (d *drawing) comings() {
	random := *d
	random.Rand = d.plan.random(forNames, 0)
	rolls := *d
	rolls.Rand = d.plan.random(forRolls, 0)
	if d.settled || random.IntN(3) > 0 {
		return
	}
	for l := range d.kinds {
		for range random.within(1, 2) {
			s := random.coming(l)
			s.drawing = &rolls
			s.rolled()
		}
	}
}

// coming is a scene of one bucket.
func (d *drawing) coming(l int) scene {
	s := d.stage(l)
	if d.plan.Regions[s.region].Nodes == 1 { // that it grows is of interest there
		s.second = 1
	}
	switch d.IntN(6) {
	case 0, 1:
		s.added()
		s.lose(Flush, StoreAnew, Reboot, ZoneLost)
	case 2:
		s.lose(ZoneLost)
	case 3:
		s.gone()
		s.lose(Flush, StoreAnew)
		s.word()
	case 4:
		s.away()
		s.lose(Flush, StoreAnew, ZoneLost, JournalLost)
		s.word()
	default: // any combination
		for _, do := range []func(){s.added, s.away, s.gone, s.word} {
			if d.IntN(2) == 0 {
				do()
			}
		}
		s.lose(Flush, StoreAnew, Reboot, ZoneLost, Snapshot, Delete)
	}
	return s
}

// rolled starts all nodes of the region anew around the time of the loss, mostly after it, one after the
// other or some of them together, as for a new release. Sometimes no mate has copies of what the first node
// saw before, and sometimes the store then loses its data once more. It has a random stream of its own.
func (s *scene) rolled() {
	const second = allocator.Second
	if s.IntN(2) == 0 {
		return
	}
	at := s.blow + one(s.drawing, s.within(0, second), s.within(second, 12*second), s.within(second, 12*second), -s.within(0, 4*second))
	how, rest := one(s.drawing, Leave, Leave, Crash), one(s.drawing, s.within(-second, second), s.within(0, 3*second))
	if s.IntN(3) == 0 {
		length := s.within(second, 12*second)
		s.act(Act{Do: MatesCut, At: s.blow - length, For: length + s.within(0, second), Node: s.first})
	}
	first := s.IntN(maxNodes)
	for i := range maxNodes {
		length := s.within(second/20, 2*second)
		s.act(Act{Do: how, At: at, For: length, Node: (first + i) % maxNodes})
		at += max(length+rest, 0)
	}
	if s.IntN(3) == 0 {
		s.blow = at + s.within(0, 6*second)
		s.lose(Flush, StoreAnew, ZoneLost, JournalLost)
	}
}

// added adds a node some time before the loss, seldom after it.
func (s *scene) added() {
	const second = allocator.Second
	s.act(Act{Do: NodeAdded, At: s.blow - one(s.drawing, s.within(0, second/2), s.within(second, 4*second),
		s.within(4*second, 20*second), -s.within(0, 2*second)), Back: s.IntN(3) > 0,
		Amount: one(s.drawing, 0, s.within(second/2, 3*second))})
}

// gone ends the first node for good around the time of the loss. In half of the cases no mate has copies of
// what it saw at last.
func (s *scene) gone() {
	const second = allocator.Second
	at := s.blow - one(s.drawing, 0, s.within(0, second), s.within(second, 15*second), -s.within(0, 2*second))
	if s.IntN(2) == 0 {
		length := s.within(second, 10*second)
		s.act(Act{Do: MatesCut, At: at - length, For: length, Node: s.first})
	}
	s.act(Act{Do: NodeGone, At: at, Node: s.first})
}

// word has an operator say, after the loss, that nobody need be waited for.
func (s *scene) word() {
	const second = allocator.Second
	s.act(Act{Do: Recover, At: s.blow + s.within(second/2, 12*second), Node: one(s.drawing, s.second, s.first)})
}
