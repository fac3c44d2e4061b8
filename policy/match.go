package policy

import (
	"cmp"
	"slices"
)

// Matcher finds the limits that apply to a request. It is a compiled form of one document. It never
// changes and may be used by any number of goroutines.
type Matcher struct {
	domains map[string][]*group
	names   map[limitName]*group
}

// group is the entries of one name in one domain: one limit with several terms. They agree on key,
// algorithm and window.
type group struct {
	first *Limit
	tries []trie // by number of conditions, most first
}

// trie holds the entries of a group whose conditions are on the same descriptors. A lookup goes
// down one level for each descriptor, by the request's value, so it costs the same for a thousand
// tenants as for one.
type trie struct {
	names []string
	root  *trieNode
}

type trieNode struct {
	next  map[string]*trieNode
	limit *Limit // at the last level
}

// Compile returns a matcher for the document. Its results point into d.Limits.
func (d *Document) Compile() *Matcher {
	m := &Matcher{domains: make(map[string][]*group), names: make(map[limitName]*group)}
	for i := range d.Limits {
		l := &d.Limits[i]
		id := limitName{l.Domain, l.Name}
		g, ok := m.names[id]
		if !ok {
			g = &group{first: l}
			m.names[id] = g
			m.domains[l.Domain] = append(m.domains[l.Domain], g)
		}
		g.add(l)
	}
	for _, g := range m.names {
		slices.SortStableFunc(g.tries,
			func(a, b trie) int { return cmp.Compare(len(b.names), len(a.names)) })
	}
	return m
}

func (g *group) add(l *Limit) {
	i := slices.IndexFunc(g.tries, func(t trie) bool { return t.isOn(l.Match) })
	if i < 0 {
		i = len(g.tries)
		names := make([]string, len(l.Match))
		for j, c := range l.Match {
			names[j] = c.Name
		}
		g.tries = append(g.tries, trie{names: names, root: &trieNode{}})
	}
	g.tries[i].add(l)
}

func (t trie) isOn(match []Condition) bool {
	return slices.EqualFunc(t.names, match,
		func(name string, c Condition) bool { return name == c.Name })
}

func (t trie) add(l *Limit) {
	n := t.root
	for _, c := range l.Match {
		next, ok := n.next[c.Value]
		if !ok {
			next = &trieNode{}
			if n.next == nil {
				n.next = make(map[string]*trieNode)
			}
			n.next[c.Value] = next
		}
		n = next
	}
	n.limit = l
}

// find returns the entry all of whose conditions the request meets, or nil.
// There is at most one: Parse refuses two entries with the same conditions.
func (t trie) find(descriptors map[string]string) *Limit {
	n := t.root
	for _, name := range t.names {
		value, ok := descriptors[name]
		if !ok {
			return nil
		}
		if n, ok = n.next[value]; !ok {
			return nil
		}
	}
	return n.limit
}

// at returns the entry with exactly these conditions, which are on the
// descriptors of t, or nil.
func (t trie) at(match []Condition) *Limit {
	n := t.root
	for _, c := range match {
		next, ok := n.next[c.Value]
		if !ok {
			return nil
		}
		n = next
	}
	return n.limit
}

// winner returns the entry in force for a request, or nil. Parse refuses
// documents in which two entries with as many conditions can match one request,
// so the first find is the only one of its length.
func (g *group) winner(descriptors map[string]string) *Limit {
	for _, name := range g.first.Key {
		if _, ok := descriptors[name]; !ok {
			return nil
		}
	}
	for i := range g.tries {
		if l := g.tries[i].find(descriptors); l != nil {
			return l
		}
	}
	return nil
}

// Append appends to dst the limits that apply to a request, in the order of the document. A limit
// applies if the request is of its domain, carries all descriptors of its key and meets all its
// conditions. Of several entries of one name, Append takes the one with the most conditions. It
// allocates only to grow dst.
func (m *Matcher) Append(dst []*Limit, domain string, descriptors map[string]string) []*Limit {
	start := len(dst)
	for _, g := range m.domains[domain] {
		l := g.winner(descriptors)
		if l == nil {
			continue
		}
		dst = append(dst, l)
		// Groups come in the order of their first entries, and the winner may be a later entry.
		// Move it to its place.
		for i := len(dst) - 1; i > start && dst[i-1].Index > l.Index; i-- {
			dst[i-1], dst[i] = dst[i], dst[i-1]
		}
	}
	return dst
}

// Entry returns the entry that a bucket belongs to: the one with exactly this domain, name,
// algorithm, window, names of the key and conditions, the conditions sorted by name. There is at
// most one, because Parse refuses two entries of one name with the same conditions. A region uses
// Entry to find out which limit a peer's bucket is of.
func (m *Matcher) Entry(ref BucketRef) (*Limit, bool) {
	g, ok := m.names[limitName{ref.Domain, ref.Name}]
	if !ok || ref.Algorithm != g.first.Algorithm || ref.Window != g.first.Window {
		return nil, false
	}
	sameKey := slices.EqualFunc(ref.Key, g.first.Key,
		func(kv KeyValue, name string) bool { return kv.Name == name })
	if !sameKey {
		return nil, false
	}
	i := slices.IndexFunc(g.tries, func(t trie) bool { return t.isOn(ref.Match) })
	if i < 0 {
		return nil, false
	}
	l := g.tries[i].at(ref.Match)
	return l, l != nil
}
