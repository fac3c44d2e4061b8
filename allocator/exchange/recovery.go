package exchange

import (
	"iter"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Recovery restores a bucket that the region's store has lost: what this region lent and returned,
// as far as it still weighs, and what was used. It serves buckets whose windows are too long to
// keep the bucket closed until the old rows no longer weigh. Other buckets (Bucket.Recovered is
// false) stay closed that long, but open at once if all nodes say that nobody used them.
//
//	node that meets the loss              peers, and the other nodes of its region
//	Lost -> Consult (own journal)
//	     -> Recall{generation g'}  --->   Questioned -> Consult
//	Testified                      <---   Consulted  -> Testify
//	     -> Restore (in the store)
//
// A node that answers is fenced: from then on a node of the region announces no row of a generation
// below g', and another region credits none. The node sends Restore once all is known, or once the
// others have had time enough to answer.
//
// Rows. What was lent to a peer is known if the peer tells, or if every node of this region does,
// because rows are in a journal before they are announced. A peer's answer counts only for cells
// that its own store has not lost meanwhile. A node's answer counts only if its journal holds every
// row. To each other peer at most the lending limit was lent. That much counts as lent until the
// peer tells, or until it no longer weighs.
//
// Use. What was used is known once every node of this region has told, or for each that has not,
// another node with a copy. A region of one node has its copies in other regions. Until then as many
// units count as used as any region can have had, because a node that does not answer may have
// admitted requests.
//
// An operator may end the wait for what nobody can tell (Waived). Nodes that can answer are still
// asked.
//
// Two nodes may recover one bucket at the same time: what the first of them restores stands.
const (
	// askAgain is the first pause before a recovery asks again the nodes that have not answered, in
	// microseconds. Each later pause is twice as long.
	askAgain = allocator.Second
	// maxPause is the longest such pause.
	maxPause = 30 * allocator.Second
	// maxPauseUntold is the longest such pause while a node of our own region has not told what it
	// used: until then the bucket admits nothing.
	maxPauseUntold = 5 * allocator.Second
)

// recovery is the recovery of one bucket. Times are node time, except lostAt.
type recovery struct {
	bucket   *Bucket
	lostAt   quantity.StoreTime // store time
	deleted  bool               // it alone was lost, at any time before lostAt
	from, to quantity.Cell      // the cells whose rows may still weigh
	began    quantity.NodeTime  // when this recovery began
	again    quantity.NodeTime  // when to ask again
	wide     quantity.NodeTime  // when to ask all nodes of other regions again
	pause    int64              // the last pause before again
	use      algorithms.Use     // the latest use that anybody reported
	// the highest sums that anybody reported, by peer and cell
	rows          []algorithms.RememberedRow
	peersAnswered []string            // peers whose own answer covers all cells
	told          map[string]*nodeUse // by node of this region
	nodesWhole    []string            // nodes of this region whose journals cover all cells
	elsewhere     elsewhere
	searched      bool // this node's own journal and memory have answered
	gathered      bool // all other nodes of this region that can be asked have answered once
	used          bool // not Bucket.Recovered, and perhaps used: it stays closed
	restored      bool // the store has restored it, perhaps with something not known
	knownPeers    int  // how many peers were known at the last Restore
	useKnown      bool // the use was known at the last Restore
	awaitingStore bool // a Restore is not answered yet
	restoredAt    quantity.StoreTime
}

// onLost begins the recovery of the buckets that the store has lost.
func (m *Machine) onLost(now quantity.NodeTime, e Lost) {
	if e.Generation != m.generation { // the answers would fence nobody
		return
	}
	m.noteStoreTime(e.Now, now)
	var fresh []*recovery
	for _, l := range e.Buckets {
		m.lostAgain(now, l, e.Now)
		r := m.newRecovery(now, l)
		if r != nil {
			fresh = append(fresh, r)
		}
		// Nothing will come that the requests could wait for.
		if old := m.recoveries[l.Bucket.ID]; r == nil && (old == nil || old.used) {
			m.out.Settled = append(m.out.Settled, Settled{Bucket: l.Bucket.ID})
		}
	}
	m.beginRecoveries(now, fresh)
}

// newRecovery returns a recovery to begin. It returns nil if this loss is being recovered already,
// or if there is no room.
func (m *Machine) newRecovery(now quantity.NodeTime, l LostBucket) *recovery {
	old := m.recoveries[l.Bucket.ID]
	if l.Bucket.Epoch != m.epoch || old != nil && old.lostAt == l.At || old == nil &&
		len(m.recoveries) >= MaxBuckets {
		return nil
	}
	m.endRecovery(l.Bucket.ID)
	r := &recovery{bucket: l.Bucket, lostAt: l.At, deleted: l.At > m.lostAt, began: now, pause: askAgain / 2}
	r.to = l.Bucket.Cells().At(l.At) + 1
	for r.from = r.to; m.weighs(r.bucket, r.from-1) > m.storeTime(now); r.from-- {
	}
	return r
}

// beginRecoveries adds recoveries to those under way and asks for what is known.
func (m *Machine) beginRecoveries(now quantity.NodeTime, all []*recovery) {
	for _, r := range all {
		m.recoveries[r.bucket.ID] = r
		m.recovering = append(m.recovering, r.bucket.ID)
	}
	slices.Sort(m.recovering)
	m.recovering = slices.Compact(m.recovering)
	m.askWhatIsKnown(now, all)
}

func (m *Machine) weighs(b *Bucket, cell quantity.Cell) quantity.StoreTime {
	return b.Terms(m.region).Weighs(cell)
}

// askWhatIsKnown asks our own journal, the other nodes of our region and all peers that are not
// degraded. It asks each of them only about buckets that it has not told everything of.
func (m *Machine) askWhatIsKnown(now quantity.NodeTime, all []*recovery) {
	for _, r := range all {
		r.pause = min(2*r.pause, maxPause)
		if !m.toldUse(r) {
			r.pause = min(r.pause, maxPauseUntold)
		}
		r.again = now.Add(r.pause)
		for r.from < r.to && m.weighs(r.bucket, r.from)+askAgain <= m.storeTime(now) {
			// Nobody needs to know the cell any more, and whoever was away has forgotten it.
			r.from++
		}
	}
	for q, buckets := range m.questions(all,
		// Copies tell as soon as their nodes are known to be gone.
		func(r *recovery) bool { return !r.searched || !m.toldUse(r) || !slices.Contains(r.nodesWhole, m.node) }) {
		m.out.Consults = append(m.out.Consults, Consult{Question: q, Buckets: buckets})
	}
	for q := range m.questions(all,
		func(r *recovery) bool {
			return !m.toldRows(r) || !m.toldUse(r) || !r.gathered
		}) {
		m.out.Recalls = append(m.out.Recalls, Recall{Region: m.region, Question: q,
			Timeout: minTimeout})
	}
	alone := m.alone()
	for _, p := range m.peers {
		if p.degraded(now) {
			continue
		}
		for q := range m.questions(all,
			func(r *recovery) bool {
				return r.bucket.Recovered && (!slices.Contains(r.peersAnswered, p.name) || alone && now >= r.wide && !m.toldUse(r))
			}) {
			m.out.Recalls = append(m.out.Recalls, Recall{Region: p.name, Question: q, All: alone, Timeout: p.timeout()})
		}
	}
	for _, r := range all {
		if now >= r.wide {
			r.wide = now.Add(min(max(now.Sub(r.began), askAgain), maxPause))
		}
	}
}

// questions yields questions about the recoveries for which asked returns true, of at most MaxAsks
// buckets each, and these buckets.
func (m *Machine) questions(all []*recovery,
	asked func(*recovery) bool) iter.Seq2[Question, []*Bucket] {
	return func(yield func(Question, []*Bucket) bool) {
		open := slices.DeleteFunc(slices.Clone(all), func(r *recovery) bool { return !asked(r) })
		for part := range slices.Chunk(open, MaxAsks) {
			q := Question{From: m.region, Node: m.node, Generation: m.generation}
			buckets := make([]*Bucket, len(part))
			for i, r := range part {
				q.Buckets = append(q.Buckets, Doubt{Bucket: r.bucket.ID, From: r.from, To: r.to})
				buckets[i] = r.bucket
			}
			if !yield(q, buckets) {
				return
			}
		}
	}
}

// onTestified takes in an answer. An answer to a question of another generation says nothing about
// this loss, and its author fences nobody for us.
func (m *Machine) onTestified(now quantity.NodeTime, e Testimonies) {
	peer := ""
	if e.From != m.region {
		peer = e.From
	}
	if e.ForGeneration != m.generation || peer != "" && m.peer(peer) == nil {
		return
	}
	for _, t := range e.All {
		r := m.recoveries[t.Bucket]
		if r == nil || t.Refused {
			continue
		}
		if !t.sound(peer, r.bucket.Cells().At(m.storeTime(now))+1, r.bucket.Cells()) {
			m.stats.Implausible++
			continue
		}
		r.addTestimony(peer, e.Node, t, m.weighs(r.bucket, r.from))
		if peer == "" {
			m.addUse(r, e.Node, t)
			m.addCopies(r, e.Copies)
			r.searched = r.searched || e.Node == m.node
		} else if r.bucket.Recovered {
			m.addElsewhere(r, e, t.Use)
		}
		m.restoreIfKnown(now, r)
	}
}

// onGathered records that a question to all known nodes of a region is over: they have answered, or
// had time to. Our own region may have more nodes than are configured, and each may have used the
// bucket.
func (m *Machine) onGathered(now quantity.NodeTime, e Gathered) {
	if e.Question.Generation != m.generation {
		return
	}
	for _, d := range e.Question.Buckets {
		r := m.recoveries[d.Bucket]
		switch {
		case r == nil:
			continue
		case e.Region == m.region:
			r.gathered = true
		case e.Whole && !slices.Contains(r.elsewhere.whole, e.Region):
			r.elsewhere.whole = append(r.elsewhere.whole, e.Region)
		}
		m.restoreIfKnown(now, r)
	}
}

// onWaived restores the buckets that need not wait any longer.
func (m *Machine) onWaived(now quantity.NodeTime, until quantity.StoreTime) {
	m.waived = max(m.waived, until)
	for _, id := range m.recovering {
		if r := m.recoveries[id]; r != nil {
			m.restoreIfKnown(now, r)
		}
	}
}

// addTestimony adds a testimony. peer is the peer region that gave it, or empty if a node of our
// own region did. until is the store time at which the first of the cells in doubt no longer
// weighs.
func (r *recovery) addTestimony(peer, node string, t Testimony, until quantity.StoreTime) {
	for _, row := range t.Rows {
		if row.Cell >= r.from && row.Cell <= r.to {
			r.raiseRow(row)
		}
	}
	if peer == "" {
		if t.WholeSince <= r.bucket.Cells().Opens(r.from-1) && r.tells(t.Read) && !slices.Contains(r.nodesWhole,
			node) {
			r.nodesWhole = append(r.nodesWhole, node)
		}
		return
	}
	lost := t.LostAt > 0 && r.from <= r.bucket.Cells().At(t.LostAt)+1
	if !lost && t.Now < until && !slices.Contains(r.peersAnswered, peer) {
		r.peersAnswered = append(r.peersAnswered, peer)
	}
}

// addUse adds what a node of our region used. The node has told all that it used only if it
// remembers back to the oldest use that may still count.
func (m *Machine) addUse(r *recovery, node string, t Testimony) {
	r.use = newer(r.use, t.Use)
	if o := r.of(node); r.tells(t.Read) && (!o.itself || t.UseSince < o.since) {
		o.itself, o.since = true, t.UseSince
	}
	idle := m.tellsSince(r, node, m.usesFrom(r)) && t.Use == algorithms.Use{} && len(r.rows) == 0 && slices.Contains(r.nodesWhole,
		node)
	if !r.bucket.Recovered && !idle && !r.used {
		r.used = true
		m.out.Settled = append(m.out.Settled, Settled{Bucket: r.bucket.ID})
	}
}

// restoreIfKnown makes the store restore a bucket once everything is known, or once the others have
// had time enough to answer. A bucket that is not Recovered is opened only if nobody used it and
// nothing of it was lent.
func (m *Machine) restoreIfKnown(now quantity.NodeTime, r *recovery) {
	var known, unknown []string
	whole := m.toldRows(r)
	for _, p := range m.peers {
		if whole || slices.Contains(r.peersAnswered, p.name) {
			known = append(known, p.name)
		} else {
			unknown = append(unknown, p.name)
		}
	}
	useKnown := m.toldUse(r)
	all := useKnown && len(unknown) == 0
	if r.lostAt <= m.waived && r.bucket.Recovered {
		known, unknown, useKnown = append(known, unknown...), nil, true
	}
	patience := 2*m.farthest() + Interval
	switch {
	case r.awaitingStore, !r.searched, r.restored && len(known) <= r.knownPeers &&
		useKnown == r.useKnown:
		return
	case !r.bucket.Recovered && (r.used || !all):
		return
	case !r.restored && (!all || !r.gathered) && now.Sub(r.began) < patience:
		return
	}
	r.awaitingStore, r.knownPeers, r.useKnown = true, len(known), useKnown
	b := r.bucket
	what := algorithms.Known{Cap: max(allocator.Part(b.Entitlements[m.region], b.Lending), b.LentBefore),
		Use: r.use, KnownPeers: known, UnknownPeers: unknown, Rows: slices.Clone(r.rows)}
	if !useKnown {
		what.Most = b.Limit // no region can ever have had more
	}
	m.out.Restores = append(m.out.Restores, Restore{Bucket: b, LostAt: r.lostAt, Generation: m.generation,
		Known: what})
}

// onRestored updates the view to what the store holds after a Restore.
func (m *Machine) onRestored(now quantity.NodeTime, e Restored) {
	b := e.Restore.Bucket
	r := m.recoveries[b.ID]
	if r == nil || r.lostAt != e.Restore.LostAt {
		return
	}
	r.awaitingStore = false
	if e.Result.Status != algorithms.StatusOK {
		r.knownPeers, r.useKnown = 0, false // so that the next tick tries again
		return
	}
	m.stats.Recovered++
	if !r.restored {
		m.stats.PartlyKnown++
	}
	m.noteStoreTime(e.Result.Now, now)
	r.restored, r.restoredAt = true, e.Result.Now
	// A recovery that is not complete may end here, too, where room is short: the next use of the
	// bucket begins it again (recoverDoubted).
	if len(e.Restore.UnknownPeers) == 0 && e.Restore.Most == 0 || len(m.recoveries) > MaxBuckets/2 {
		m.endRecovery(b.ID)
	}
	if v := m.view(now, b); v != nil {
		v.observe(e.Result.State, e.Result.Now)
		for _, row := range e.Result.Rows {
			if m.peer(row.Peer) != nil {
				v.dealing(row.Peer).at(row.Cell).raise(row.Row)
			}
		}
	}
	m.out.Settled = append(m.out.Settled, Settled{Bucket: b.ID, RetryHelps: true})
}

// endRecovery ends a recovery. The next tick removes its id from recovering.
func (m *Machine) endRecovery(id string) {
	if r := m.recoveries[id]; r != nil && r.restored {
		m.stats.PartlyKnown--
	}
	delete(m.recoveries, id)
}

// continueRecoveries restores what need not wait longer, asks again where a pause is over, and ends
// recoveries of buckets whose old rows no longer weigh. If a peer that was away answers again, it
// asks at once.
func (m *Machine) continueRecoveries(now quantity.NodeTime) {
	back := false // a peer that was away answers again
	for _, p := range m.peers {
		back = back || p.away && !p.degraded(now)
		p.away = p.degraded(now)
	}
	var again []*recovery
	m.recovering = slices.DeleteFunc(m.recovering, func(id string) bool {
		r := m.recoveries[id]
		switch {
		case r == nil:
			return true
		case m.weighs(r.bucket, r.to) <= m.storeTime(now) || r.bucket.Epoch != m.epoch:
			m.endRecovery(id)
			return true
		case r.used:
			return false
		}
		m.restoreIfKnown(now, r)
		if back {
			r.pause, r.wide = askAgain/2, 0
		}
		if back || now >= r.again {
			again = append(again, r)
		}
		return false
	})
	if len(again) > 0 {
		m.askWhatIsKnown(now, again)
	}
}
