package policy

import (
	"cmp"
	"slices"
)

// domain holds the entries of one domain by what they require of a request. Each requirement has a
// number, from 1 upwards. Requirements that few entries have come before those that many have.
type domain struct {
	descriptors []*descriptor
	byName      map[string]*descriptor
	root        node
	paths       *paths // nil: the domain has no limits with entries, and no exemptions
	exempted    exempted
}

// requirement is what an entry requires of one descriptor. A condition requires a value. A name of
// the key requires that the descriptor is there, with any value.
type requirement struct {
	name     string
	value    string
	anyValue bool
}

// descriptor holds the numbers of the requirements on one descriptor.
type descriptor struct {
	name     string
	anyValue int32 // 0: no entry accepts any value
	values   map[string]int32
}

// node is a place in a trie of requirements. The requirements on the way from the root to a node
// have ascending numbers. A request visits the nodes for which it meets all of them, and no others.
// Requirements that few entries have come first. A request lacks most of these, and so leaves the
// entries behind them at the root, however many they are.
type node struct {
	limits  []*Limit // entries that require what is on the way here, and no more
	numbers []int32  // the requirements that lead on from here, in ascending order
	next    []*node  // where each of them leads
}

func newDomain(limits []*Limit) *domain {
	d := &domain{byName: make(map[string]*descriptor)}
	numbers := make(map[requirement]int32)
	limits = d.addPaths(limits)
	for i, r := range rarestFirst(limits) {
		numbers[r] = int32(i + 1)
		d.require(r, numbers[r])
	}
	for _, w := range waysTo(limits, numbers) {
		d.root.add(w)
	}
	return d
}

// addPaths adds the limits with entries, and returns the others.
func (d *domain) addPaths(limits []*Limit) (others []*Limit) {
	for _, l := range limits {
		if l.Entries == nil {
			others = append(others, l)
		} else {
			if d.paths == nil {
				d.paths = &paths{}
			}
			d.paths.addLimit(l)
		}
	}
	return others
}

// add adds a path and returns the step at its end.
func (d *domain) add(path []Entry) *step {
	if d.paths == nil {
		d.paths = &paths{}
	}
	return d.paths.add(path)
}

// rarestFirst returns the requirements of the entries, those that few entries have first.
func rarestFirst(limits []*Limit) []requirement {
	var all []requirement
	uses := make(map[requirement]int)
	for _, l := range limits {
		for _, r := range l.requirements() {
			if uses[r] == 0 {
				all = append(all, r)
			}
			uses[r]++
		}
	}
	slices.SortStableFunc(all,
		func(a, b requirement) int { return cmp.Compare(uses[a], uses[b]) })
	return all
}

// requirements returns what the entry requires of a request, each requirement once: its conditions,
// and the names of its key on which it has no condition.
func (l *Limit) requirements() []requirement {
	var all []requirement
	for _, c := range l.Match {
		all = append(all, requirement{name: c.Name, value: c.Value})
	}
	for _, name := range l.Key {
		if !slices.ContainsFunc(l.Match, func(c Condition) bool { return c.Name == name }) {
			all = append(all, requirement{name: name, anyValue: true})
		}
	}
	return all
}

// require notes the number of a requirement.
func (d *domain) require(r requirement, number int32) {
	on, ok := d.byName[r.name]
	if !ok {
		on = &descriptor{name: r.name, values: make(map[string]int32)}
		d.byName[r.name] = on
		d.descriptors = append(d.descriptors, on)
	}
	if r.anyValue {
		on.anyValue = number
	} else {
		on.values[r.value] = number
	}
}

// way leads through the trie to an entry, by the numbers of its requirements in ascending order.
type way struct {
	numbers []int32
	to      *Limit
}

// waysTo returns the ways to the entries, in ascending order.
func waysTo(limits []*Limit, numbers map[requirement]int32) []way {
	all := make([]way, len(limits))
	for i, l := range limits {
		all[i].to = l
		for _, r := range l.requirements() {
			all[i].numbers = append(all[i].numbers, numbers[r])
		}
		slices.Sort(all[i].numbers)
	}
	slices.SortStableFunc(all, func(a, b way) int { return slices.Compare(a.numbers, b.numbers) })
	return all
}

// add adds an entry. The caller adds entries in ascending order of their ways, so the node to go on
// from is always the last one or a new one.
func (n *node) add(w way) {
	for _, number := range w.numbers {
		last := len(n.numbers) - 1
		if last < 0 || n.numbers[last] != number {
			n.numbers, n.next = append(n.numbers, number), append(n.next, &node{})
			last++
		}
		n = n.next[last]
	}
	n.limits = append(n.limits, w.to)
}

// usualMet is room for the requirements that a request of 16 descriptors can meet: of each
// descriptor its value, and any value.
const usualMet = 2 * 16

// appendMatching appends to dst the entries whose requirements a request meets, in no particular
// order. It allocates only to grow dst, and for requests of more than 16 descriptors.
func (d *domain) appendMatching(dst []*Limit, descriptors map[string]string) []*Limit {
	var room [usualMet]int32
	return d.root.appendMatching(dst, d.appendMet(room[:0], descriptors))
}

// appendMatchingList is appendMatching for a list of descriptors.
func (d *domain) appendMatchingList(dst []*Limit, list []KeyValue) []*Limit {
	var room [usualMet]int32
	met := room[:0]
	for i, kv := range list {
		if on, ok := d.byName[nameIn(list, i)]; ok {
			met = on.appendMet(met, kv.Value)
		}
	}
	slices.Sort(met)
	return d.root.appendMatching(dst, met)
}

// appendMet appends to met the numbers of the requirements that a request meets, in ascending
// order. It goes through the descriptors of the request or through those of the domain, whichever
// are fewer.
func (d *domain) appendMet(met []int32, descriptors map[string]string) []int32 {
	if len(d.descriptors) <= len(descriptors) {
		for _, on := range d.descriptors {
			if value, ok := descriptors[on.name]; ok {
				met = on.appendMet(met, value)
			}
		}
	} else {
		for name, value := range descriptors {
			if on, ok := d.byName[name]; ok {
				met = on.appendMet(met, value)
			}
		}
	}
	slices.Sort(met)
	return met
}

func (d *descriptor) appendMet(met []int32, value string) []int32 {
	if d.anyValue != 0 {
		met = append(met, d.anyValue)
	}
	if number, ok := d.values[value]; ok {
		met = append(met, number)
	}
	return met
}

// appendMatching appends to dst the entries here, and those further on whose remaining requirements
// are among met.
func (n *node) appendMatching(dst []*Limit, met []int32) []*Limit {
	dst = append(dst, n.limits...)
	from := 0
	for i, number := range met {
		if from == len(n.numbers) {
			break
		}
		skipped, found := slices.BinarySearch(n.numbers[from:], number)
		from += skipped
		if found {
			dst = n.next[from].appendMatching(dst, met[i+1:])
		}
	}
	return dst
}
