//go:build !race

package exchange

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// scene is a cluster that recovers a bucket after a loss. Its nodes have journals of their own, and
// recovery messages use the cluster's network. The use is known as the store last had it.
type scene struct {
	*cluster
	use    map[string]algorithms.Use // by region, as its store was lost
	broken map[*testRegion]bool      // nodes whose journals do not hold every row
	old    *algorithms.Twin          // a copy of a store, made before
}

// sceneWindow is long enough for a bucket to be recovered.
const sceneWindow = 120 * allocator.Second

// newScene builds regions us, with two nodes, eu and ap.
func newScene(c *cluster) *scene {
	s := &scene{cluster: c, use: map[string]algorithms.Use{}, broken: map[*testRegion]bool{}}
	c.recovery = s
	c.bucket.Recovered = true
	c.judged()
	us := c.regions["us"]
	us.options.Nodes = 2
	us.start()
	c.mate("us").journal = map[string]Row{}
	for _, name := range c.names {
		for _, n := range c.nodes(name) {
			n.load()
			s.watch(n)
		}
	}
	return s
}

// watch has a node notice a loss within 200 ms, as by a request.
func (s *scene) watch(r *testRegion) {
	d := r.store.Decide(quantity.StoreTime(r.time()), algorithms.Decide{Fence: r.guard(),
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: "b", Terms: r.terms()}}}})
	if d.Status == algorithms.StatusLost {
		r.step(Lost{Generation: r.guard().Generation, Buckets: []LostBucket{{r.bucket, d.LostAt}},
			Now: d.Now})
	}
	s.after(s.rand.Int64N(200_000), func() { s.watch(r) })
}

// lose notes what was used, and has a region's store forget; the region then stands under the next
// generation.
func (s *scene) lose(name string, forget func(*algorithms.Twin)) {
	r := s.regions[name]
	i := r.store.Inspect(quantity.StoreTime(r.time()), algorithms.Inspect{Fence: r.guard(),
		Target: algorithms.Target{Key: "b", Terms: r.terms()}})
	s.use[name] = algorithms.Use{Cell: i.Cell, Units: i.Used, At: i.Now}
	next := r.store.Generation + 1
	forget(r.store)
	r.store.Open(quantity.StoreTime(r.time()), algorithms.Open{Expected: r.store.Generation,
		Generation: next, Region: name, Epoch: epochForTests, Lost: true, Seen: r.seen})
	for _, n := range s.nodes(name) {
		n.step(TenureChanged{Generation: next, Epoch: epochForTests, Peers: n.peers()})
	}
}

// carry carries out the effects of recoveries.
func (s *scene) carry(r *testRegion, out Effects) {
	life := r.born
	alive := func(do func()) func() {
		return func() {
			if r.born == life {
				do()
			}
		}
	}
	for _, c := range out.Consults {
		s.after(1000, alive(func() { r.step(Consulted{Consult: c, All: s.consult(r, c)}) }))
	}
	for _, c := range out.Recalls {
		all, answers := s.asked(r, c.Region), 0
		gathered := alive(func() {
			if answers++; answers > len(all) && c.Region == r.name {
				r.step(Gathered{Question: c.Question, Region: c.Region})
			}
		})
		s.after(1, gathered)
		for _, to := range all {
			s.transmit(r.name, to.name, 0, func() {
				s.questioned(to, c.Question, func(t Testimonies) {
					s.transmit(to.name, r.name, 0, alive(func() { r.step(Testified{t}); gathered() }))
				})
			})
		}
	}
	for _, t := range out.Testify {
		if answer := r.testimonies[t.ID]; answer != nil {
			answer(t.Testimonies)
		}
	}
	for _, c := range out.Restores {
		s.after(500, alive(func() { s.restore(r, c) }))
	}
}

// asked returns the nodes that hear a question: any node of a peer, or the other nodes of the own
// region.
func (s *scene) asked(r *testRegion, region string) []*testRegion {
	if region != r.name {
		return []*testRegion{s.anyNode(region)}
	}
	return slices.DeleteFunc(s.nodes(region), func(n *testRegion) bool { return n == r })
}

func (s *scene) questioned(to *testRegion, q Question, answer func(Testimonies)) {
	to.asked++
	if to.testimonies == nil {
		to.testimonies = map[uint64]func(Testimonies){}
	}
	to.testimonies[to.asked] = answer
	to.step(Questioned{ID: to.asked, Question: q, Buckets: []*Bucket{s.bucket}})
}

// consult looks into the journal, or for a peer into the store.
func (s *scene) consult(r *testRegion, c Consult) []Testimony {
	t := Testimony{Bucket: "b"}
	if c.Peer != "" {
		g := r.store.Recall(quantity.StoreTime(r.time()), algorithms.Recall{Fence: r.guard(),
			Target: algorithms.Target{Key: "b", Terms: r.terms()}, Peer: c.Peer,
			PeerGeneration: c.Generation})
		t.Refused, t.Now, t.LostAt = g.Status != algorithms.StatusOK, g.Now, g.LostAt
		t.Rows = g.By(r.name)
		return []Testimony{t}
	}
	t.Use = s.use[r.name]
	if s.broken[r] {
		t.WholeSince = math.MaxInt64
	}
	for _, key := range slices.Sorted(maps.Keys(r.journal)) {
		row := r.journal[key]
		if row.Cell >= c.Question.Buckets[0].From && row.Cell <= c.Question.Buckets[0].To {
			t.Rows = append(t.Rows, algorithms.RememberedRow{Peer: row.Peer, Cell: row.Cell,
				Lent: row.Lent, Returned: row.Returned})
		}
	}
	return []Testimony{t}
}

func (s *scene) restore(r *testRegion, c Restore) {
	guard := r.guard()
	guard.Generation = c.Generation
	call := algorithms.Restore{Fence: guard, Target: algorithms.Target{Key: "b", Terms: r.terms()},
		LostAt: c.LostAt, Known: c.Known}
	r.step(Restored{Restore: c, Result: r.store.Restore(quantity.StoreTime(r.time()), call)})
}

// unknown returns the units, over all cells, that count as lent to peers that are not known.
func (s *scene) unknown(name string) (units quantity.Units) {
	r := s.regions[name]
	for _, row := range r.store.Inspect(quantity.StoreTime(r.time()),
		algorithms.Inspect{Fence: r.guard(), Target: algorithms.Target{Key: "b",
			Terms: r.terms()}}).Rows {
		if strings.HasPrefix(row.Peer, "?") {
			units += row.Lent
		}
	}
	return units
}

// down stops a node, or starts it anew.
func (s *scene) down(r *testRegion, down bool) {
	if down {
		r.born++
		r.dead = true
		return
	}
	r.start()
}
