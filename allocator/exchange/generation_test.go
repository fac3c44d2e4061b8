//go:build !race

package exchange

import (
	"fmt"
	"math"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Times for the tests of generations: the store's clock, and generations begun at its time.
const (
	storeNow = 1_700_000_000_000_000
	hour     = algorithms.MaxClockStep
)

// generationAt returns the generation that a node begins when its clock shows a time.
func generationAt(clock int64) uint64 { return uint64(clock / 1000) }

// standing returns a machine of us with a bucket of a window of a day. It knows its store's clock
// and has heard both peers.
func standing() (b *Bucket, m *Machine, now quantity.NodeTime) {
	const day = 86_400 * allocator.Second
	b = &Bucket{ID: "w", Epoch: epochForTests, Kind: algorithms.FixedWindow, Limit: 1000,
		Window: day, Cell: day, Tick: 1,
		Recovered: true, Entitlements: map[string]quantity.Units{"us": 400, "eu": 400, "ap": 200},
		Lending: 950_000, Borrowing: -1}
	m, now = New("us", "n1", Options{Nodes: 2}), allocator.Second
	m.Step(now, TenureChanged{Generation: generationAt(storeNow) - 1000, Epoch: epochForTests,
		Peers: []string{"eu", "ap"}, Clock: storeNow})
	m.Step(now, Observed{Bucket: b, Requests: allocator.Requests{Admitted: 1}, Now: storeNow, State: state(b, storeNow, 1)})
	for _, c := range m.Step(now, Tick{Jitter: allocator.PPM, Clock: storeNow}).Calls {
		m.Step(now, Answered{ID: c.ID,
			Reply: Reply{From: c.Peer, Generation: generationAt(storeNow) - 500,
				ForGeneration: c.Message.Generation, Grants: make([]Grant,
					len(c.Message.Asks))}})
	}
	return b, m, now
}

// state is that of a bucket of us of which so many units are used.
func state(b *Bucket, at quantity.StoreTime, used quantity.Units) algorithms.State {
	f := b.Entitlements["us"]
	return algorithms.State{Cell: quantity.Cell(int64(at) / b.Cell), Entitlement: f, Share: f,
		NextShare: f, Used: used, Free: f - used}
}

// lends reports whether a machine has its store debit for an ask of a peer under a generation.
func lends(m *Machine, now quantity.NodeTime, b *Bucket, generation uint64) bool {
	out := m.Step(now, Asked{ID: 5, Message: Message{From: "eu", Generation: generation,
		Asks: []Ask{{Bucket: b.ID, Cell: quantity.Cell(storeNow / b.Cell), Lent: 10}}},
		Buckets: []*Bucket{b}})
	return len(out.Lend) == 1
}

func doubt(b *Bucket) []Doubt {
	return []Doubt{{Bucket: b.ID, From: quantity.Cell(storeNow/b.Cell - 1),
		To: quantity.Cell(storeNow/b.Cell + 1)}}
}

// forged holds generations that no clock can have reached.
var forged = []uint64{generationAt(storeNow+hour) + algorithms.GenerationStep + 1001, 1 << 51, 1<<53 - 1, math.MaxInt64,
	math.MaxUint64}

// TestAForgedGenerationFencesNobody: a generation further ahead than any clock can be is refused
// and counted, whether it comes in a question, an ask or a reply, from our region or a peer. This
// node goes on lending, its store is not told of the generation, and honest rows are still
// credited.
func TestAForgedGenerationFencesNobody(t *testing.T) {
	for _, g := range forged {
		for _, from := range []string{"us", "eu"} {
			b, m, now := standing()
			out := m.Step(now, Questioned{ID: 3, Question: Question{From: from, Node: "n2",
				Generation: g, Buckets: doubt(b)}, Buckets: []*Bucket{b}})
			if len(out.Consults) != 0 || len(out.Testify) != 1 ||
				!out.Testify[0].Testimonies.All[0].Refused {
				t.Errorf("a question from %s of generation %d: %+v", from, g, out)
			}
			if s := m.Stats(); s.GenerationsRefused != 1 || s.Implausible != 1 || s.Fenced ||
				!lends(m, now, b, generationAt(storeNow)) {
				t.Errorf("a question from %s of generation %d: %+v", from, g, s)
			}
		}
		b, m, now := standing()
		if lends(m, now, b, g) || m.Stats().GenerationsRefused != 1 ||
			!lends(m, now, b, generationAt(storeNow)) {
			t.Errorf("an ask of generation %d: %+v", g, m.Stats())
		}
		if got := creditsOf(g); got != 0 {
			t.Errorf("a reply of generation %d: %d credits", g, got)
		}
	}
	if got := creditsOf(generationAt(storeNow + hour)); got != 1 {
		t.Errorf("a reply of a generation begun by a clock an hour ahead: %d credits", got)
	}
}

// creditsOf returns how many credits a reply of a generation leads to.
func creditsOf(generation uint64) (credits int) {
	b, m, now := standing()
	for range 3 {
		now += Interval
		at := quantity.StoreTime(storeNow + now - allocator.Second)
		out := m.Step(now, Observed{Bucket: b, Requests: allocator.Requests{Denied: 10}, Now: at, State: state(b, at, 400)})
		for _, c := range out.Calls {
			r := Reply{From: c.Peer, Generation: generation, ForGeneration: c.Message.Generation}
			for _, a := range c.Message.Asks {
				r.Grants = append(r.Grants, Grant{Cell: a.Cell, Lent: 1})
			}
			if c.Peer == "eu" {
				credits += len(m.Step(now, Answered{ID: c.ID, Reply: r}).Credits)
			}
		}
	}
	return min(credits, 1)
}

// TestHonestGenerationsAreHeard: the machine believes a generation begun after one that a clock began
// which is the largest allowed step ahead of the store's. A node whose own clock is that far behind believes it
// even before its store has told the time. What was believed once is believed again, whatever
// clocks show now.
func TestHonestGenerationsAreHeard(t *testing.T) {
	ahead := generationAt(storeNow+hour) + algorithms.GenerationStep
	asks := func(m *Machine, now quantity.NodeTime, from string, b *Bucket) bool {
		out := m.Step(now, Questioned{ID: 3, Question: Question{From: from, Node: "n2",
			Generation: ahead, Buckets: doubt(b)}, Buckets: []*Bucket{b}})
		return len(out.Consults) == 1 && m.Stats().GenerationsRefused == 0
	}
	for _, from := range []string{"us", "eu"} {
		b, m, now := standing()
		if !asks(m, now, from, b) {
			t.Errorf("a question from %s of a clock an hour ahead is refused", from)
		}
		if m.Stats().Fenced != (from == "us") {
			t.Errorf("a question from %s: fenced %t", from, m.Stats().Fenced)
		}
		young := New("us", "n1", Options{Nodes: 2})
		young.Step(1, TenureChanged{Generation: 7, Epoch: epochForTests,
			Peers: []string{"eu", "ap"}, Clock: storeNow - hour})
		if !asks(young, 1, from, b) {
			t.Errorf("a question from %s is refused by a node whose clock is behind, before its store told the time", from)
		}
		// The store's clock is set back.
		m.Step(now, Observed{Bucket: b, Now: storeNow - 2*hour, State: state(b, storeNow, 1)})
		if !asks(m, now, from, b) {
			t.Errorf("a question from %s that was believed before is refused when clocks are set back", from)
		}
	}
	b, m, now := standing()
	// Our own store names the generation.
	m.Step(now, TenureChanged{Generation: ahead + 1<<40, Epoch: epochForTests,
		Peers: []string{"eu", "ap"}})
	if !asks(m, now, "us", b) {
		t.Error("a question of our region of no later a generation than our own is refused")
	}
}

// TestUseOfCellsToComeHidesNothing: a node of our region claims to have seen use in a future cell.
// The machine keeps the use that other nodes saw in this cell, and the bucket is not charged for
// ever.
func TestUseOfCellsToComeHidesNothing(t *testing.T) {
	for _, use := range []algorithms.Use{{Cell: storeNow/(86_400*allocator.Second) + 2},
		{Cell: 1 << 51}, {Cell: math.MaxInt64},
		{Cell: storeNow / (86_400 * allocator.Second), At: storeNow + 3*86_400*allocator.Second},
		{At: math.MaxInt64}, {Cell: math.MinInt64},
		{At: math.MinInt64}, {Units: math.MinInt64}, {Units: math.MaxInt64}} {
		b, m, now := standing()
		m.Step(now, Lost{Generation: m.generation, Now: storeNow,
			Buckets: []LostBucket{{Bucket: b, At: storeNow - 1000}}})
		own := algorithms.Use{Cell: quantity.Cell(storeNow / b.Cell), Units: 300,
			At: storeNow - 2000}
		say := func(node string, use algorithms.Use) Effects {
			return m.Step(now, Testified{Testimonies{From: "us", Node: node,
				ForGeneration: m.generation,
				All:           []Testimony{{Bucket: b.ID, WholeSince: math.MinInt64, Use: use}}}})
		}
		// Only n2 may lie. Where its testimony is refused, n3 is the second node to tell.
		all := []Effects{say("n2", use), say("n1", own), say("n3", own), m.Step(now,
			Gathered{Question: Question{Generation: m.generation, Buckets: []Doubt{{Bucket: b.ID}}}, Region: "us"})}
		var restored []Restore
		for _, out := range all {
			restored = append(restored, out.Restores...)
		}
		if len(restored) != 1 || restored[0].Use != own || m.Stats().Implausible != 1 {
			t.Errorf("%+v: %+v, %d implausible", use, restored, m.Stats().Implausible)
		}
	}
}

// TestExtremesFromPeers: the smallest and largest integers, and their neighbours, in every number
// of a hint, an ask, a grant, a reply and a testimony. Nothing is asked, lent or credited that
// cannot be computed with, and an honest message after it counts.
func TestExtremesFromPeers(t *testing.T) {
	for _, x := range []quantity.Cell{math.MinInt64, math.MinInt64 + 1, -1, 1 << 51, 1<<51 + 1,
		1 << 53, 1 << 62, math.MaxInt64 - 1, math.MaxInt64} {
		t.Run(fmt.Sprint(x), func(t *testing.T) {
			b, m, now := standing()
			honest := Hint{Region: "eu", Node: "n1", Bucket: b.ID,
				Cell: quantity.Cell(storeNow / b.Cell), Used: 1, Total: 2, Rate: 3, Share: 400,
				Spare: 77}
			for _, h := range []Hint{{Cell: x}, {Used: quantity.Units(x)},
				{Total: quantity.Units(x)}, {Rate: quantity.MilliRate(x)},
				{Share: quantity.Units(x)}, {Spare: quantity.Units(x)},
				{SpareBurst: quantity.Units(x)}, {Cell: x, Used: quantity.Units(x),
					Total: quantity.Units(x), Rate: quantity.MilliRate(x), Share: quantity.Units(x),
					Spare: quantity.Units(x)}} {
				for _, region := range []string{"eu", "us", "nowhere"} {
					h.Region, h.Node, h.Bucket = region, "liar", b.ID
					m.Step(now, Heard{Hint: h})
				}
			}
			m.Step(now+1, Heard{Hint: honest})
			if h, _ := m.views[b.ID].dealing("eu").together(now + 1); h.Cell != honest.Cell ||
				h.Spare != 77 {
				t.Errorf("hints: an honest one is not the newest: %+v", h)
			}
			for _, a := range []Ask{{Cell: x, Lent: 1}, {Lent: quantity.Units(x)},
				{Returned: quantity.Units(x)}, {Burst: quantity.Units(x)}} {
				a.Bucket = b.ID
				out := m.Step(now+1,
					Asked{ID: 5, Message: Message{From: "eu", Generation: 7,
						Asks: []Ask{a}}, Buckets: []*Bucket{b}})
				for _, l := range out.Lend {
					if !plausible(l.Lent, l.Returned, l.Burst, l.Kept, l.Cap) ||
						l.Cell > quantity.Cell(maxTime/b.Cell) {
						t.Errorf("ask %+v: %+v", a, l)
					}
				}
			}
			extremeReplies(t, x)
		})
	}
}

// extremeReplies answers a call with an extreme in each number of the reply in turn.
func extremeReplies(t *testing.T, x quantity.Cell) {
	grants := []Grant{{Cell: x, Lent: 1}, {Lent: quantity.Units(x)}, {Returned: quantity.Units(x)},
		{Burst: quantity.Units(x)}, {Spare: quantity.Units(x)}, {Retry: int64(x)},
		{SpareBurst: quantity.Units(x)}, {Lent: 3, Spare: quantity.Units(x), Retry: int64(x)}}
	for i, g := range grants {
		for _, at := range []quantity.Cell{x, storeNow} {
			b, m, now := standing()
			sent := false
			for range 3 {
				now += Interval
				for _, c := range m.Step(now, Observed{Bucket: b, Requests: allocator.Requests{Denied: 10}, Now: storeNow,
					State: state(b, storeNow, 400)}).Calls {
					r := Reply{From: c.Peer, Generation: 9, ForGeneration: c.Message.Generation, At: quantity.StoreTime(at)}
					for _, a := range c.Message.Asks {
						if i > 0 {
							g.Cell = a.Cell
						}
						r.Grants, sent = append(r.Grants, g), true
					}
					for _, credit := range m.Step(now, Answered{ID: c.ID, Reply: r}).Credits {
						if !plausible(credit.Lent, credit.Returned, credit.Burst, credit.Gain,
							credit.GainBurst) || credit.At < 0 || credit.At > maxTime {
							t.Errorf("grant %+v at %d: %+v", g, at, credit)
						}
						m.Step(now, Credited{Credit: credit,
							Result: algorithms.Credited{Head: algorithms.Head{Status: algorithms.StatusEarly, Now: storeNow}}})
					}
				}
			}
			if !sent {
				t.Fatal("nothing was asked for")
			}
			for _, a := range m.Ages(now) {
				if a.ClockKnown && (a.ClockApart > maxTime || a.ClockApart < -maxTime) {
					t.Errorf("reply at %d: clocks %d apart", at, a.ClockApart)
				}
			}
			if v := m.views[b.ID]; v.pending(quantity.Cell(storeNow/b.Cell)).units < 0 ||
				v.pending(quantity.Cell(storeNow/b.Cell)).units > 10*b.Limit {
				t.Errorf("grant %+v: %d pending", g, v.pending(quantity.Cell(storeNow/b.Cell)).units)
			}
		}
	}
}
