package policy

import (
	"cmp"
	"slices"
)

// Matcher finds the limits that apply to a request. It is a compiled form of one document. It never
// changes and may be used by any number of goroutines.
type Matcher struct {
	domains map[string]*domain
	// entries finds the entry of a bucket by the bucket's ID without the values of the key.
	entries map[BucketID]*Limit
	// first has, for each entry by its Limit.Index, the index of the first entry of the same name
	// and domain.
	first []int
	// rules has the domains that the document knows, and others what holds for those it does not.
	rules  map[string]DomainRules
	others DomainRules
}

// Compile returns a matcher for the document. Its results point into d.Limits.
func (d *Document) Compile() *Matcher {
	m := &Matcher{domains: make(map[string]*domain), entries: make(map[BucketID]*Limit),
		first: make([]int, len(d.Limits)), rules: make(map[string]DomainRules),
		others: d.Domain("")}
	names := make(map[limitName]int)
	domains := make(map[string][]*Limit)
	for i := range d.Limits {
		l := &d.Limits[i]
		id := limitName{l.Domain, l.Name}
		if _, ok := names[id]; !ok {
			names[id] = i
		}
		m.first[i] = names[id]
		m.entries[l.Bucket(nil)] = l
		domains[l.Domain] = append(domains[l.Domain], l)
	}
	for name, limits := range domains {
		m.domains[name] = newDomain(limits)
	}
	for i := range d.Exempt {
		e := &d.Exempt[i]
		if m.domains[e.Domain] == nil {
			m.domains[e.Domain] = newDomain(nil)
		}
		m.domains[e.Domain].add(e.Entries).exempt = e
		m.domains[e.Domain].exempted.add(e, i)
	}
	for name := range m.domains {
		m.rules[name] = d.Domain(name)
	}
	for _, r := range d.Domains {
		m.rules[r.Name] = r
	}
	return m
}

// Domain returns the rules of a domain, and whether the document has limits, exemptions or rules
// for it.
func (m *Matcher) Domain(name string) (r DomainRules, known bool) {
	if r, known = m.rules[name]; known {
		return r, true
	}
	r = m.others
	r.Name = name
	return r, false
}

// Append appends to dst the limits that apply to a request, in the order of the document. A limit
// applies if the request is of its domain, carries all descriptors of its key and meets all its
// conditions. Of several entries of one name, Append takes the one with the most conditions. To a
// request that meets an exemption no limit with a key applies ([Matcher.Exempt]).
//
// It allocates only to grow dst, and for requests of more than 16 descriptors. While it works, dst
// also holds the entries that apply but for another of their name with more conditions. The cost
// depends on the descriptors and on the entries that apply, and next to nothing on how many others
// the document has.
func (m *Matcher) Append(dst []*Limit, domain string, descriptors map[string]string) []*Limit {
	d, ok := m.domains[domain]
	if !ok {
		return dst
	}
	start := len(dst)
	if d.exemptFromKeys(described{byName: descriptors}) == nil {
		dst = d.appendMatching(dst, descriptors)
	}
	if d.paths != nil {
		for _, end := range d.paths.walkMap(descriptors) {
			if end.limit != nil {
				dst = append(dst, end.limit)
			}
		}
	}
	return dst[:start+m.keepInForce(dst[start:])]
}

// AppendList appends to dst the limits that apply to a list of descriptors, in the order of the
// document. A limit with entries applies as [Limit.Entries] says, any other as it would to a map in
// which each descriptor of the list has the name that [Occurrence] gives it. exempt is the
// exemption that the list meets, or nil: the one whose path it is, or else as a map would, if that
// denies or no limit applies.
func (m *Matcher) AppendList(dst []*Limit, domain string, list []KeyValue) (all []*Limit,
	exempt *Exemption) {
	d, ok := m.domains[domain]
	if !ok {
		return dst, nil
	}
	start := len(dst)
	meets := d.exemptFromKeys(described{list: list})
	if meets == nil {
		dst = d.appendMatchingList(dst, list)
	}
	if d.paths != nil {
		if end := d.paths.walk(list); end != nil {
			exempt = end.exempt
			if end.limit != nil {
				dst = append(dst, end.limit)
			}
		}
	}
	met := m.keepInForce(dst[start:])
	if exempt == nil && meets != nil && (met == 0 || meets.Deny) {
		exempt = meets
	}
	return dst[:start+met], exempt
}

// nameIn returns the name that the i-th descriptor of a list has; see [Occurrence].
func nameIn(list []KeyValue, i int) string {
	n := 1
	for _, before := range list[:i] {
		if before.Name == list[i].Name {
			n++
		}
	}
	return Occurrence(list[i].Name, n)
}

// valueIn returns the value of the descriptor of a list that has a name.
func valueIn(list []KeyValue, name string) (value string, ok bool) {
	for i, d := range list {
		if nameIn(list, i) == name {
			return d.Value, true
		}
	}
	return "", false
}

// keepInForce reduces the entries that a request matches to the one in force of each name, sorts
// these as they are in the document, and returns how many there are. Parse refuses documents in
// which two entries of one name with as many conditions match one request, so one has the most.
func (m *Matcher) keepInForce(matching []*Limit) int {
	if len(matching) <= 1 {
		return len(matching)
	}
	slices.SortFunc(matching, func(a, b *Limit) int {
		return cmp.Or(cmp.Compare(m.first[a.Index], m.first[b.Index]),
			cmp.Compare(len(b.Match), len(a.Match)))
	})
	inForce := slices.CompactFunc(matching,
		func(a, b *Limit) bool { return m.first[a.Index] == m.first[b.Index] })
	slices.SortFunc(inForce, func(a, b *Limit) int { return cmp.Compare(a.Index, b.Index) })
	return len(inForce)
}

// Entry returns the entry that a bucket belongs to: the one with exactly this domain, name,
// algorithm, window, names of the key and conditions, the conditions sorted by name. There is at
// most one, because Parse refuses two entries of one name with the same conditions. A region uses
// Entry to find out which limit a peer's bucket is of.
func (m *Matcher) Entry(ref BucketRef) (*Limit, bool) {
	var room [MaxKeyNames]KeyValue
	ref.Key = append(room[:0], ref.Key...)
	for i := range ref.Key {
		ref.Key[i].Value = ""
	}
	l, ok := m.entries[ref.ID()]
	return l, ok
}
