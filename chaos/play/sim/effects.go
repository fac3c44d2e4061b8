package sim

import (
	"slices"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/trade/peer"
)

// act carries out one act of the protocol after a time (µs). The node may die just before it, or
// just after it, when nobody has heard of it yet. row is the row of the fault matrix that such a
// death counts for.
func (n *node) act(row int, after int64, do func()) {
	n.in(after, func() {
		if n.mayDie(row) {
			return
		}
		do()
		if !n.mayDie(row) {
			n.drain()
		}
	})
}

// The times that a call to the store and a journal commit take, µs.
func (n *node) storeTime() int64 { return 200 + n.random.Int64N(800) }
func (n *node) fsyncTime() int64 { return 500 + n.random.Int64N(4000) }

// carry schedules the effects of a step of the machine.
func (n *node) carry(out exchange.Effects) {
	// Functions that run later must not hold on to out, which is large.
	if lends := out.Lend; len(lends) > 0 {
		n.act(rowLenderDies, n.storeTime(), func() { n.lend(lends) })
	}
	for _, r := range out.Record {
		n.recording[r.ID] = r.Rows
		n.act(rowLenderDies, n.fsyncTime(), func() { n.live.Record(r) })
	}
	for _, a := range out.Replies {
		n.reply(a)
	}
	for _, c := range out.Calls {
		n.call(c)
	}
	if credits := out.Credits; len(credits) > 0 {
		n.act(rowBorrowerDies, n.storeTime(), func() { n.credit(credits) })
	}
	for _, c := range out.Consults {
		n.act(rowNodeRestarts, n.storeTime(), func() { n.live.Consult(c) })
	}
	for _, r := range out.Recalls {
		n.recall(r)
	}
	for _, t := range out.Testify {
		if answer := n.testimonies[t.ID]; answer != nil {
			delete(n.testimonies, t.ID)
			answer(t.Testimonies)
		}
	}
	if restores := out.Restores; len(restores) > 0 {
		n.act(rowNodeRestarts, n.storeTime(), func() { n.restore(restores) })
	}
	for _, h := range out.Hints {
		if n.live != nil { // the node may have died when it replied
			n.gossip(h)
		}
	}
	for _, s := range out.Settled {
		n.settle(s)
	}
}

func (n *node) lend(all []exchange.Lend) {
	n.lending[all[0].ID] = all
	n.live.Lend(all)
	for _, l := range all {
		n.checkHeard(l)
		n.touch(l.Bucket.ID, l.Generation)
	}
}

func (n *node) credit(all []exchange.Credit) {
	n.live.Credit(all)
	for _, c := range all {
		n.touch(c.Bucket.ID, c.ForGeneration)
	}
}

func (n *node) restore(all []exchange.Restore) {
	n.live.Restore(all)
	for _, r := range all {
		n.w.moves(n.w.bucket(r.Bucket.ID))
	}
}

// call carries a message to a node of a peer region, and the reply back. If the reply does not come
// within the timeout, the caller hears Unanswered.
func (n *node) call(c exchange.Call) {
	to := n.target(c.Peer)
	if to == nil {
		n.in(1, func() { n.hear(exchange.Unanswered{ID: c.ID}) })
		return
	}
	b, err := peer.MarshalMessage(c.Message)
	n.w.must(err)
	b = n.newer(b)
	n.w.counts.sent(len(b), len(c.Message.Asks) > 0)
	n.calls[c.ID] = true
	life := n.life
	over := func(e exchange.Event) {
		if n.life == life && n.calls[c.ID] {
			delete(n.calls, c.ID)
			n.hear(e)
			n.drain()
		}
	}
	n.in(c.Timeout, func() {
		if n.calls[c.ID] {
			n.prefers[to.r.index]++
		}
		over(exchange.Unanswered{ID: c.ID})
	})
	n.w.carry(n.r.index, to.r.index, false, func() {
		to.asks(b, func(reply []byte) {
			n.w.carry(to.r.index, n.r.index, false, func() {
				n.at(n.w.now, func() {
					r, err := peer.UnmarshalReply(reply)
					n.w.must(err)
					n.heard[to.r.index] = n.w.now
					over(exchange.Answered{ID: c.ID, Reply: r})
				})
			})
		})
	})
}

// newer adds a field of a later version to a message, if the node's region has such a version.
func (n *node) newer(b []byte) []byte {
	if !n.w.plan.Regions[n.r.index].Newer {
		return b
	}
	n.w.fired(rowVersions)
	return append(b, 0xc0, 0x3e, 0x01) // field 1000, a varint
}

// target returns the node that this node calls in a region, nil if there is no such region. One that
// is gone for good is not called, because gossip says so.
func (n *node) target(name string) *node {
	for _, r := range n.w.regions {
		if r.name == name {
			there := slices.DeleteFunc(slices.Clone(r.nodes), func(m *node) bool { return m.gone })
			return there[n.prefers[r.index]%len(there)]
		}
	}
	return nil
}

// asks delivers a message to the node. The reply goes to answer.
func (n *node) asks(b []byte, answer func([]byte)) {
	n.at(n.w.now, func() {
		m, err := peer.UnmarshalMessage(b)
		if err != nil {
			return
		}
		n.asked++
		n.replies[n.asked] = func(r exchange.Reply) {
			b, err := peer.MarshalReply(r)
			n.w.must(err)
			b = n.newer(b)
			n.w.counts.sent(len(b), len(r.Grants) > 0)
			answer(b)
		}
		n.serving[n.asked] = m
		n.hear(n.live.Asked(n.asked, m))
		n.drain()
	})
}

// reply sends a reply, if somebody waits for it.
func (n *node) reply(a exchange.Answer) {
	send := n.replies[a.ID]
	if send == nil {
		return
	}
	n.checkDurable(n.serving[a.ID], a.Reply)
	delete(n.replies, a.ID)
	delete(n.serving, a.ID)
	send(a.Reply)
	n.mayDie(rowLenderDies)
}

// recall carries a recovery's question to a node of a peer region, or to all other nodes of this
// region, and the answers back.
func (n *node) recall(q exchange.Recall) {
	var to []*node
	if q.Region == n.r.name {
		to = slices.DeleteFunc(slices.Clone(n.r.nodes), func(m *node) bool { return m == n })
	} else if one := n.target(q.Region); one != nil && q.All {
		to = slices.Clone(one.r.nodes)
	} else if one != nil {
		to = append(to, one)
	}
	b, err := peer.MarshalQuestion(q.Question)
	n.w.must(err)
	life, answers := n.life, 0
	gathered := func() {
		if n.life == life && (q.All || q.Region == n.r.name) {
			n.hear(exchange.Gathered{Question: q.Question, Region: q.Region, Whole: 0 < answers && answers == len(to)})
			n.drain()
		}
	}
	if len(to) == 0 {
		n.in(1, gathered)
	} else {
		n.in(q.Timeout, gathered)
	}
	for _, m := range to {
		n.send(m, false, func() {
			m.questioned(b, func(answer []byte) {
				m.send(n, false, func() {
					n.at(n.w.now, func() {
						all, err := peer.UnmarshalTestimonies(answer, q.Question)
						n.w.must(err)
						if n.life == life {
							n.hear(exchange.Testified{Testimonies: all})
							n.drain()
						}
						if answers++; answers == len(to) {
							gathered()
						}
					})
				})
			})
		})
	}
}

// questioned delivers a recovery's question to the node. The testimonies go to answer.
func (n *node) questioned(b []byte, answer func([]byte)) {
	n.at(n.w.now, func() {
		q, err := peer.UnmarshalQuestion(b)
		n.w.must(err)
		n.asked++
		n.testimonies[n.asked] = func(all exchange.Testimonies) {
			b, err := peer.MarshalTestimonies(all)
			n.w.must(err)
			answer(b)
		}
		n.hear(n.live.Questioned(n.asked, q))
		n.drain()
	})
}

// gossip carries a hint to all other nodes.
func (n *node) gossip(h exchange.Hint) {
	b, err := n.live.PublishHint(h)
	n.w.must(err)
	for _, r := range n.w.regions {
		for _, m := range r.nodes {
			if m == n {
				continue
			}
			n.w.counts.gossiped(len(b))
			n.send(m, true, func() { m.hints(b) })
		}
	}
}

// hints delivers gossiped hints to the node.
func (n *node) hints(b []byte) {
	n.at(n.w.now, func() {
		_ = n.live.MergeHints(b) // ignores what it cannot decode
		n.drain()
	})
}
