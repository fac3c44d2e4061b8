//go:build !race

package barrier_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
)

// walk is one random life of up to four regions, with clocks of their own. Their operators write
// documents that move, raise and lower a limit, take it out and put it back, fence regions and have
// them return, with and without the word for it, and remove and add regions. Regions hear of them in
// any order, cannot hear each other for a while, forget what they heard and start again, also without
// their store and journals, by an old file.
type walk struct {
	*rand.Rand
	t       documents.T
	names   []string
	regions map[string]*walker
	cut     map[string]bool // regions that hear nobody
	all     []*policy.Document
	now     quantity.StoreTime
	most    int  // documents that are open whole
	level   bool // all documents give the same limit, with parts that differ widely
	lost    int  // how often a region lost all it knew
	said    []string

	// by label of the cell: the most that a region could use in each of its lives, and the highest
	// limit that was open
	used    map[quantity.Cell]map[life]quantity.Units
	allowed map[quantity.Cell]quantity.Units
	ended   map[string]int64 // the highest life of a region that a document ended which somebody has
}

type life struct {
	region string
	n      int64
}

// walker is a region. A region that is removed goes on hearing.
type walker struct {
	agenda barrier.Agenda
	heard  barrier.Heard
	fence  *barrier.Fence
	ahead  quantity.StoreTime
	unsure map[string]bool // regions that have not told it their documents since it lost its own
	newer  bool            // one of them told of an older document than it began with
	after  quantity.StoreTime
}

func newWalk(t documents.T, seed uint64) *walk {
	w := &walk{Rand: rand.New(rand.NewPCG(seed, 7)), t: t, regions: map[string]*walker{}, cut: map[string]bool{}, now: 10 * second,
		used: map[quantity.Cell]map[life]quantity.Units{}, allowed: map[quantity.Cell]quantity.Units{},
		ended: map[string]int64{}}
	w.level = w.IntN(2) == 0
	w.names, w.most = []string{"a", "b", "c", "d"}[:2+w.IntN(3)], []int{1, 2, 4, 32}[w.IntN(4)]
	w.write()
	for _, name := range w.names {
		r := &walker{agenda: barrier.Of(w.all[0]), heard: barrier.Heard{}}
		if w.IntN(2) == 0 {
			r.ahead = quantity.StoreTime(w.IntN(2 * second))
		}
		w.regions[name], w.ended[name] = r, -1
		r.heard.Add(name, w.all[0].Epoch(), w.now+r.ahead)
	}
	return w
}

// write adds a document. It follows the last one, or one before, and forgets a word now and then.
func (w *walk) write() {
	version := int64(len(w.all) + 1)
	weights := map[string]int{}
	for _, name := range w.names {
		if weights[name] = 1 + w.IntN(9); w.level {
			weights[name] = []int{1, 1, 30}[w.IntN(3)]
		}
	}
	removed, fenced, returned := []string{}, []string{}, map[string]int64{}
	if version > 1 {
		last := w.all[len(w.all)-1-w.IntN(min(len(w.all), 2))]
		removed, fenced, returned = slices.Clone(last.Removed), slices.Clone(last.Fenced), maps.Clone(last.Returned)
		if returned == nil {
			returned = map[string]int64{}
		}
		switch name := w.names[w.IntN(len(w.names))]; w.IntN(6) {
		case 0:
			if !slices.Contains(fenced, name) {
				fenced = append(fenced, name)
			}
		case 1:
			if i := slices.Index(fenced, name); i >= 0 {
				fenced = slices.Delete(fenced, i, i+1)
				if w.IntN(4) > 0 {
					returned[name]++
				}
			}
		case 2:
			if !slices.Contains(removed, name) && len(removed) < len(w.names)-1 {
				removed = append(removed, name)
			}
		case 3:
			removed = slices.DeleteFunc(removed, func(one string) bool { return one == name })
		}
	}
	if d := w.parse(version, weights, removed, fenced, returned, w.IntN(4) > 0); d != nil {
		w.all = append(w.all, d)
	}
}

// parse returns a document, nil if it is none.
func (w *walk) parse(version int64, weights map[string]int, removed, fenced []string, returned map[string]int64, has bool) *policy.Document {
	var regions, shares, lives []string
	total := 0
	for _, name := range w.names {
		if !slices.Contains(removed, name) {
			regions = append(regions, name+": {weight: 1}")
			shares = append(shares, fmt.Sprintf("%s: %d", name, weights[name]))
		}
		if n := returned[name]; n > 0 {
			lives = append(lives, fmt.Sprintf("%s: %d", name, n))
		}
		if !slices.Contains(removed, name) && !slices.Contains(fenced, name) {
			total += weights[name]
		}
	}
	text := fmt.Sprintf("version: %d\nregions: {%s}\nfenced: [%s]\nremoved: [%s]\nreturned: {%s}\nlimits:\n", version,
		strings.Join(regions, ", "), strings.Join(fenced, ", "), strings.Join(removed, ", "), strings.Join(lives, ", "))
	limit := max(total, 1) * 20 * (1 + w.IntN(3))
	if w.level {
		limit = 1000
	}
	if has {
		text += fmt.Sprintf("  - {name: %s, domain: api, key: [account], algorithm: fixed_window, limit: %d, window: 1s, weights: {%s}}\n",
			searched, limit, strings.Join(shares, ", "))
	}
	text += "  - {name: other, domain: elsewhere, key: [account], algorithm: fixed_window, limit: 100, window: 1s}\n"
	d, err := policy.Parse("limits.yaml", []byte(text))
	if err != nil {
		return nil
	}
	return d
}

func (w *walk) view(name string) *barrier.View {
	r := w.regions[name]
	return &barrier.View{Agenda: r.agenda, Region: name, Heard: r.heard, Fence: r.fence, Now: w.now + r.ahead, Unsure: len(r.unsure) > 0, After: r.after}
}

// learn gives a region documents, the newest first.
func (w *walk) learn(name string, all ...*policy.Document) {
	r := w.regions[name]
	for _, d := range slices.Backward(all) {
		next, err := r.agenda.Learn(d)
		if err != nil {
			continue
		}
		r.agenda = next
		for _, one := range next.Documents() {
			if _, known := r.heard[name][one.Epoch()]; !known {
				r.heard.Add(name, one.Epoch(), w.now+r.ahead)
			}
			for _, fenced := range one.Fenced {
				w.ended[fenced] = max(w.ended[fenced], one.Life(fenced))
			}
		}
		if r.fence != nil && next.Knows(name, *r.fence) {
			r.fence = nil
		}
		w.note(name)
	}
}

// note closes what is over in a region, and notes what it could use now.
func (w *walk) note(name string) {
	r := w.regions[name]
	r.agenda = w.view(name).Folded(w.most)
	for _, one := range r.agenda.Documents() {
		if _, known := r.heard[name][one.Epoch()]; !known {
			r.heard.Add(name, one.Epoch(), w.now+r.ahead)
		}
	}
	v := w.view(name)
	cell := quantity.Cell((w.now + r.ahead) / second)
	of := life{name, v.Agenda.Newest().Life(name)}
	if w.used[cell] == nil {
		w.used[cell] = map[life]quantity.Units{}
	}
	w.used[cell][of] = max(w.used[cell][of], part(v))
	for _, d := range w.all {
		if v.Agenda.Has(d.Epoch()) {
			w.allowed[cell] = max(w.allowed[cell], limitOf(d))
		}
	}
}

// tell has a region tell another what it says with a message.
func (w *walk) tell(from, to string) {
	a, r := w.regions[from], w.regions[to]
	w.learn(to, a.agenda.Documents()...)
	newest := a.agenda.Newest()
	if f := (barrier.Fence{From: from, Life: newest.Life(to)}); newest.Fences(to) && !r.agenda.Knows(to, f) {
		r.fence = &f
	}
	acknowledged := slices.ContainsFunc(a.agenda.Documents(), func(d *policy.Document) bool { return r.agenda.Has(d.Epoch()) })
	for _, d := range a.agenda.Documents() {
		if d.Kept != nil || r.agenda.Has(d.Epoch()) {
			continue
		}
		older := r.agenda.Older(d.Epoch())
		r.newer = r.newer || older && len(r.unsure) > 0
		if !older || !acknowledged && len(r.unsure) > 0 {
			w.note(to)
			return // not all of them are known here, or who lost all it knew waits until one is known there
		}
	}
	for _, d := range a.agenda.Documents() {
		r.heard.Add(from, d.Epoch(), a.heard[from][d.Epoch()])
	}
	if delete(r.unsure, from); len(r.unsure) == 0 && r.newer {
		r.after, r.newer = r.heard.By(to, r.agenda), false
	}
	w.note(to)
}

// step has something happen.
func (w *walk) step() {
	name, other := w.names[w.IntN(len(w.names))], w.names[w.IntN(len(w.names))]
	switch w.IntN(12) {
	case 0:
		w.write()
	case 1, 2:
		d := w.all[w.IntN(len(w.all))]
		w.said = append(w.said, fmt.Sprintf("%d: %s is given %s", w.now, name, d.Epoch()))
		w.learn(name, d)
	case 3:
		w.cut[name] = !w.cut[name]
		w.said = append(w.said, fmt.Sprintf("%d: %s is cut off: %v", w.now, name, w.cut[name]))
	case 4: // it starts again, and has heard nothing yet
		r := w.regions[name]
		r.heard = barrier.Heard{name: r.heard[name]}
		if d := w.all[w.IntN(len(w.all))]; w.IntN(3) == 0 && w.mayLose(name, d) {
			w.lose(name, d)
		}
	case 5, 6, 7:
		if name != other && !w.cut[name] && !w.cut[other] {
			w.tell(name, other)
		}
	default:
		w.now += quantity.StoreTime(w.IntN(second / 2))
		for _, one := range w.names {
			w.note(one)
		}
	}
}

// mayLose reports whether it is said what happens if a region is started with a document alone: the
// document has all regions, and no other one waits to be told what it lost.
func (w *walk) mayLose(name string, d *policy.Document) bool {
	for other, r := range w.regions {
		if other != name && len(r.unsure) > 0 {
			return false
		}
	}
	return len(d.Regions) == len(w.names)
}

// lose has a region start with a file alone: it lost its store and its journals.
func (w *walk) lose(name string, d *policy.Document) {
	r := w.regions[name]
	w.lost++
	w.said = append(w.said, fmt.Sprintf("%d: %s lost all it knew, and is started with %s", w.now, name, d.Epoch()))
	r.agenda, r.heard, r.fence, r.unsure = barrier.Of(d), barrier.Heard{}, nil, map[string]bool{}
	r.newer, r.after = false, 0
	for _, other := range d.RegionNames() {
		r.unsure[other] = other != name
	}
	delete(r.unsure, name)
	w.note(name)
}

// excess returns the first cell in which the regions could use more than any document allows that
// was open in it, and by how much. A life that a document ended does not count: its use is printed.
func (w *walk) excess() (cell quantity.Cell, by quantity.Units) {
	for _, cell := range slices.Sorted(maps.Keys(w.used)) {
		var sum quantity.Units
		for of, units := range w.used[cell] {
			if of.n > w.ended[of.region] {
				sum += units
			}
		}
		if sum > w.allowed[cell] {
			return cell, sum - w.allowed[cell]
		}
	}
	return 0, 0
}

// settles gives some region a document that says all that there is to say, lets all hear each other,
// and reports whether it then is in force alone.
func (w *walk) settles() bool {
	returned, weights := map[string]int64{}, map[string]int{}
	for _, name := range w.names {
		if weights[name] = 1; w.ended[name] >= 0 {
			returned[name] = w.ended[name] + 1
		}
		for _, d := range w.all {
			returned[name] = max(returned[name], d.Life(name))
			if d.Fences(name) {
				returned[name] = max(returned[name], d.Life(name)+1)
			}
		}
	}
	last := w.parse(int64(len(w.all)+1), weights, nil, nil, returned, true)
	w.all = append(w.all, last)
	w.cut = map[string]bool{}
	w.learn(w.names[w.IntN(len(w.names))], last)
	for range 40 {
		for _, from := range w.names {
			for _, to := range w.names {
				if from != to {
					w.tell(from, to)
				}
			}
		}
		w.now += second / 4
		for _, name := range w.names {
			w.note(name)
		}
	}
	for _, r := range w.regions {
		if len(r.agenda.Documents()) != 1 || r.agenda.Newest() != last && r.agenda.Newest().Epoch() != last.Epoch() || r.fence != nil {
			return false
		}
	}
	return true
}

// TestDocumentsInAnyOrder walks through many lives. None exceeds a limit, and each ends in a
// document that is in force alone.
func TestDocumentsInAnyOrder(t *testing.T) {
	judged, documents, lost := 0, 0, 0
	for seed := range suite.Short[uint64](150, 5_000) {
		w := newWalk(t, seed)
		for range 120 {
			w.step()
		}
		settles := w.settles()
		if cell, by := w.excess(); by > 0 || !settles {
			for _, name := range w.names {
				t.Logf("%s: %s, %d ahead", name, w.regions[name].agenda, w.regions[name].ahead)
			}
			for _, d := range w.all {
				t.Log(d.Epoch(), strings.ReplaceAll(string(d.Source()), "\n", " "))
			}
			t.Fatalf("seed %d: %d more than any document allows in cell %d (%v of %d); it settles: %v\n%s", seed, by, cell,
				w.used[cell], w.allowed[cell], settles, strings.Join(w.said, "\n"))
		}
		judged, documents = judged+len(w.used), documents+len(w.all)
		lost += w.lost
	}
	t.Logf("%d cells, %d documents, %d regions that lost all they knew", judged, documents, lost)
	if judged < 1000 {
		t.Error("hardly any cell was judged")
	}
}
