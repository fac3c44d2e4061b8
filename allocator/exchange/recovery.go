package exchange

import (
	"iter"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

// Recovery gives a bucket back what its store has lost: what this region lent and returned, as far as it still weighs,
// and what was used. It is for the buckets whose windows are too long to wait until nothing of before weighs. One that is
// not worth recovering is opened all the same if it is known that nobody used it.
//
//	node that meets the loss                      peers, and the other nodes of its region
//	Lost -> Consult (own journal)
//	     -> Recall{generation g'}      --->       Questioned -> Consult: who answers takes, or announces, no row
//	Testified                          <---       Consulted  -> Testify    of a generation below g' from now on
//	     -> Restore (in the store) once all is known, or the patience is over
//
// What was lent to a peer is known if the peer tells, or if every node of this region does: rows are in a journal before
// they are announced. A peer's word counts only for cells that its own store has not lost meanwhile, a journal's only if
// it holds every row. Of all others it is known that they were lent no more than may be lent, and that counts as lent
// until they tell or it weighs no more. What was used is known once every node of this region told: until then as much
// counts as used as any region can have had, for a node that cannot be heard may have decided. Two nodes may recover one
// bucket at once: what the first restores stands.

const (
	// askAgain is how long a recovery waits before it asks again who has not answered, at first; each time twice as long.
	askAgain = allocator.Second
	// maxPause is the longest such wait.
	maxPause = 30 * allocator.Second
	// maxPauseUntold is the longest such wait while a node of our own region has not told: until then nothing is admitted.
	maxPauseUntold = 5 * allocator.Second
)

// recovery is one bucket on its way back.
type recovery struct {
	bucket        *Bucket
	lostAt        int64
	from, to      int64 // cells of which rows may weigh
	began         int64
	again         int64 // when to ask again
	pause         int64 // from now to then
	use           algorithms.Use
	rows          []Remembered // the highest word on each
	peersAnswered []string     // peers whose own word covers all cells
	nodesAnswered []string     // nodes of this region that said all that they used of it
	nodesWhole    []string     // nodes of this region whose journals cover all cells
	searched      bool         // this node's own journal and memory
	used          bool         // it is not worth recovering, and a node may have used it: it stays closed
	restored      bool         // but for what was not known
	knownPeers    int          // peers that were known then
	useKnown      bool         // all nodes had told then
	awaitingStore bool         // for the store
}

// onLost begins the recovery of buckets.
func (m *Machine) onLost(now int64, e Lost) {
	if e.Generation != m.generation { // who answers would fence nobody
		return
	}
	m.noteStoreTime(e.Now, now)
	var fresh []*recovery
	for _, l := range e.Buckets {
		r := m.newRecovery(now, l)
		if r != nil {
			fresh = append(fresh, r)
		}
		if old := m.recoveries[l.Bucket.ID]; r == nil && (old == nil || old.used) { // nothing will come
			m.out.Settled = append(m.out.Settled, Settled{Bucket: l.Bucket.ID})
		}
	}
	m.beginRecoveries(now, fresh)
}

// recoverDoubted begins the recovery of a bucket that was restored but for what some peers are not known to have been lent, or
// some nodes to have used: who began it may have ended since. Such buckets leave room for those that requests wait for.
func (m *Machine) recoverDoubted(now int64, b *Bucket, s algorithms.State) {
	if len(m.recoveries) >= MaxBuckets/2 {
		return
	}
	if r := m.newRecovery(now, LostBucket{Bucket: b, At: s.Doubt}); r != nil {
		r.restored, r.useKnown = true, s.Shut == 0
		m.stats.PartlyKnown++
		m.beginRecoveries(now, []*recovery{r})
	}
}

// newRecovery returns a recovery to begin, nil if it is under way or there is no room.
func (m *Machine) newRecovery(now int64, l LostBucket) *recovery {
	old := m.recoveries[l.Bucket.ID]
	if l.Bucket.Epoch != m.epoch || old != nil && old.lostAt == l.At || old == nil && len(m.recoveries) >= MaxBuckets {
		return nil
	}
	m.endRecovery(l.Bucket.ID)
	r := &recovery{bucket: l.Bucket, lostAt: l.At, began: now, pause: askAgain / 2}
	r.to = algorithms.CellAt(l.At, l.Bucket.Cell) + 1
	for r.from = r.to; m.weighs(r.bucket, r.from-1) > now+m.offset; r.from-- {
	}
	return r
}

// beginRecoveries puts recoveries on the list and asks for them.
func (m *Machine) beginRecoveries(now int64, all []*recovery) {
	for _, r := range all {
		m.recoveries[r.bucket.ID] = r
		m.recovering = append(m.recovering, r.bucket.ID)
	}
	slices.Sort(m.recovering)
	m.recovering = slices.Compact(m.recovering)
	m.askWhatIsKnown(now, all)
}

func (m *Machine) weighs(b *Bucket, cell int64) int64 { return b.Terms(m.region).Weighs(cell) }

// askWhatIsKnown asks our own journal, the other nodes and all peers that are heard, each of the buckets of which it has not told
// all.
func (m *Machine) askWhatIsKnown(now int64, all []*recovery) {
	for _, r := range all {
		r.pause = min(2*r.pause, maxPause)
		if len(r.nodesAnswered) < m.nodes {
			r.pause = min(r.pause, maxPauseUntold)
		}
		r.again = now + r.pause
		for r.from < r.to && m.weighs(r.bucket, r.from)+askAgain <= now+m.offset {
			r.from++ // nobody need know any more, and who was away has forgotten
		}
	}
	for q, buckets := range m.questions(all, func(r *recovery) bool { return !r.searched || !slices.Contains(r.nodesWhole, m.node) }) {
		m.out.Consults = append(m.out.Consults, Consult{Question: q, Buckets: buckets})
	}
	for q := range m.questions(all, func(r *recovery) bool { return min(len(r.nodesWhole), len(r.nodesAnswered)) < m.nodes && m.nodes > 1 }) {
		m.out.Recalls = append(m.out.Recalls, Recall{Region: m.region, Question: q, Timeout: minTimeout})
	}
	for _, p := range m.peers {
		if p.degraded(now) {
			continue
		}
		for q := range m.questions(all, func(r *recovery) bool { return r.bucket.Recovered && !slices.Contains(r.peersAnswered, p.name) }) {
			m.out.Recalls = append(m.out.Recalls, Recall{Region: p.name, Question: q, Timeout: p.timeout()})
		}
	}
}

// questions are those about the recoveries that are asked about, with their buckets.
func (m *Machine) questions(all []*recovery, asked func(*recovery) bool) iter.Seq2[Question, []*Bucket] {
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

// onQuestioned answers for our region, or for what our store has heard of a peer. A question of our own region that is of
// a later generation than ours fences this node until it stands under that one. One that no clock can have come to is
// refused: nobody fences by it, neither this node nor its store.
func (m *Machine) onQuestioned(now int64, e Questioned) {
	c := Consult{ID: e.ID, Buckets: e.Buckets, Question: e.Question}
	ours, from := e.Question.From == m.region, m.peer(e.Question.From)
	switch {
	case !ours && (from == nil || !from.believes(m, now, e.Question.Generation)),
		ours && !m.believes(now, e.Question.Generation, max(m.generation, m.fence)):
		m.stats.Implausible++
		refused := make([]Testimony, len(e.Question.Buckets))
		for i, d := range e.Question.Buckets {
			refused[i] = Testimony{Bucket: d.Bucket, Refused: true}
		}
		m.testify(c, refused)
		return
	case ours:
		m.fence = max(m.fence, e.Question.Generation)
		if m.fence > m.generation {
			clear(m.serving)
		}
	default:
		c.Peer = e.Question.From
	}
	m.out.Consults = append(m.out.Consults, c)
}

func (m *Machine) testify(c Consult, all []Testimony) {
	m.out.Testify = append(m.out.Testify, Testify{ID: c.ID, Testimonies: Testimonies{From: m.region, Node: m.node,
		ForGeneration: c.Generation, All: all}})
}

// onConsulted passes on what was found, or takes it in where the question was our own.
func (m *Machine) onConsulted(now int64, e Consulted) {
	if e.Consult.ID != 0 {
		m.testify(e.Consult, e.All)
		return
	}
	m.onTestified(now, Testimonies{From: m.region, Node: m.node, ForGeneration: e.Consult.Generation, All: e.All})
}

// onTestified takes an answer in. An answer to a question of another generation says nothing about
// this loss, and it fences nobody.
func (m *Machine) onTestified(now int64, e Testimonies) {
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
		if !t.sound(peer, algorithms.CellAt(now+m.offset, r.bucket.Cell)+1, r.bucket.Cell) {
			m.stats.Implausible++
			continue
		}
		r.addTestimony(peer, e.Node, t, m.weighs(r.bucket, r.from))
		if peer == "" {
			m.addUse(r, e.Node, t)
			r.searched = r.searched || e.Node == m.node
		}
		m.restoreIfKnown(now, r)
	}
}

// addTestimony adds a testimony; until is when the first of the cells in doubt weighs no more.
func (r *recovery) addTestimony(peer, node string, t Testimony, until int64) {
	for _, row := range t.Rows {
		if row.Cell >= r.from && row.Cell <= r.to {
			r.raiseRow(row)
		}
	}
	if peer == "" {
		if t.WholeSince <= (r.from-1)*r.bucket.Cell && !slices.Contains(r.nodesWhole, node) {
			r.nodesWhole = append(r.nodesWhole, node)
		}
		return
	}
	lost := t.LostAt > 0 && r.from <= algorithms.CellAt(t.LostAt, r.bucket.Cell)+1
	if !lost && t.Now < until && !slices.Contains(r.peersAnswered, peer) {
		r.peersAnswered = append(r.peersAnswered, peer)
	}
}

// addUse adds what a node of our region used. Its word is all it used only if it reaches back to what may still count.
func (m *Machine) addUse(r *recovery, node string, t Testimony) {
	r.use = newer(r.use, t.Use)
	all := t.UseSince <= max(r.bucket.Terms(m.region).CountsSince(r.lostAt), 0)
	if all && !slices.Contains(r.nodesAnswered, node) {
		r.nodesAnswered = append(r.nodesAnswered, node)
	}
	idle := all && t.Use == algorithms.Use{} && len(r.rows) == 0 && slices.Contains(r.nodesWhole, node)
	if !r.bucket.Recovered && !idle && !r.used {
		r.used = true
		m.out.Settled = append(m.out.Settled, Settled{Bucket: r.bucket.ID})
	}
}

// restoreIfKnown has the store restore a bucket once everything is known of it, or once others
// have had time enough to answer. A bucket that is not worth recovering is opened only if nobody
// used it and nothing of it was lent.
func (m *Machine) restoreIfKnown(now int64, r *recovery) {
	var known, unknown []string
	for _, p := range m.peers {
		if len(r.nodesWhole) >= m.nodes || slices.Contains(r.peersAnswered, p.name) {
			known = append(known, p.name)
		} else {
			unknown = append(unknown, p.name)
		}
	}
	useKnown := len(r.nodesAnswered) >= m.nodes
	all := useKnown && len(unknown) == 0
	patience := 2*m.farthest() + Interval
	switch {
	case r.awaitingStore, !r.searched, r.restored && len(known) <= r.knownPeers && useKnown == r.useKnown:
		return
	case !r.bucket.Recovered && (r.used || !all):
		return
	case !r.restored && !all && now-r.began < patience:
		return
	}
	r.awaitingStore, r.knownPeers, r.useKnown = true, len(known), useKnown
	most := r.bucket.Limit // no region can ever have had more
	if useKnown {
		most = 0
	}
	m.out.Restores = append(m.out.Restores, Restore{Bucket: r.bucket, LostAt: r.lostAt, Generation: m.generation,
		Cap: allocator.Part(r.bucket.Entitlements[m.region], r.bucket.Lending), Most: most, Use: r.use,
		KnownPeers: known, UnknownPeers: unknown, Rows: slices.Clone(r.rows)})
}

// raiseRow adds a row, or raises the one there is.
func (r *recovery) raiseRow(row Remembered) {
	for i := range r.rows {
		if old := &r.rows[i]; old.Peer == row.Peer && old.Cell == row.Cell {
			old.Lent, old.Returned = max(old.Lent, row.Lent), max(old.Returned, row.Returned)
			return
		}
	}
	r.rows = append(r.rows, row)
}

// onRestored brings the view up to what the store holds now.
func (m *Machine) onRestored(now int64, e Restored) {
	b := e.Restore.Bucket
	r := m.recoveries[b.ID]
	if r == nil || r.lostAt != e.Restore.LostAt {
		return
	}
	r.awaitingStore = false
	if e.Result.Status != algorithms.StatusOK {
		r.knownPeers, r.useKnown = 0, false // the tick tries again
		return
	}
	m.stats.Recovered++
	if !r.restored {
		m.stats.PartlyKnown++
	}
	m.noteStoreTime(e.Result.Now, now)
	r.restored = true
	if len(e.Restore.UnknownPeers) == 0 && e.Restore.Most == 0 || len(m.recoveries) > MaxBuckets/2 { // of the others the bucket's use tells again
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

// endRecovery ends a recovery; the list is put in order by the next tick.
func (m *Machine) endRecovery(id string) {
	if r := m.recoveries[id]; r != nil && r.restored {
		m.stats.PartlyKnown--
	}
	delete(m.recoveries, id)
}

// continueRecoveries gives up waiting, asks again, and ends what weighs no more.
func (m *Machine) continueRecoveries(now int64) {
	back := false // a peer that was away is heard again
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
		case m.weighs(r.bucket, r.to) <= now+m.offset || r.bucket.Epoch != m.epoch:
			m.endRecovery(id)
			return true
		case r.used:
			return false
		}
		m.restoreIfKnown(now, r)
		if back {
			r.pause = askAgain / 2
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
