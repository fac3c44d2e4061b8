package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/quotad/quotad/policy/strictyaml"
)

// Explained says of one entry of a document whether it applies to a request, and if not, why.
type Explained struct {
	Limit   *Limit
	Applies bool
	// Bucket is that of the request, if the entry applies.
	Bucket BucketID
	// Class is that of the request, if the entry applies and has classes.
	Class Class
	// Lacks holds what keeps the entry from applying, each in words.
	Lacks []string
}

// Explanation says what a document makes of a request.
type Explanation struct {
	Limits []Explained // those of the request's domain, in the order of the document
	Rules  DomainRules
	Known  bool // the document has the domain
	// Meant says which domain the request may have meant, if the document does not have it.
	Meant  string
	Exempt *Exemption // that the request meets; nil: none
	Stray  string     // as [Matcher.Stray], whatever on_no_limit says
}

// Explain says which entries of the document apply to a request, and why the others do not. list
// holds the descriptors of a request in their order. With ordered, they are taken as a list, as
// those of Envoy; else as a map, in which a later descriptor of a name takes the place of one
// before it.
func (d *Document) Explain(domain string, list []KeyValue, ordered bool) (e Explanation) {
	m := d.Compile()
	e.Rules, e.Known = m.Domain(domain)
	if !e.Known {
		e.Meant = strictyaml.DidYouMean(domain, slices.Sorted(maps.Keys(m.rules)))
	}
	descriptors := make(map[string]string, len(list))
	for i, kv := range list {
		name := kv.Name
		if ordered {
			name = nameIn(list, i)
		}
		descriptors[name] = kv.Value
	}
	var applies []*Limit
	if ordered {
		applies, e.Exempt = m.AppendList(nil, domain, list)
	} else {
		applies = m.Append(nil, domain, descriptors)
		e.Exempt = m.Exempt(domain, descriptors)
	}
	if of, has := m.domains[domain]; has {
		e.Stray = of.stray(described{byName: descriptors})
	}
	for i := range d.Limits {
		l := &d.Limits[i]
		if l.Domain != domain {
			continue
		}
		one := Explained{Limit: l, Applies: slices.Contains(applies, l)}
		if one.Applies && l.Classes != nil {
			if one.Class, _ = l.ClassOf(descriptors); ordered {
				one.Class, _ = l.ClassOfList(list)
			}
		}
		switch {
		case one.Applies && ordered:
			one.Bucket = BucketID(l.AppendBucketOf(nil, list))
		case one.Applies:
			one.Bucket = l.Bucket(descriptors)
		case l.Entries != nil && ordered:
			one.Lacks = l.lacksInList(list)
		case l.Entries != nil:
			one.Lacks = l.lacksInMap(descriptors)
		default:
			one.Lacks = l.lacks(descriptors)
		}
		switch {
		case one.Applies || len(one.Lacks) > 0:
		case e.Exempt != nil && l.Entries == nil:
			one.Lacks = []string{"the request is exempt by " + formatEntries(e.Exempt.Entries)}
		default:
			one.Lacks = []string{"another entry goes before it, which says more of the request"}
		}
		e.Limits = append(e.Limits, one)
	}
	return e
}

// lacks returns what a request lacks for an entry without a path.
func (l *Limit) lacks(descriptors map[string]string) (all []string) {
	for _, r := range l.requirements() {
		value, given := descriptors[r.name]
		switch {
		case !given && r.anyValue:
			all = append(all, "there is no "+r.name)
		case !given:
			all = append(all, fmt.Sprintf("there is no %s, which must be %s", r.name, strconv.Quote(r.value)))
		case !r.anyValue && value != r.value:
			all = append(all, fmt.Sprintf("%s is %s, and must be %s", r.name, quoted(value), strconv.Quote(r.value)))
		}
	}
	return all
}

// lacksInMap returns what a map lacks for the entry's path, whose order does not matter then.
func (l *Limit) lacksInMap(descriptors map[string]string) (all []string) {
	names := occurrences(l.Entries)
	if l.Classes != nil {
		names = append(names, l.Classes.By)
	}
	for i, e := range l.Entries {
		value, given := descriptors[names[i]]
		switch {
		case names[i] != e.Name:
			all = append(all, fmt.Sprintf("its entries have %s twice, and these descriptors are no list", e.Name))
		case !given:
			all = append(all, fmt.Sprintf("there is no %s", e))
		case !e.Fits(value):
			all = append(all, fmt.Sprintf("%s is %s, and must be %s", e.Name, quoted(value), strconv.Quote(e.Value)))
		}
	}
	for name := range descriptors {
		if !slices.Contains(names, name) {
			all = append(all, fmt.Sprintf("its entries have no %s, and the depth must be the same", quoted(name)))
		}
	}
	slices.Sort(all)
	return all
}

// lacksInList returns what a list lacks for the entry's path.
func (l *Limit) lacksInList(list []KeyValue) (all []string) {
	if n := len(l.Entries); len(list) == n+1 && l.Classes.passes(list[n].Name) {
		list = list[:n]
	}
	for i, e := range l.Entries {
		switch {
		case i >= len(list):
			all = append(all, fmt.Sprintf("descriptor %d is missing, %s", i+1, e))
		case list[i].Name != e.Name:
			all = append(all, fmt.Sprintf("descriptor %d is %s, and must be %s", i+1, quoted(list[i].Name), e))
		case !e.Fits(list[i].Value):
			all = append(all, fmt.Sprintf("%s is %s, and must be %s", e.Name, quoted(list[i].Value), strconv.Quote(e.Value)))
		}
	}
	if more := len(list) - len(l.Entries); more > 0 {
		all = append(all, fmt.Sprintf("there are %d descriptors more than its entries, and the depth must be the same", more))
	}
	return all
}

// maxQuoted bounds the bytes of a request's text that an explanation repeats.
const maxQuoted = 64

func quoted(text string) string {
	if len(text) > maxQuoted {
		return strconv.Quote(text[:maxQuoted]) + "..."
	}
	return strconv.Quote(text)
}

// Unused returns the names of a request that no limit of its domain has, with what may have been
// meant.
func (e Explanation) Unused(list []KeyValue) (all []string) {
	var known []string
	for _, one := range e.Limits {
		known = append(known, one.Limit.Key...)
		if one.Limit.Classes != nil {
			known = append(known, one.Limit.Classes.By)
		}
		for _, c := range one.Limit.Match {
			known = append(known, c.Name)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, kv := range list {
		if !slices.Contains(known, kv.Name) && len(known) > 0 {
			all = append(all, fmt.Sprintf("no limit of the domain has %s; %s", quoted(kv.Name),
				strictyaml.DidYouMean(kv.Name, known)))
		}
	}
	return all
}
