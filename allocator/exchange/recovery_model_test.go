//go:build !race

package exchange

import (
	"maps"
	"math"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// The world of the recovery search: region i with nodes A and B, region j with node J, one bucket,
// and one cell in which time stands still. Machines and stores are the production's; a message may
// be on its way for ever, which is how messages are lost, nodes are down and peers are away. What a
// step of a machine leads to in its own store is done at once where another order could not matter,
// and waits otherwise: rows for the journal, credits, restores.

const (
	regionI = iota
	regionJ
)

const (
	nodeA = iota
	nodeB
	nodeJ
)

const (
	searchI, searchJ = 2, 1 // units that the regions are entitled to

	searchWindow = 3600 * allocator.Second
	searchStart  = 1001*searchWindow - 30*allocator.Second // when the search begins: rights of the next cell are moved, too
	searchNow    = 100 * allocator.Second                  // of the nodes' clocks, for ever
)

var (
	searchRegions = [2]string{"i", "j"}
	searchNodes   = [3]string{"A", "B", "J"}
	regionOf      = [3]int{regionI, regionI, regionJ}
)

// world is one state. Its machines, stores, journals, messages and effects are numbers, see search.
type world struct {
	stores [2]int32
	nodes  [3]nodeState
	used   [2]int8 // units that were admitted, whatever the store remembers
	losses int8
	left   budget
	sent   int32 // set of messages under way
	due    int32 // set of effects under way
}

type nodeState struct {
	machine, journal int32
	broken           bool // the journal does not hold every row
	saw              int8 // what was used when the node last admitted something, by its store
	life             int8
}

// waiting says which effects wait, so that others can happen in between.
type waiting struct{ credits, restores bool }

// budget is how often the environment may still do things.
type budget struct {
	asks    [2]int8 // by borrower
	admit   [2]int8
	recover [2]int8 // recoveries begun
	asked   int8    // asks that were delivered, counted up to one: the first goes to A
	flush   [2]int8
	delete  int8 // of i's bucket
	crash   [3]int8
	journal [3]int8 // lost
}

// unruled leaves out rules of the protocol, in the driver.
type unruled struct {
	noFence bool // a peer credits rows as if they were of the present generation
	noFloor bool // a mate's machine does not hear the question that its journal answers
	// A reply for an old generation of the borrower counts as one for its present generation.
	anyBorrower bool
	// A credit for an old generation of the borrower's store is made in its present one.
	lateCredit  bool
	peerWhole   bool // a peer does not say that its own store lost data
	nodeWhole   bool // a node whose journal was lost says that it holds every row
	useWhole    bool // and that it saw all the use
	untoldNone  bool // what a node has not told of was not used
	oneMemory   bool // a region's use is known once one of its nodes told
	unknownNone bool // peers that are not known count as lent nothing
	// A deleted bucket is recovered under the generation in which it was deleted.
	sameGeneration bool
}

// message is one under way, to any node of a region or to one node in one life.
type message struct {
	toRegion int8 // -1: to a node
	toNode   int8
	life     int8
	node     int8   // that asks
	call     uint64 // of it
	asks     *Message
	reply    *Reply
	question *Question
	answers  *Testimonies
}

// effect is one that waits to be carried out.
type effect struct {
	node    int8
	record  *Record
	reply   message // that a record lets go
	credit  *effectCredit
	restore *effectRestore
}

type (
	effectCredit  struct{ Credit }
	effectRestore struct{ Restore }
)

// did is an act, for the description of the way to a broken state.
type did struct {
	what string
	node int8
	item int32
}

// recoverySearch goes through the worlds of one space.
type recoverySearch struct {
	bucket *Bucket
	unruled
	waiting  // what waits at a node; other effects are done at once
	cell     quantity.Cell
	machines table[*Machine]
	stores   table[*algorithms.Twin]
	journals table[map[string]Row]
	messages table[message]
	effects  table[effect]
	sets     sets
	answers  table[any] // of stores
	steps    map[stepKey]stepped
	calls    map[callKey]called
	visits   []visited
	seen     map[world]struct{}
	// most is the largest number of units that a region ever had, including those it used.
	most [2]quantity.Units
}

type visited struct {
	world
	before int32
	did    did
}

// stepKey identifies a step of a machine, callKey a call of a store.
type stepKey struct {
	machine, a, b int32
	what          string
}
type stepped struct {
	machine int32
	out     *Effects
}
type callKey struct {
	store, a int32
	losses   int8
	what     string
	gen      uint64
}
type called struct{ store, answer int32 }

func newRecoverySearch(space recoverySpace, without unruled) *recoverySearch {
	s := &recoverySearch{unruled: without, waiting: space.waiting, cell: searchStart/searchWindow +
		space.ahead,
		steps: map[stepKey]stepped{}, calls: map[callKey]called{}, seen: map[world]struct{}{}}
	s.bucket = &Bucket{ID: "b", Epoch: epochForTests, Kind: algorithms.FixedWindow,
		Limit:  searchI + searchJ,
		Window: searchWindow, Cell: searchWindow, Tick: 1, Recovered: true, Lending: allocator.PPM,
		Borrowing:    -1,
		Entitlements: map[string]quantity.Units{"i": searchI, "j": searchJ},
		Bursts:       map[string]quantity.Units{}}
	w := world{left: space.budget, sent: s.sets.of(nil), due: s.sets.of(nil)}
	for r, name := range searchRegions {
		t := &algorithms.Twin{}
		t.Open(searchStart, algorithms.Open{Generation: 1, Region: name, Epoch: epochForTests})
		w.stores[r] = s.stores.id(t)
	}
	for n := range w.nodes {
		w.nodes[n] = nodeState{machine: s.fresh(n, 1), journal: s.journals.id(map[string]Row{})}
	}
	s.add(visited{world: w, before: -1})
	return s
}

// fresh returns a machine that has begun under a generation and hears its peer.
func (s *recoverySearch) fresh(n int, generation uint64) int32 {
	r := regionOf[n]
	nodes := []int{2, 1}[r]
	if s.unruled.oneMemory {
		nodes = 1
	}
	m := New(searchRegions[r], searchNodes[n], Options{Nodes: nodes})
	m.Step(searchNow, TenureChanged{Generation: generation, Epoch: epochForTests,
		Peers: []string{searchRegions[1-r]}})
	m.peers[0].answeredCall(searchNow, searchNow)
	m.noteStoreTime(searchStart, searchNow)
	return s.machines.id(m)
}

// step steps a node's machine. The key must identify the event.
func (s *recoverySearch) step(w *world, n int, key stepKey, do func(m *Machine)) *Effects {
	key.machine = w.nodes[n].machine
	got, ok := s.steps[key]
	if !ok {
		m := cloned(s.machines.all[key.machine])
		do(m)
		out := m.out
		m.out, m.stats = Effects{}, Stats{}
		got = stepped{s.machines.id(m), &out}
		s.steps[key] = got
	}
	w.nodes[n].machine = got.machine
	return got.out
}

// call calls a region's store for a node.
func (s *recoverySearch) call(w *world, r int, key callKey,
	do func(t *algorithms.Twin, at quantity.StoreTime, g algorithms.Fence) any) (any, int32) {
	key.store, key.losses = w.stores[r], w.losses
	got, ok := s.calls[key]
	if !ok {
		t := cloned(s.stores.all[key.store])
		at := quantity.StoreTime(searchStart + int64(w.losses))
		answer := do(t, at, algorithms.Fence{Generation: key.gen, Epoch: epochForTests, Clock: at})
		got = called{s.stores.id(t), s.answers.id(answer)}
		s.calls[key] = got
	}
	w.stores[r] = got.store
	return s.answers.all[got.answer], got.answer
}

func (s *recoverySearch) machine(w *world, n int) *Machine {
	return s.machines.all[w.nodes[n].machine]
}
func (s *recoverySearch) store(w *world, r int) *algorithms.Twin {
	return s.stores.all[w.stores[r]]
}
func (s *recoverySearch) terms(r int) algorithms.Terms { return s.bucket.Terms(searchRegions[r]) }
func (s *recoverySearch) set(id int32) []int32         { return s.sets.all[id] }

// with returns a set with an item added, without a set with it removed.
func (s *recoverySearch) with(set, item int32) int32 {
	all := s.set(set)
	at, ok := slices.BinarySearch(all, item)
	if ok {
		return set
	}
	return s.sets.of(slices.Insert(slices.Clone(all), at, item))
}

func (s *recoverySearch) without(set int32, drop func(item int32) bool) int32 {
	all := s.set(set)
	if !slices.ContainsFunc(all, drop) {
		return set
	}
	return s.sets.of(slices.DeleteFunc(slices.Clone(all), drop))
}

func (s *recoverySearch) send(w *world, m message) { w.sent = s.with(w.sent, s.messages.id(m)) }

func (s *recoverySearch) wait(w *world, n int, e effect) {
	id := s.effects.id(e)
	if e.credit != nil && !s.credits || e.restore != nil && !s.restores {
		s.done(w, n, id, e)
		return
	}
	w.due = s.with(w.due, id)
}

// carry carries out, or schedules, the effects of a node's step.
func (s *recoverySearch) carry(w *world, n int, out *Effects) {
	life := w.nodes[n].life
	for _, c := range out.Calls {
		s.send(w, message{toRegion: int8(1 - regionOf[n]), node: int8(n), life: life, call: c.ID,
			asks: &c.Message})
	}
	for _, c := range out.Credits {
		s.wait(w, n, effect{node: int8(n), credit: &effectCredit{c}})
	}
	for _, r := range out.Restores {
		if s.unruled.unknownNone {
			r.KnownPeers, r.UnknownPeers = slices.Concat(r.KnownPeers, r.UnknownPeers), nil
		}
		if s.unruled.untoldNone {
			r.Most = 0
		}
		s.wait(w, n, effect{node: int8(n), restore: &effectRestore{r}})
	}
	for _, r := range out.Recalls {
		m := message{toRegion: -1, toNode: int8(nodeA + nodeB - n), node: int8(n), life: life,
			question: &r.Question}
		if r.Region != searchRegions[regionOf[n]] {
			m.toRegion, m.toNode = int8(1-regionOf[n]), 0
		}
		s.send(w, m)
		if m.toRegion == -1 { // as if its answer never came
			s.carry(w, n, s.step(w, n, stepKey{what: "gathered", a: s.answers.id(any(r.Question))}, func(m *Machine) {
				m.Step(searchNow, Gathered{Question: r.Question, Region: r.Region})
			}))
		}
	}
	for _, c := range out.Consults {
		if c.ID == 0 {
			all := s.remembers(w, n, c)
			id := s.answers.id(any(all))
			s.carry(w, n, s.step(w, n, stepKey{what: "consulted", a: id}, func(m *Machine) {
				m.Step(searchNow, Consulted{Consult: c, All: all})
			}))
		}
	}
}

// remembers returns what a node finds in its journal. The lag of its checkpoints is a separate term
// of the bound, so it remembers all that it saw of the use.
func (s *recoverySearch) remembers(w *world, n int, c Consult) []Testimony {
	all := make([]Testimony, len(c.Question.Buckets))
	state := w.nodes[n]
	for i, d := range c.Question.Buckets {
		t := Testimony{Bucket: d.Bucket}
		if state.saw > 0 {
			t.Use = algorithms.Use{Cell: searchStart / searchWindow,
				Units: quantity.Units(state.saw), At: searchStart}
		}
		if state.broken && !s.unruled.nodeWhole {
			t.WholeSince = math.MaxInt64
		}
		if state.broken && !s.unruled.useWhole {
			t.UseSince = math.MaxInt64
		}
		rows := s.journals.all[state.journal]
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if row := rows[key]; row.Cell >= d.From && row.Cell <= d.To {
				t.Rows = append(t.Rows, algorithms.RememberedRow{Peer: row.Peer, Cell: row.Cell,
					Lent: row.Lent, Returned: row.Returned})
			}
		}
		all[i] = t
	}
	return all
}

// heard returns what a node finds in its store about a peer's rows.
func (s *recoverySearch) heard(w *world, n int, c Consult, question int32) []Testimony {
	r := regionOf[n]
	answer, _ := s.call(w, r, callKey{what: "recall", a: question, gen: s.machine(w, n).generation},
		func(t *algorithms.Twin, at quantity.StoreTime, g algorithms.Fence) any {
			return t.Recall(at, algorithms.Recall{Fence: g, Target: algorithms.Target{Key: "b",
				Terms: s.terms(r)}, Peer: c.Peer, PeerGeneration: c.Generation})
		})
	got := answer.(algorithms.Recalled)
	t := Testimony{Bucket: "b", Refused: got.Status != algorithms.StatusOK, Now: got.Now,
		LostAt: got.LostAt}
	if s.unruled.peerWhole {
		t.LostAt = 0
	}
	t.Rows = got.By(searchRegions[r])
	return []Testimony{t}
}

// broken reports whether the regions have admitted, or could now admit, more than the limit.
func (s *recoverySearch) broken(w *world) bool {
	var sum quantity.Units
	for r := range searchRegions {
		answer, _ := s.call(&world{stores: w.stores, losses: w.losses}, r,
			callKey{what: "inspect", gen: s.store(w, r).Generation},
			func(t *algorithms.Twin, at quantity.StoreTime, g algorithms.Fence) any {
				i := t.Inspect(at, algorithms.Inspect{Fence: g, Target: algorithms.Target{Key: "b",
					Terms: s.terms(r)}})
				return [2]quantity.Units{i.Free, i.NextShare}
			})
		rights := answer.([2]quantity.Units)
		holds := rights[0] + quantity.Units(w.used[r])
		if s.cell != searchStart/searchWindow {
			holds = rights[1]
		}
		s.most[r] = max(s.most[r], holds)
		sum += holds
	}
	return sum > s.bucket.Limit
}

// add notes a world unless it was seen before. Messages that can have no effect any more are
// dropped first.
func (s *recoverySearch) add(v visited) bool {
	w := &v.world
	w.sent = s.without(w.sent,
		func(id int32) bool { return s.void(w, s.messages.all[id]) || s.stale(w, id) })
	if _, ok := s.seen[*w]; ok {
		return false
	}
	s.seen[*w] = struct{}{}
	s.visits = append(s.visits, v)
	return true
}

// void reports whether nobody waits for a message any more.
func (s *recoverySearch) void(w *world, m message) bool {
	asker := m.node
	if m.toRegion < 0 && m.question == nil {
		asker = m.toNode
	}
	if w.nodes[asker].life != m.life {
		return m.asks == nil // who answers an ask does not know
	}
	generation := s.machine(w, int(asker)).generation
	recovers := len(s.machine(w, int(asker)).recoveries) > 0
	switch {
	case m.question != nil:
		return !recovers || m.question.Generation != generation
	case m.answers != nil:
		return !recovers || m.answers.ForGeneration != generation
	case m.reply != nil:
		return s.machine(w, int(asker)).calls[m.call] == nil
	}
	return false
}

// stale reports whether an answer tells a node nothing new.
func (s *recoverySearch) stale(w *world, id int32) bool {
	m := s.messages.all[id]
	if m.answers == nil {
		return false
	}
	to := *w
	out := s.testified(&to, id, m)
	return to == *w && len(out.Restores) == 0
}

func (s *recoverySearch) testified(w *world, id int32, m message) *Effects {
	return s.step(w, int(m.toNode), stepKey{what: "testified", a: id},
		func(to *Machine) { to.Step(searchNow, Testified{*m.answers}) })
}
