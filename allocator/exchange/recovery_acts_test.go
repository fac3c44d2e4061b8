//go:build !race

package exchange

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// next does each act that is possible in a world, each in a copy of the world.
func (s *recoverySearch) next(w world, found func(did, world)) {
	for _, id := range s.set(w.sent) {
		m := s.messages.all[id]
		for n := range searchNodes {
			if int(m.toRegion) == regionOf[n] || m.toRegion < 0 && int(m.toNode) == n {
				if m.asks != nil && n == nodeB && w.left.asked == 0 {
					continue
				}
				to := w
				found(did{s.deliver(&to, n, id, m), int8(n), id}, to)
			}
		}
	}
	for _, id := range s.set(w.due) {
		to := w
		to.due = s.without(to.due, func(other int32) bool { return other == id })
		e := s.effects.all[id]
		found(did{s.done(&to, int(e.node), id, e), e.node, id}, to)
	}
	for n := range searchNodes {
		s.ownActs(w, n, found)
	}
}

// ownActs has a node ask, lose what it may lose, and continue its recoveries.
func (s *recoverySearch) ownActs(w world, n int, found func(did, world)) {
	r := regionOf[n]
	act := func(what string, can bool, do func(to *world)) {
		if can {
			to := w
			do(&to)
			found(did{what: what, node: int8(n)}, to)
		}
	}
	act("asks for a unit", w.left.asks[r] > 0, func(to *world) {
		to.left.asks[r]--
		s.carry(to, n, s.step(to, n, stepKey{what: "ask"}, func(m *Machine) {
			v := m.view(searchNow, s.bucket)
			m.ask(searchNow, v, m.peers[0], s.cell, 1, v.borrowed(s.cell))
		}))
	})
	act("admits a unit", w.left.admit[r] > 0, func(to *world) { s.admit(to, n) })
	act("opens its store, which lost everything", w.left.flush[r] > 0, func(to *world) {
		to.left.flush[r]--
		to.losses++
		s.flush(to, r)
		s.stand(to, n)
	})
	act("finds the bucket deleted", w.left.delete > 0 && r == regionI, func(to *world) {
		to.left.delete--
		to.losses++
		s.delete(to, n)
	})
	stands := s.machine(&w, n).generation == s.store(&w, r).Generation
	act("finds its store opened anew", !stands, func(to *world) { s.stand(to, n) })
	act("recovers", stands && s.lostUnknown(&w, n), func(to *world) { s.recover(to, n) })
	act("dies and starts anew", w.left.crash[n] > 0, func(to *world) {
		to.left.crash[n]--
		s.restart(to, n)
	})
	act("dies, loses its journal and starts anew", w.left.journal[n] > 0, func(to *world) {
		to.left.journal[n]--
		to.nodes[n].journal, to.nodes[n].broken = s.journals.id(map[string]Row{}), true
		to.nodes[n].saw = 0
		s.restart(to, n)
	})
	waiting := s.machine(&w, n).recoveries["b"]
	act("loses patience", waiting != nil && !waiting.restored && !waiting.awaitingStore &&
		waiting.began == searchNow, func(to *world) {
		s.carry(to, n, s.step(to, n, stepKey{what: "patience"}, func(m *Machine) {
			m.recoveries["b"].began = 0
			m.out = Effects{}
			m.continueRecoveries(searchNow)
		}))
	})
}

// flush empties a region's store, and opens it under the next generation.
func (s *recoverySearch) flush(w *world, r int) {
	next := s.store(w, r).Generation + 1
	s.call(w, r, callKey{what: "flush"}, func(t *algorithms.Twin, at quantity.StoreTime,
		_ algorithms.Fence) any {
		t.Flush()
		return t.Open(at, algorithms.Open{Generation: next, Region: searchRegions[r],
			Epoch: epochForTests, Lost: true})
	})
}

// delete deletes region i's bucket, which a node that knew of it notices.
func (s *recoverySearch) delete(w *world, n int) {
	s.call(w, regionI, callKey{what: "delete", gen: s.store(w, regionI).Generation},
		func(t *algorithms.Twin, at quantity.StoreTime, g algorithms.Fence) any {
			t.Delete("b")
			if !s.unruled.sameGeneration {
				t.Open(at, algorithms.Open{Expected: g.Generation, Generation: g.Generation + 1,
					Region: "i", Epoch: epochForTests})
				g.Generation++
			}
			return t.Decide(at, algorithms.Decide{Fence: g, Commit: true,
				Costs: []quantity.Units{1},
				Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: "b",
					Terms: s.terms(regionI), ExistsUntil: at + 1}}}})
		})
	s.stand(w, n)
}

// lost returns when the bucket was lost, if the node's own store says so.
func (s *recoverySearch) lost(w *world, r int) (quantity.StoreTime, bool) {
	answer, _ := s.call(&world{stores: w.stores, losses: w.losses}, r,
		callKey{what: "lost", gen: s.store(w, r).Generation},
		func(t *algorithms.Twin, at quantity.StoreTime, g algorithms.Fence) any {
			return t.Decide(at, algorithms.Decide{Fence: g,
				Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: "b",
					Terms: s.terms(r)}}}})
		})
	d := answer.(algorithms.Decided)
	return d.LostAt, d.Status == algorithms.StatusLost
}

// lostUnknown reports whether a node's store has lost the bucket and the node does not know.
func (s *recoverySearch) lostUnknown(w *world, n int) bool {
	at, lost := s.lost(w, regionOf[n])
	known := s.machine(w, n).recoveries["b"]
	return lost && w.left.recover[regionOf[n]] > 0 && (known == nil || known.lostAt != at)
}

// stand has a node take in its store's generation.
func (s *recoverySearch) stand(w *world, n int) {
	r := regionOf[n]
	generation := s.store(w, r).Generation
	s.step(w, n, stepKey{what: "stood", a: int32(generation)}, func(m *Machine) {
		m.Step(searchNow, TenureChanged{Generation: generation, Epoch: epochForTests,
			Peers: []string{searchRegions[1-r]}})
	})
}

// recover has a node take in the loss of the bucket.
func (s *recoverySearch) recover(w *world, n int) {
	r := regionOf[n]
	if at, lost := s.lost(w, r); lost && w.left.recover[r] > 0 {
		w.left.recover[r]--
		s.carry(w, n, s.step(w, n, stepKey{what: "lost", a: int32(at - searchStart),
			b: int32(w.losses)}, func(m *Machine) {
			m.Step(searchNow, Lost{Generation: m.generation, Buckets: []LostBucket{{s.bucket, at}},
				Now: quantity.StoreTime(searchStart + int64(w.losses))})
		}))
	}
}

// restart begins another life of a node.
func (s *recoverySearch) restart(w *world, n int) {
	w.nodes[n].life++
	w.due = s.without(w.due, func(id int32) bool { return int(s.effects.all[id].node) == n })
	w.nodes[n].machine = s.fresh(n, s.store(w, regionOf[n]).Generation)
}

// admit has a node charge a unit if the store lets it. What the store counts as used then is what
// the node remembers.
func (s *recoverySearch) admit(w *world, n int) {
	r := regionOf[n]
	answer, _ := s.call(w, r, callKey{what: "admit", gen: s.machine(w, n).generation},
		func(t *algorithms.Twin, at quantity.StoreTime, g algorithms.Fence) any {
			d := t.Decide(at, algorithms.Decide{Fence: g, Commit: true, Costs: []quantity.Units{1},
				Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: "b",
					Terms: s.terms(r)}}}})
			if d.Status != algorithms.StatusOK || !d.Answers[0].Admitted {
				return quantity.Units(0)
			}
			return d.Buckets[0].Used
		})
	if used := answer.(quantity.Units); used > 0 {
		w.used[r]++
		w.left.admit[r]--
		w.nodes[n].saw = int8(used)
	}
}

// deliver has a node hear a message, and returns a description of the message.
func (s *recoverySearch) deliver(w *world, n int, id int32, m message) string {
	if m.question == nil {
		w.sent = s.without(w.sent, func(other int32) bool { return other == id })
	}
	switch {
	case m.asks != nil:
		s.asked(w, n, id, m)
		return "is asked"
	case m.reply != nil:
		reply := *m.reply
		if s.unruled.anyBorrower {
			reply.ForGeneration = s.machine(w, n).generation
		}
		s.carry(w, n, s.step(w, n, stepKey{what: "answered", a: id, b: int32(reply.ForGeneration)},
			func(to *Machine) {
				to.Step(searchNow, Answered{ID: m.call, Reply: reply})
			}))
		return "hears"
	case m.question != nil:
		s.questioned(w, n, id, m)
		return "is questioned"
	}
	s.carry(w, n, s.testified(w, id, m))
	return "learns"
}

// asked has a lender's store debit at once. The row then waits for the journal.
func (s *recoverySearch) asked(w *world, n int, id int32, m message) {
	r := regionOf[n]
	if r == regionI {
		w.left.asked = 1
	}
	out := s.step(w, n, stepKey{what: "asked", a: id}, func(to *Machine) {
		to.Step(searchNow, Asked{ID: uint64(id) + 1, Message: *m.asks,
			Buckets: []*Bucket{s.bucket}})
	})
	if len(out.Lend) == 0 {
		return
	}
	l := out.Lend[0]
	answer, given := s.call(w, r, callKey{what: fmt.Sprintf("lend %d %d %d", l.Lent, l.Returned,
		l.Kept), gen: s.machine(w, n).generation},
		func(t *algorithms.Twin, at quantity.StoreTime, g algorithms.Fence) any {
			return t.Lend(at, algorithms.Lend{Fence: g, Target: algorithms.Target{Key: "b",
				Terms: s.terms(r)}, Debit: l.Debit})
		})
	out = s.step(w, n, stepKey{what: "lent", a: id, b: given}, func(to *Machine) {
		to.Step(searchNow, Lent{ID: uint64(id) + 1,
			Given: []algorithms.Given{answer.(algorithms.Given)}})
	})
	for _, rec := range out.Record {
		s.wait(w, n, effect{node: int8(n), record: &rec,
			reply: message{toRegion: -1, toNode: m.node, life: m.life, call: m.call}})
	}
}

// questioned has a node answer a question.
func (s *recoverySearch) questioned(w *world, n int, id int32, m message) {
	ask := Questioned{ID: uint64(id) + 1, Question: *m.question, Buckets: []*Bucket{s.bucket}}
	c := Consult{ID: ask.ID, Buckets: ask.Buckets, Question: ask.Question}
	if mate := m.toRegion < 0; !mate || !s.unruled.noFloor {
		c = s.step(w, n, stepKey{what: "questioned", a: id},
			func(to *Machine) { to.Step(searchNow, ask) }).Consults[0]
	}
	var all []Testimony
	if c.Peer == "" {
		all = s.remembers(w, n, c)
	} else {
		all = s.heard(w, n, c, id)
	}
	out := s.step(w, n, stepKey{what: "testify", a: id, b: s.answers.id(any(all))},
		func(to *Machine) {
			to.Step(searchNow, Consulted{Consult: c, All: all})
		})
	s.send(w, message{toRegion: -1, toNode: m.node, life: m.life,
		answers: &out.Testify[0].Testimonies})
}

// done carries out an effect that waited, and returns which.
func (s *recoverySearch) done(w *world, n int, id int32, e effect) string {
	r := regionOf[n]
	switch {
	case e.record != nil:
		s.record(w, n, e.record.Rows)
		out := s.step(w, n, stepKey{what: "recorded", a: id},
			func(to *Machine) { to.Step(searchNow, Recorded{ID: e.record.ID, OK: true}) })
		for _, a := range out.Replies {
			e.reply.reply = &a.Reply
			s.send(w, e.reply)
		}
		return "records, and answers with"
	case e.credit != nil:
		c := e.credit.Credit
		if s.unruled.noFence {
			c.PeerGeneration = s.store(w, 1-r).Generation
		}
		generation := c.ForGeneration
		if s.unruled.lateCredit {
			generation = s.machine(w, n).generation
		}
		answer, credited := s.call(w, r,
			callKey{what: fmt.Sprint("credit of generation ", c.PeerGeneration), a: id,
				gen: generation},
			func(t *algorithms.Twin, at quantity.StoreTime, g algorithms.Fence) any {
				return t.Credit(at, algorithms.Credit{Fence: g, Target: algorithms.Target{Key: "b",
					Terms: s.terms(r)}, Announcement: c.Announcement})
			})
		s.carry(w, n, s.step(w, n, stepKey{what: "credited", a: id, b: credited},
			func(to *Machine) {
				to.Step(searchNow, Credited{Credit: e.credit.Credit,
					Result: answer.(algorithms.Credited)})
			}))
		return "credits"
	}
	c := e.restore.Restore
	answer, restored := s.call(w, r, callKey{what: "restore", a: id, gen: c.Generation},
		func(t *algorithms.Twin, at quantity.StoreTime, g algorithms.Fence) any {
			return t.Restore(at, algorithms.Restore{Fence: g, Target: algorithms.Target{Key: "b",
				Terms: s.terms(r)}, LostAt: c.LostAt, Known: c.Known})
		})
	s.carry(w, n, s.step(w, n, stepKey{what: "restored", a: id, b: restored}, func(to *Machine) {
		to.Step(searchNow, Restored{Restore: c, Result: answer.(algorithms.Restored)})
	}))
	return "restores"
}

// record makes rows durable. Values lower than the stored ones change nothing.
func (s *recoverySearch) record(w *world, n int, rows []Row) {
	journal := maps.Clone(s.journals.all[w.nodes[n].journal])
	for _, row := range rows {
		key := fmt.Sprint(row.Peer, row.Cell)
		old := journal[key]
		row.Lent, row.Returned, row.Generation = max(row.Lent, old.Lent),
			max(row.Returned, old.Returned), 0
		journal[key] = row
	}
	w.nodes[n].journal = s.journals.id(journal)
}

// way tells how a world was reached.
func (s *recoverySearch) way(at int) string {
	var acts []string
	for v := s.visits[at]; v.before >= 0; v = s.visits[v.before] {
		acts = append(acts, s.tell(v.did))
	}
	slices.Reverse(acts)
	return strings.Join(acts, "; ")
}

func (s *recoverySearch) tell(d did) string {
	text := searchNodes[d.node] + " " + d.what
	switch d.what {
	case "is asked", "hears", "is questioned", "learns":
		m := s.messages.all[d.item]
		switch {
		case m.asks != nil:
			return fmt.Sprintf("%s by %s for %d lent, %d returned", text, searchNodes[m.node],
				m.asks.Asks[0].Lent, m.asks.Asks[0].Returned)
		case m.reply != nil:
			return fmt.Sprintf("%s that %d is lent, %d returned", text, m.reply.Grants[0].Lent,
				m.reply.Grants[0].Returned)
		case m.question != nil:
			return fmt.Sprintf("%s by %s", text, searchNodes[m.node])
		}
		return fmt.Sprintf("%s from %s: %v", text, m.answers.Node, m.answers.All[0].Rows)
	case "credits":
		c := s.effects.all[d.item].credit
		return fmt.Sprintf("%s %d lent, %d returned", text, c.Lent, c.Returned)
	case "restores":
		r := s.effects.all[d.item].restore
		return fmt.Sprintf("%s: known %v, unknown %v, rows %v, used %d", text, r.KnownPeers,
			r.UnknownPeers, r.Rows, r.Use.Units)
	case "records, and answers with":
		row := s.effects.all[d.item].record.Rows[0]
		return fmt.Sprintf("%s %d lent, %d returned", text, row.Lent, row.Returned)
	}
	return text
}
