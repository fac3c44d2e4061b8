package sim

import (
	"fmt"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/trade/rights"
)

// The wider draw adds what the first one never draws: requests of a key that go to one node only,
// clocks of single machines, losses of stores while clocks step, up to three nodes that cannot hear
// each other, and runs over several windows that are long enough to be recovered. It has a random
// stream of its own, so that seeds keep their meaning without it.

// drawWider draws a plan by the wider draw.
func drawWider(p *Plan, c Config) {
	d := &drawing{Rand: p.random(forWider, 0), Config: c, plan: p, theme: wider}
	if d.Config.Regions == 0 {
		d.Config.Regions = one(d, 2, 2, 2, 3, 3, 4)
	}
	d.regions()
	for i := range p.Regions {
		if c.Nodes == 0 {
			p.Regions[i].Nodes = one(d, 1, 2, 2, 2, 3)
		}
		if d.IntN(2) == 0 {
			p.Regions[i].Ahead, p.Regions[i].Drift = 0, 0
		}
	}
	d.document()
	p.Refunds = d.refunds && d.IntN(4) == 0
	longest := int64(0)
	for _, w := range d.windows {
		longest = max(longest, w)
	}
	if d.For > 0 && longest <= maxTurned { // three windows, and the time in which they weigh
		p.End = max(p.End, 7*longest/2+healing)
	}
	p.Heal = p.End - healing
	p.Into = d.Int64N(min(longest, 3600*allocator.Second))
	if d.IntN(3) == 0 {
		d.load()
	}
	for l := range d.kinds {
		for range d.within(1, 3) {
			d.scene(l)
		}
	}
	if len(d.Faults) > 0 || d.IntN(3) == 0 {
		d.faults()
	}
	if d.IntN(4) == 0 {
		d.crowd()
	}
	if d.IntN(4) == 0 {
		d.busy()
	}
	d.comings()
}

// crowd gives nodes room for fewer buckets than are used. The additional buckets are not those of
// the scenes, and are used from the beginning or later. Some of them are deleted while in use.
func (d *drawing) crowd() {
	p := d.plan
	p.Memory = rights.Memory{Buckets: one(d, 1, 2, 4, 64), Uses: one(d, 1, 2, 4)}
	for k := range one(d, 2, 4, 8) {
		key, l := len(p.Keys), d.IntN(len(d.kinds))
		p.Keys = append(p.Keys, fmt.Sprintf("k%d", key))
		at := one(d, int64(1+k), d.Int64N(p.Heal/2))
		length := d.within(2*allocator.Second, 20*allocator.Second)
		length = min(length, p.Heal-at-1)
		units := d.limits[l] * d.within(1, 3)
		requests := min(d.within(20, 60), units)
		for r := range p.Regions {
			if d.IntN(4) > 0 {
				d.add(Act{Do: Steady, At: at, For: length, Region: r, Limit: l, Key: key,
					Amount: max(requests*1_000*allocator.Second/length, 1),
					Cost:   quantity.Units(max(units*3/2/requests, 1))})
			}
		}
		if d.IntN(2) == 0 {
			d.add(Act{Do: Delete, At: at + length*d.within(30, 80)/100,
				Region: d.IntN(len(p.Regions)), Peer: -1, Limit: l, Key: key})
		}
	}
}

// busy has stores take long for each call, so that under load their answers come too late.
func (d *drawing) busy() {
	for range d.within(1, 3) {
		at := d.Int64N(d.plan.Heal - allocator.Second)
		d.add(Act{Do: StoreBusy, At: at, For: min(d.within(allocator.Second, 10*allocator.Second),
			d.plan.Heal-at-1), Region: d.IntN(len(d.plan.Regions)),
			Peer: -1, Amount: one(d, d.within(1_000, 10_000), d.within(10_000, 49_000),
				d.within(51_000, 200_000))})
	}
}

const (
	healing = 12 * allocator.Second
	// maxTurned is the longest window for which a run is made to last three windows.
	maxTurned = 90 * allocator.Second
)

// scene is a loss in one region, with what happens to one bucket before and after it.
type scene struct {
	*drawing
	limit, key    int
	region        int
	begin, end    int64 // µs since the start
	blow          int64 // when the data is lost
	first, second int   // nodes that are asked before and after the loss
}

// scene has one node of a region use all that the region has. Then something goes wrong with that
// node or with the store, the store loses its data, and the region asks for as much again through
// another node.
func (d *drawing) scene(l int) {
	s := d.stage(l)
	nodes := d.plan.Regions[s.region].Nodes
	switch d.IntN(8) {
	case 0, 1:
		s.away()
		s.lose(Flush, StoreAnew, Delete, Reboot, Snapshot)
	case 2:
		s.nodeClock(one(d, s.first, s.second), 2*24*3600)
		s.lose(Flush, StoreAnew, Delete)
	case 3:
		s.nodeClock(one(d, s.first, s.second), one(d, d.within(1, 60), 20*60, 50*60))
		s.lose(Delete, Delete, Flush, Snapshot)
	case 4, 5:
		s.storeClock()
		s.lose(Reboot, Reboot, Flush, StoreAnew)
	case 6:
		s.lose(Snapshot)
	default: // any combination
		for _, do := range []func(){s.away, s.storeClock, func() { s.nodeClock(d.IntN(nodes), d.within(1, 3000)) }} {
			if d.IntN(2) == 0 {
				do()
			}
		}
		s.lose(Flush, StoreAnew, Reboot, Snapshot, Delete, Failover)
	}
}

// stage returns a scene of one bucket, with its demand alone.
func (d *drawing) stage(l int) scene {
	p := d.plan
	s := scene{drawing: d, limit: l, key: one(d, 0, 0, 0, 1), region: d.IntN(len(p.Regions))}
	length := min(max(d.windows[l], 16*allocator.Second), p.Heal-allocator.Second) * d.within(40,
		100) / 100
	s.begin = d.Int64N(p.Heal - length)
	if in := (p.Into + s.begin) % d.windows[l]; d.windows[l] <= length && d.IntN(4) > 0 &&
		s.begin >= in {
		// Begin early in a window.
		s.begin += d.Int64N(d.windows[l]/8+1) - in
	}
	s.end = min(s.begin+length, p.Heal-1)
	s.blow = s.begin + (s.end-s.begin)*d.within(30, 60)/100
	nodes := p.Regions[s.region].Nodes
	s.first, s.second = d.IntN(nodes), d.IntN(nodes)
	if nodes > 1 && d.IntN(4) > 0 {
		s.second = (s.first + 1 + d.IntN(nodes-1)) % nodes
	}
	s.demand()
	return s
}

// act adds an act of the scene.
func (s *scene) act(a Act) {
	heal := s.plan.Heal
	a.Limit, a.Key = s.limit, s.key
	if !a.Do.Load() {
		a.Region, a.Peer = s.region, -1
	}
	a.At = max(a.At, 0)
	a.For = max(min(a.For, heal-a.At-1), 0)
	if a.At < heal-1 {
		s.add(a)
	}
}

// demand has the scene's region ask for more than it has before and after the loss, usually through
// one node each. The other regions ask for all that they have, so that no spare units hide an
// excess.
func (s *scene) demand() {
	if s.IntN(5) > 0 {
		s.act(Act{Do: Stick, At: s.begin, For: s.blow - s.begin + s.within(0, 2*allocator.Second), Node: s.first})
	}
	if s.IntN(5) > 0 {
		s.act(Act{Do: Stick, At: s.blow + s.within(-200_000, 500_000), For: s.end - s.blow, Node: s.second})
	}
	s.want(s.region, s.begin, s.blow)
	s.want(s.region, s.blow+one(s.drawing, 0, s.within(0, allocator.Second), s.within(0, (s.end-s.blow)/2)), s.end)
	if s.IntN(4) == 0 {
		return
	}
	for other := range s.plan.Regions {
		if other != s.region {
			s.want(other, s.begin, s.end)
		}
	}
}

// want has a region ask for one to four times the limit in a stretch of time.
func (s *scene) want(region int, from, to int64) {
	if to-from < 100_000 {
		return
	}
	span := min(to-from, one(s.drawing, to-from, to-from, 20*allocator.Second, 5*allocator.Second))
	units := s.limits[s.limit] * s.within(1, 4)
	requests := min(s.within(40, 150), units)
	s.act(Act{Do: Steady, Region: region, At: from, For: span, Amount: max(requests*1_000*allocator.Second/span, 1), Cost: quantity.Units(max(units*3/2/requests, 1))})
}

// away keeps the first node from being heard around the time of the loss.
func (s *scene) away() {
	const second = allocator.Second
	from := s.blow - s.within(0, second)
	switch s.IntN(5) {
	case 0, 1:
		s.act(Act{Do: Crash, At: from, For: s.within(second, 30*second), Node: s.first})
	case 2: // after the loss, but before anybody asks the node
		s.act(Act{Do: Crash, At: s.blow + s.within(0, 2*second), For: s.within(second, 30*second), Node: s.first})
	case 3:
		s.act(Act{Do: MatesCut, At: from, For: s.within(2*second, 10*second), Node: one(s.drawing, s.first, s.first, s.second)})
	case 4:
		s.act(Act{Do: Pause, At: from, For: s.within(2*second, 8*second), Node: s.first})
	}
}

// nodeClock puts a node's clock ahead, sometimes behind, until about the time of the loss.
func (s *scene) nodeClock(node int, seconds int64) {
	const second = allocator.Second
	length := s.within(10*second, 25*second) // nodes forget every ten seconds
	s.act(Act{Do: NodeClock, At: s.blow - length + s.within(-second, 3*second), For: length, Node: node,
		Amount: one(s.drawing, int64(-1), 1, 1, 1) * seconds * second})
}

// storeClock puts the store's clock ahead, sometimes behind, until about the time of the loss.
func (s *scene) storeClock() {
	const second = allocator.Second
	length := s.within(second, 14*second)
	s.act(Act{Do: StoreClock, At: s.blow - length, For: length + s.within(-second/2, second/2),
		Amount: one(s.drawing, int64(-1), 1, 1, 1, 1) * s.within(second, 30*second)})
}

// lose has the store lose its data in one of the given ways.
func (s *scene) lose(ways ...Deed) {
	const second = allocator.Second
	switch way := one(s.drawing, ways...); way {
	case Snapshot, Failover:
		back := one(s.drawing, s.within(1_000, second/2), s.within(second/2, 12*second), s.within(second/2, 12*second))
		s.act(Act{Do: way, At: s.blow - back, For: back})
	case Reboot:
		s.act(Act{Do: way, At: s.blow - s.within(0, second/2), For: s.within(1_000, 2*second), Node: one(s.drawing, s.first, s.first, s.second)})
	case ZoneLost:
		s.act(Act{Do: way, At: s.blow, Node: s.first, Amount: one(s.drawing, int64(1), 1, maxNodes)})
	case JournalLost:
		s.act(Act{Do: Flush, At: s.blow})
		s.act(Act{Do: way, At: s.blow - s.within(0, second), For: s.within(0, 1), Node: s.first})
	default:
		s.act(Act{Do: way, At: s.blow})
	}
}
