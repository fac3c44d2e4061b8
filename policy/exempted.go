package policy

// exempted holds the exemptions of one domain. A limit with a key is exempt as a limit with a match
// applies: where the request has these descriptors, whatever else it has.
type exempted struct {
	// By their first entry: one with a value, or one that several values fit, by its name.
	values map[KeyValue][]exemption
	others map[string][]exemption
}

// exemption is one of a document, and the names that its entries have in a request without order.
type exemption struct {
	*Exemption
	names []string
	index int // in the document
}

func (x *exempted) add(e *Exemption, index int) {
	one := exemption{e, occurrences(e.Entries), index}
	if first := e.Entries[0]; first.AnyValue || first.Pattern {
		if x.others == nil {
			x.others = map[string][]exemption{}
		}
		x.others[first.Name] = append(x.others[first.Name], one)
		return
	}
	if x.values == nil {
		x.values = map[KeyValue][]exemption{}
	}
	first := KeyValue{e.Entries[0].Name, e.Entries[0].Value}
	x.values[first] = append(x.values[first], one)
}

// described are the descriptors of a request: a map, or a list.
type described struct {
	byName map[string]string
	list   []KeyValue
}

func (d described) value(name string) (string, bool) {
	if d.list != nil {
		return valueIn(d.list, name)
	}
	value, ok := d.byName[name]
	return value, ok
}

// each calls f with each descriptor, by the name that it has in a map.
func (d described) each(f func(name, value string)) {
	for i, kv := range d.list {
		f(nameIn(d.list, i), kv.Value)
	}
	for name, value := range d.byName {
		f(name, value)
	}
}

// meets returns the exemption that a request meets, or nil. Of several it returns one that denies,
// or else the first of the document.
func (x *exempted) meets(d described) *Exemption {
	if x.values == nil && x.others == nil {
		return nil
	}
	var met exemption
	d.each(func(name, value string) {
		for _, all := range [][]exemption{x.values[KeyValue{name, value}], x.others[name]} {
			for _, e := range all {
				if e.fits(d) && (met.Exemption == nil || e.Deny && !met.Deny ||
					e.Deny == met.Deny && e.index < met.index) {
					met = e
				}
			}
		}
	})
	return met.Exemption
}

func (e exemption) fits(d described) bool {
	for i, one := range e.Entries {
		if value, ok := d.value(e.names[i]); !ok || !one.Fits(value) {
			return false
		}
	}
	return true
}

// Exempt returns the exemption of a domain that a request meets, for which no limit with a key
// applies to it; or nil.
func (m *Matcher) Exempt(domain string, descriptors map[string]string) *Exemption {
	d, ok := m.domains[domain]
	if !ok {
		return nil
	}
	return d.exemptFromKeys(described{byName: descriptors})
}

// exemptFromKeys returns the exemption for which no limit with a key applies to a request, if the
// domain has such limits; or nil.
func (d *domain) exemptFromKeys(of described) *Exemption {
	if len(d.descriptors) == 0 {
		return nil
	}
	return d.exempted.meets(of)
}

// Stray returns the name of a descriptor of a request that limits of its domain have conditions on,
// and whose value meets none of them, such as a plan that is misspelt; empty: there is none. A value
// that meets a key or an exemption meets something. The request is a map of descriptors, or a list.
// Where on_no_limit allows what meets no limit, nothing is looked for.
func (m *Matcher) Stray(domain string, descriptors map[string]string, list []KeyValue) (name string) {
	d, ok := m.domains[domain]
	if !ok || m.rules[domain].OnNoLimit == NoLimitAllow {
		return ""
	}
	return d.stray(described{descriptors, list})
}

// stray is [Matcher.Stray], whatever on_no_limit says.
func (d *domain) stray(of described) (name string) {
	if d.exempted.meets(of) != nil {
		return ""
	}
	of.each(func(has, value string) {
		on := d.byName[has]
		if on == nil || on.anyValue != 0 {
			return
		}
		if _, met := on.values[value]; !met && (name == "" || has < name) {
			name = has
		}
	})
	return name
}
