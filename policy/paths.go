package policy

import (
	"slices"
	"strings"
)

// paths holds the limits with entries of one domain, and the exemptions, as a tree. A list of
// descriptors walks it from the root and never goes back: at each step the entry with its name and
// value leads on; if there is none, the first in the document whose pattern it fits; if there is
// none, the one with its name and any value. What stands where the walk ends applies, if it ends
// with the list. That is how envoyproxy/ratelimit matches, so that its configurations mean the same
// here. A descriptor behind a path that says the class of a limit with classes is passed over.
type paths struct {
	root step
	// orders holds, by their sorted names, in which orders paths have these names.
	orders map[string][][]string
}

// step is a place in the tree.
type step struct {
	values   map[KeyValue]*step
	patterns []patternStep
	anyValue map[string]*step
	limit    *Limit
	exempt   *Exemption
}

type patternStep struct {
	entry Entry
	next  *step
}

// add adds a path and returns the step at its end.
func (p *paths) add(all []Entry) *step {
	at, names := &p.root, make([]string, len(all))
	for i, e := range all {
		at, names[i] = at.on(e), e.Name
	}
	p.order(names)
	return at
}

// order notes an order of names, in which a map is taken.
func (p *paths) order(names []string) {
	sorted := slices.Sorted(slices.Values(names))
	if len(slices.Compact(slices.Clone(sorted))) < len(names) {
		return // a map cannot have a name twice
	}
	if p.orders == nil {
		p.orders = map[string][][]string{}
	}
	set := strings.Join(sorted, "\x00")
	if !slices.ContainsFunc(p.orders[set], func(o []string) bool { return slices.Equal(o, names) }) {
		p.orders[set] = append(p.orders[set], names)
	}
}

// addLimit adds the path of a limit. A map may have the descriptor that says the class besides.
func (p *paths) addLimit(l *Limit) {
	p.add(l.Entries).limit = l
	if l.Classes == nil {
		return
	}
	var names []string
	for _, e := range l.Entries {
		names = append(names, e.Name)
	}
	p.order(append(names, l.Classes.By))
}

// on returns the step to which an entry leads, which it makes if there is none.
func (s *step) on(e Entry) *step {
	switch {
	case e.AnyValue:
		if s.anyValue == nil {
			s.anyValue = map[string]*step{}
		}
		if s.anyValue[e.Name] == nil {
			s.anyValue[e.Name] = &step{}
		}
		return s.anyValue[e.Name]
	case e.Pattern:
		e.Shared = false // which says how to count, and not what fits
		for _, p := range s.patterns {
			if p.entry == e {
				return p.next
			}
		}
		s.patterns = append(s.patterns, patternStep{e, &step{}})
		return s.patterns[len(s.patterns)-1].next
	}
	if s.values == nil {
		s.values = map[KeyValue]*step{}
	}
	kv := KeyValue{e.Name, e.Value}
	if s.values[kv] == nil {
		s.values[kv] = &step{}
	}
	return s.values[kv]
}

// next returns the step to which a descriptor leads, or nil.
func (s *step) next(d KeyValue) *step {
	if next := s.values[d]; next != nil {
		return next
	}
	for _, p := range s.patterns {
		if p.entry.Name == d.Name && p.entry.Fits(d.Value) {
			return p.next
		}
	}
	return s.anyValue[d.Name]
}

// walk returns the step at which a list of descriptors ends, or nil.
func (p *paths) walk(list []KeyValue) *step {
	at := &p.root
	for i, d := range list {
		if i == len(list)-1 && at.passes(d.Name) {
			return at
		}
		if at = at.next(d); at == nil {
			return nil
		}
	}
	return at
}

// passes reports whether the last descriptor says the class of the limit of a path that ends here.
func (s *step) passes(name string) bool { return s.limit != nil && s.limit.Classes.passes(name) }

// walkMap returns the steps at which a map of descriptors ends. A map has no order: it is taken in
// each order in which the document has these names.
func (p *paths) walkMap(descriptors map[string]string) (ends []*step) {
	if len(descriptors) > MaxEntries {
		return nil
	}
	var room [MaxEntries]string
	names := room[:0]
	for name := range descriptors {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, order := range p.orders[strings.Join(names, "\x00")] {
		at := &p.root
		for i, name := range order {
			if i == len(order)-1 && at.passes(name) {
				break
			}
			if at = at.next(KeyValue{name, descriptors[name]}); at == nil {
				break
			}
		}
		if at != nil {
			ends = append(ends, at)
		}
	}
	return ends
}
