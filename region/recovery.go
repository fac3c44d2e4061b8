package region

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/store"
)

// recover waits until a bucket that the store has lost is restored, as long as the request has time. It says whether
// deciding once more may help.
func (n *Node) recover(ctx context.Context, w waiting, a answered) bool {
	concerned := w.applied
	if a.part != nil {
		concerned = a.part
	}
	b := concerned[a.decided.Lost].bucket
	waits := &waiter{woken: make(chan bool, 1)}
	n.engine.waiters.add(b.ID, waits)
	defer n.engine.waiters.remove(b.ID, waits)
	if !n.lose(ctx, b, a.decided.LostAt, a.decided.Now) {
		return false
	}
	patience := time.NewTimer(time.Until(w.until))
	defer patience.Stop()
	select {
	case come := <-waits.woken:
		return come
	case <-patience.C:
	case <-ctx.Done():
	}
	return false
}

// lose has a bucket recovered that the store lost at a time, as of another. It says whether that is under way: not while
// the store is being opened, for what the machine is told before it stands anew it forgets.
func (n *Node) lose(ctx context.Context, b *exchange.Bucket, lostAt, now int64) bool {
	generation := n.store.Generation()
	if !b.Recovered || n.deleted(b.ID, lostAt) && n.beginAnew(context.WithoutCancel(ctx), generation) != nil || !n.standing.TryRLock() {
		return false
	}
	defer n.standing.RUnlock()
	return n.engine.post(exchange.Lost{Generation: n.store.Generation(), Now: now, Buckets: []exchange.LostBucket{{Bucket: b, At: lostAt}}})
}

// recall asks a peer region, or the other nodes of our own.
func (e *engine) recall(ctx context.Context, r exchange.Recall) {
	limited, cancel := context.WithTimeout(ctx, microseconds(r.Timeout))
	defer cancel()
	if r.Region == e.node.config.Region {
		e.node.peers.RecallAll(limited, r.Region, r.Question, func(t exchange.Testimonies) { e.deliver(exchange.Testified{Testimonies: t}) })
		return
	}
	all, err := e.node.peers.Recall(limited, r.Region, r.Question)
	if err != nil {
		e.node.log.Debug("peer region does not tell what it remembers", "region", r.Region, "err", err)
		return // the machine asks again
	}
	e.deliver(exchange.Testified{Testimonies: all})
}

// consult answers a question from the store, if it is a peer's, or else from the journal and memory.
func (e *engine) consult(ctx context.Context, c exchange.Consult) {
	var all []exchange.Testimony
	if c.Peer != "" {
		all = e.recollect(ctx, c)
	} else {
		for i, d := range c.Question.Buckets {
			t, err := e.remember(d, c.Buckets[i], c.Question.Generation)
			if err != nil {
				e.node.log.Error("the journal cannot be read: what this node lent counts as not known", "err", err)
			}
			all = append(all, t)
		}
	}
	e.deliver(exchange.Consulted{Consult: c, All: all})
}

// remember says what this node's journal and memory hold of a bucket, in use before a generation of the store. One that it
// remembers not to have used need not be looked up. A journal that cannot be read is not known to be whole
// since any time; what was seen counts all the same.
func (e *engine) remember(d exchange.Doubt, b *exchange.Bucket, generation uint64) (exchange.Testimony, error) {
	if b != nil && !e.node.seen.usedBefore(d.Bucket, generation) {
		since, counts := e.node.seen.since.Load(), b.Terms(e.node.config.Region).CountsSince(d.From*b.Cell)
		if since <= min(counts, (d.From-1)*b.Cell) {
			return exchange.Testimony{Bucket: d.Bucket, WholeSince: since, UseSince: since}, nil
		}
	}
	t := exchange.Testimony{Bucket: d.Bucket, WholeSince: math.MaxInt64, UseSince: math.MaxInt64, Use: e.node.seen.use(d.Bucket)}
	if t.Use != (algorithms.Use{}) { // what it saw says all that was used since then
		t.UseSince = e.node.seen.since.Load()
	}
	checkpoints, err := e.node.journal.Checkpoints(d.Bucket)
	if err != nil {
		return t, err
	}
	for _, c := range checkpoints {
		if c.Cell > t.Use.Cell || c.Cell == t.Use.Cell && c.At > t.Use.At {
			t.Use = algorithms.Use{Cell: c.Cell, Units: c.Used, At: c.At}
		}
	}
	rows, err := e.node.journal.RowsOf(d.Bucket, d.From, d.To)
	if err != nil {
		return t, err
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, exchange.Remembered{Peer: r.Peer, Cell: r.Cell, Lent: r.Lent, Returned: r.Returned})
	}
	t.WholeSince = e.node.journal.WholeSince()
	if b == nil || b.Recovered { // else use is not written down
		t.UseSince = min(t.UseSince, t.WholeSince)
	}
	return t, nil
}

// recollect says what this region's store has heard from a peer of buckets, and has it fence.
func (e *engine) recollect(ctx context.Context, c exchange.Consult) []exchange.Testimony {
	rules := e.node.rules.Load()
	all := make([]exchange.Testimony, len(c.Question.Buckets))
	var calls []algorithms.Recall
	var places []int
	for i, d := range c.Question.Buckets {
		all[i] = exchange.Testimony{Bucket: d.Bucket, Refused: true}
		if b := c.Buckets[i]; b != nil {
			calls = append(calls, algorithms.Recall{Fence: algorithms.Fence{Epoch: b.Epoch}, Target: rules.target(b, e.node.seen.known(b.ID)),
				Peer: c.Peer, PeerGeneration: c.Question.Generation})
			places = append(places, i)
		}
	}
	inPieces(ctx, e.moves, calls, e.node.store.Recall, func(from int, results []store.Result[algorithms.Recalled]) {
		for i, res := range results {
			if res.Err == nil && res.Value.Status == algorithms.StatusOK {
				e.tell(&all[places[from+i]], res.Value)
			}
		}
	})
	return all
}

// restore has the store restore buckets.
func (e *engine) restore(ctx context.Context, all []exchange.Restore) {
	calls := make([]algorithms.Restore, len(all))
	for i, r := range all {
		calls[i] = e.restoring(r)
	}
	inPieces(ctx, e.moves, calls, e.node.store.Restore, func(from int, results []store.Result[algorithms.Restored]) {
		for i, res := range results {
			asked, result := all[from+i], res.Value
			switch {
			case res.Err != nil:
				result = algorithms.Restored{Head: algorithms.Head{Status: algorithms.StatusUnknown}}
			case result.Status == algorithms.StatusOK && result.State.ExistsUntil > 0: // else it was another's, and nothing was done
				e.node.seen.note(asked.Bucket, result.State, result.Now)
			}
			e.deliver(exchange.Restored{Restore: asked, Result: result})
		}
	})
}

// restoring is the script's call that restores a bucket.
func (e *engine) restoring(r exchange.Restore) algorithms.Restore {
	c := algorithms.Restore{Fence: algorithms.Fence{Generation: r.Generation, Epoch: r.Bucket.Epoch},
		Target: e.node.rules.Load().target(r.Bucket, 0), LostAt: r.LostAt, Cap: r.Cap, Most: r.Most, Use: r.Use, KnownPeers: r.KnownPeers, UnknownPeers: r.UnknownPeers}
	for _, row := range r.Rows {
		c.Rows = append(c.Rows, algorithms.PeerRow{Cell: row.Cell, Peer: row.Peer, Row: algorithms.Row{Lent: row.Lent, Returned: row.Returned}})
	}
	return c
}

// tell fills in what the store has heard of a bucket.
func (e *engine) tell(t *exchange.Testimony, heard algorithms.Recalled) {
	t.Refused, t.Now, t.LostAt = false, heard.Now, heard.LostAt
	for _, r := range heard.Rows {
		t.Rows = append(t.Rows, exchange.Remembered{Peer: e.node.config.Region, Cell: r.Cell, Lent: r.Borrowed, Returned: r.Regained})
	}
}

// answer answers the question of a node that recovers, of this region or another.
func (e *engine) answer(ctx context.Context, q exchange.Question) (exchange.Testimonies, error) {
	id, answer, leave := e.testimonies.wait()
	defer leave()
	if !e.post(e.questioned(id, q)) {
		return exchange.Testimonies{}, fmt.Errorf("node %s has too much to do: ask again later", e.node.config.Node)
	}
	select {
	case all := <-answer:
		return all, nil
	case <-ctx.Done():
		return exchange.Testimonies{}, ctx.Err()
	}
}

// questioned is a question for the machine.
func (e *engine) questioned(id uint64, q exchange.Question) exchange.Questioned {
	r := e.node.rules.Load()
	buckets := make([]*exchange.Bucket, len(q.Buckets))
	for i, d := range q.Buckets {
		buckets[i] = r.find(d.Bucket)
	}
	return exchange.Questioned{ID: id, Question: q, Buckets: buckets}
}

// book charges in the store what this node admitted without it, under the document in force. What that has no bucket for
// any more counts nowhere.
func (n *Node) book(ctx context.Context) {
	all := n.fallback.unbooked(mostBatched)
	if len(all) == 0 || n.store.Generation() == 0 {
		return
	}
	rules := n.rules.Load()
	var calls []algorithms.Book
	var charged []booking
	var buckets []*exchange.Bucket
	for _, one := range all {
		b := rules.find(one.bucket)
		if b == nil {
			n.fallback.booked(one)
			continue
		}
		charged, buckets = append(charged, one), append(buckets, b)
		calls = append(calls, algorithms.Book{Fence: algorithms.Fence{Epoch: b.Epoch}, Target: rules.target(b, n.seen.begin(b)),
			Node: n.config.Node, Window: one.window, Units: one.units})
	}
	for i, res := range n.store.Book(ctx, calls) {
		switch {
		case res.Err != nil:
		case res.Value.Status == algorithms.StatusOK && res.Value.Done:
			n.metrics.booked.Add(float64(n.fallback.booked(charged[i])))
		case res.Value.Status == algorithms.StatusLost:
			n.lose(ctx, buckets[i], res.Value.LostAt, res.Value.Now)
		}
	}
}

// checkpoint writes down what use has moved, all of it if this is the last time, and has the store remember how far this
// node's journal is.
func (n *Node) checkpoint(ctx context.Context, last bool) {
	all := n.seen.checkpoints(n.store.Generation(), last)
	for len(all) > 0 {
		part := all[:min(len(all), mostCheckpoints)]
		all = all[len(part):]
		if err := n.journal.Checkpoint(ctx, part); err != nil && ctx.Err() == nil {
			n.log.Error("use of long windows is not written down: a loss of the store would forget it", "err", err)
			return
		}
		n.seen.written(part)
	}
	if at := n.journalAt(); at != n.noted.Load() && n.store.Generation() != 0 {
		if _, err := n.store.Note(ctx, n.config.Node, at); err == nil {
			n.noted.Store(at)
		}
	}
}

const mostCheckpoints = 4096 // in one call of the journal
