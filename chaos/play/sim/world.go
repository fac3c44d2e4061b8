package sim

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/memory/store"
)

// began is the wall clock's time at the start of every run, µs since 1970: a Sunday's midnight in
// UTC, so that cells of all usual lengths begin with the run.
const began = 1_704_585_600_000_000

// world is a number of regions in virtual time. Everything happens in one goroutine, one occurrence
// after another.
type world struct {
	plan    *Plan
	agenda  agenda
	now     int64 // µs since the start
	regions []*region
	wires   [][]wire
	shards  store.Shards // of each region's store
	mates   *rand.Rand   // for delays of messages within regions
	limits  []*limit
	envoys  []*proxy

	moved     []*bucket // their rights may have moved since they were last checked
	lied      bool      // untrue hints have been gossiped
	probes    []*probe
	broken    *Violation // the first violation
	counts    Counts
	trace     *trace // nil: nothing is recorded
	digest    *digest
	adopted   int64              // version of the newest document that any region was given
	documents []*policy.Document // by version, from 1
	spells    []spell
	// The farthest that a region's clocks were ahead, the farthest they were behind, and the
	// difference between the two, µs.
	ahead, behind, back int64
	steps               []clockStep // how far apart clocks may be, from when on: ever more
}

// Violation is a broken invariant.
type Violation struct {
	At        time.Duration // since the start
	Invariant string        // its name in the package comment
	Text      string        // what was found
}

func (v *Violation) String() string {
	return fmt.Sprintf("%.6fs %s: %s", v.At.Seconds(), v.Invariant, v.Text)
}

// random returns random numbers for one purpose. Use for one purpose does not shift those for
// others.
func (p *Plan) random(purpose, of int) *rand.Rand {
	return rand.New(rand.NewPCG(p.Seed, uint64(purpose)<<32|uint64(of)))
}

// The purposes of random numbers.
const (
	forPlan = iota + 1
	forActs
	forWires
	forNodes
	forMates
	forWider
	forSpanning
	forPrefetch
	forChanges
	forCalendar
	forEnvoys
	forTight
	forTerms
	forVaried
	forNames
	forFrozen
	forBusy
	forServers
	forRolls
	forOwing
	forClasses
	forLarge
)

// newWorld returns the world of a plan before anything has happened.
func newWorld(p *Plan, t *trace, d *digest) (*world, error) {
	w := &world{plan: p, trace: t, digest: d, mates: p.random(forMates, 0), adopted: 1}
	var err error
	if w.documents, err = p.documents(); err != nil {
		return nil, fmt.Errorf("a document of the plan: %w", err)
	}
	w.spells = []spell{{versions: []int64{1}, from: math.MinInt64 / 2, to: math.MaxInt64}}
	w.shards = store.Shards{store.Whole}
	if p.Shards > 1 {
		w.shards = store.Divided(p.Shards)
	}
	w.wires = p.wires()
	for _, versions := range p.entries(w.documents) {
		w.limits = append(w.limits, newLimit(w, versions))
	}
	for i := range p.Regions {
		r, err := newRegion(w, i, w.documents[0])
		if err != nil {
			return nil, err
		}
		w.regions = append(w.regions, r)
	}
	for _, r := range w.regions {
		for _, m := range r.nodes {
			if len(r.open) == 0 { // it joins later
				continue
			}
			if err := m.start(true); err != nil {
				return nil, fmt.Errorf("node %s does not start: %w", m.name, err)
			}
		}
	}
	w.entitle()
	for _, r := range w.regions {
		w.apart(r)
	}
	if p.Heal < p.End {
		w.at(p.Heal, w.probeAll)
		w.at(p.Heal, w.watch)
	}
	for _, a := range p.Acts {
		w.at(a.At, func() { w.act(a) })
	}
	return w, nil
}

// at runs do at a time, in after a delay (µs).
func (w *world) at(t int64, do func()) { w.agenda.put(t, do) }
func (w *world) in(d int64, do func()) { w.agenda.put(w.now+d, do) }
func (w *world) wall() int64           { return w.plan.starts() + w.plan.Into + w.now }
func (w *world) judgeTime() time.Time  { return time.UnixMicro(w.wall()) }
func (w *world) fired(row int)         { w.counts.Rows[row]++ }
func (w *world) found(a Act, row int)  { w.counts.Deeds[a.Do]++; w.fired(row) }
func (w *world) quiet() *slog.Logger   { return slog.New(slog.DiscardHandler) }

// run lets everything happen until a time, or until an invariant is broken.
func (w *world) run(until int64) {
	for w.broken == nil {
		o, ok := w.agenda.next(until)
		if !ok {
			break
		}
		w.now = o.at
		o.do()
		w.counts.Events++
		w.noteDocuments()
		if len(w.moved) > 0 {
			w.checkMoved()
		}
	}
	w.now = max(w.now, until)
}

// breaks records a violation. Only the first counts.
func (w *world) breaks(invariant, format string, args ...any) {
	if w.broken == nil {
		w.broken = &Violation{At: time.Duration(w.now) * time.Microsecond, Invariant: invariant,
			Text: fmt.Sprintf(format, args...)}
	}
}

// close releases what the regions' stores hold.
func (w *world) close() {
	for _, r := range w.regions {
		r.store.close()
	}
}
