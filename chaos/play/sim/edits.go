package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
)

// editor writes the documents of a plan, one after the other.
type editor struct {
	*rand.Rand
	draft
	plan    *Plan
	trivial bool     // it changes nothing but numbers
	story   []func() // what it does in the next documents, one after the other
	names   int      // limits that got a name of their own
	// ever has the limits that were ever in a domain: those that were replaced are charged beside the
	// others for a while, and a request may not meet too many
	ever map[string]map[string]algorithms.Kind
}

// draft is a limits document that is being edited.
type draft struct {
	regions  []string         // in the order of the plan's
	weights  map[string]int64 // of all regions of the plan
	fenced   []string
	removed  []string
	returned map[string]int64
	limits   []string // a line each
	out      []string // limits that were taken out, as they were
}

// newEditor returns an editor of the plan's first document. In some plans the last region is not in
// it, and joins later.
func newEditor(random *rand.Rand, p *Plan) *editor {
	e := &editor{Rand: random, plan: p, draft: draft{weights: map[string]int64{}, returned: map[string]int64{}},
		ever: map[string]map[string]algorithms.Kind{}}
	e.regions = p.regionNames()
	for _, r := range p.Regions {
		e.weights[r.Name] = r.Weight
	}
	for line := range strings.Lines(p.Document) {
		if strings.Contains(line, "algorithm: ") {
			e.limits = append(e.limits, strings.TrimSuffix(line, "\n"))
		}
	}
	e.valid()
	if len(e.regions) > 2 && e.IntN(4) == 0 {
		before := e.draft.copy()
		e.without(e.regions[len(e.regions)-1])
		if p.Document = e.text(); !e.valid() {
			e.draft = before
			p.Document = e.text()
		}
	}
	return e
}

func (d *draft) copy() draft {
	c := *d
	c.regions, c.fenced, c.removed = slices.Clone(d.regions), slices.Clone(d.fenced), slices.Clone(d.removed)
	c.limits, c.out, c.returned = slices.Clone(d.limits), slices.Clone(d.out), maps.Clone(d.returned)
	return c
}

// text returns the document without its version.
func (d *draft) text() string {
	var b strings.Builder
	b.WriteString("regions:\n")
	for _, r := range d.regions {
		fmt.Fprintf(&b, "  %s: {weight: %d}\n", r, d.weights[r])
	}
	for _, list := range []struct {
		name string
		of   []string
	}{{"fenced", d.fenced}, {"removed", d.removed}} {
		if len(list.of) > 0 {
			fmt.Fprintf(&b, "%s: [%s]\n", list.name, strings.Join(list.of, ", "))
		}
	}
	if len(d.returned) > 0 {
		b.WriteString("returned:\n")
		for _, r := range slices.Sorted(maps.Keys(d.returned)) {
			fmt.Fprintf(&b, "  %s: %d\n", r, d.returned[r])
		}
	}
	b.WriteString("limits:\n" + strings.Join(d.limits, "\n") + "\n")
	return b.String()
}

// valid reports whether the draft is a document whose requests meet not too many limits.
func (e *editor) valid() bool {
	d, err := policy.Parse("limits.yaml", fmt.Appendf(nil, "version: 1\n%s", e.text()))
	if err != nil {
		return false
	}
	for i := range d.Limits {
		l := &d.Limits[i]
		if e.ever[l.Domain] == nil {
			e.ever[l.Domain] = map[string]algorithms.Kind{}
		}
		_, before := e.ever[l.Domain][l.Name]
		e.ever[l.Domain][l.Name] = l.Algorithm
		var all algorithms.Batch
		for _, kind := range e.ever[l.Domain] {
			all.Counts(kind)
		}
		if !before && all.Load() > algorithms.MaxLoad {
			delete(e.ever[l.Domain], l.Name)
			return false
		}
	}
	return true
}

// next edits the draft and returns the document. Half of the documents change numbers alone, but
// where a story is told.
func (e *editor) next() string {
	if len(e.story) > 0 {
		e.try(e.story[0])
		e.story = e.story[1:]
		return e.text()
	}
	for i, line := range e.limits {
		if e.IntN(4) > 0 {
			line = otherNumbers(e.Rand, line, e.regions)
		}
		e.try(func() { e.limits[i] = otherTerms(e.Rand, line) })
	}
	if !e.trivial && e.IntN(2) == 0 {
		for range 1 + e.IntN(3) {
			e.try([]func(){e.takeOut, e.takeOut, e.putBack, e.putBack, e.rename, e.move, e.add, e.fence,
				e.fence, e.unfence, e.unfence, e.remove, e.join}[e.IntN(13)])
		}
	}
	return e.text()
}

// try makes an edit, and takes it back if that leaves no document.
func (e *editor) try(edit func()) {
	before := e.draft.copy()
	if edit(); !e.valid() {
		e.draft = before
	}
}

// tells has the next documents tell a story about the first limit and a region that is away.
func (e *editor) tells(away string) {
	other := func() { e.limits[0] = otherNumbers(e.Rand, e.limits[0], e.regions) }
	weights := func() {
		line := weightsOf.ReplaceAllString(e.limits[0], "")
		e.limits[0] = strings.Replace(line, "}", ", weights: {"+weightsFor(e.Rand, e.regions)+"}}", 1)
	}
	first := e.limits[0]
	out := func() { e.limits = slices.Delete(e.limits, 0, 1) }
	back := func() { e.limits = slices.Insert(e.limits, 0, first); weights() }
	moved := func() { e.limits[0] = strings.Replace(e.limits[0], "domain: ", "domain: moved-", 1) }
	home := func() { e.limits[0] = strings.Replace(e.limits[0], "domain: moved-", "domain: ", 1); weights() }
	fence := func() { e.fenced = append(e.fenced, away) }
	unfence := func() { e.returned[away]++; e.fenced = nil }
	leaves := func() { e.without(away); e.removed = append(e.removed, away) }
	again := e.join
	e.story = [][]func(){{out, back, weights}, {moved, home, other}, {fence, unfence}, {fence, weights, unfence},
		{fence, other, unfence, weights}, {leaves, again, weights}, {weights, weights, weights}, {other, weights, out, back},
		{fence, leaves, again, unfence}}[e.IntN(9)]
}

func (e *editor) takeOut() {
	if len(e.limits) == 0 {
		return
	}
	i := e.IntN(len(e.limits))
	e.out, e.limits = append(e.out, e.limits[i]), slices.Delete(e.limits, i, i+1)
}

// putBack puts a limit back as it was, or with other numbers.
func (e *editor) putBack() {
	if len(e.out) == 0 {
		return
	}
	i := e.IntN(len(e.out))
	line := e.out[i]
	e.out = slices.Delete(e.out, i, i+1)
	for _, r := range e.plan.Regions {
		if !slices.Contains(e.regions, r.Name) {
			line = withoutWeight(line, r.Name)
		}
	}
	if e.IntN(2) == 0 {
		line = otherNumbers(e.Rand, line, e.regions)
	}
	e.limits = append(e.limits, line)
}

// another returns a line of a limit under a new name, in place or beside.
func (e *editor) another(line string) string {
	e.names++
	_, rest, _ := strings.Cut(line, ", ")
	return fmt.Sprintf("  - {name: m%d, %s", e.names, rest)
}

func (e *editor) rename() {
	if len(e.limits) > 0 {
		i := e.IntN(len(e.limits))
		e.out = append(e.out, e.limits[i])
		e.limits[i] = e.another(e.limits[i])
	}
}

func (e *editor) add() {
	if n := len(e.limits); n > 0 && n < 4 {
		e.limits = append(e.limits, otherNumbers(e.Rand, e.another(e.limits[e.IntN(n)]), e.regions))
	}
}

// move moves a limit to another domain, or back.
func (e *editor) move() {
	if len(e.limits) == 0 {
		return
	}
	i := e.IntN(len(e.limits))
	line := e.limits[i]
	if strings.Contains(line, "domain: moved-") {
		e.limits[i] = strings.Replace(line, "domain: moved-", "domain: ", 1)
	} else {
		e.limits[i] = strings.Replace(line, "domain: ", "domain: moved-", 1)
	}
}

// fence fences a region that the document has, or removes.
func (e *editor) fence() {
	all := slices.Concat(e.regions, e.removed)
	if r := all[e.IntN(len(all))]; !slices.Contains(e.fenced, r) {
		e.fenced = append(e.fenced, r)
	}
}

// unfence has a region return that is fenced.
func (e *editor) unfence() {
	if len(e.fenced) == 0 {
		return
	}
	i := e.IntN(len(e.fenced))
	e.returned[e.fenced[i]]++
	e.fenced = slices.Delete(e.fenced, i, i+1)
}

func (e *editor) remove() {
	if len(e.regions) > 2 {
		r := e.regions[e.IntN(len(e.regions))]
		e.without(r)
		e.removed = append(e.removed, r)
	}
}

// without takes a region out of the document and of its limits.
func (e *editor) without(region string) {
	e.regions = slices.DeleteFunc(e.regions, func(r string) bool { return r == region })
	for i, line := range e.limits {
		e.limits[i] = withoutWeight(line, region)
	}
}

// withoutWeight takes a region out of a limit's weights.
func withoutWeight(line, region string) string {
	return weightsOf.ReplaceAllStringFunc(line, func(weights string) string {
		_, list, _ := strings.Cut(strings.TrimSuffix(weights, "}"), "{")
		left := slices.DeleteFunc(strings.Split(list, ", "),
			func(one string) bool { return strings.HasPrefix(one, region+":") })
		return ", weights: {" + strings.Join(left, ", ") + "}"
	})
}

// join adds a region that the document does not have: one that never was in it, or was removed.
func (e *editor) join() {
	for i, r := range e.plan.Regions {
		if slices.Contains(e.regions, r.Name) {
			continue
		}
		e.regions = slices.Insert(e.regions, min(i, len(e.regions)), r.Name)
		e.removed = slices.DeleteFunc(e.removed, func(name string) bool { return name == r.Name })
		return
	}
}
