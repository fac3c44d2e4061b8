package authz

import (
	"maps"
	"slices"

	"github.com/quotad/quotad/policy/strictyaml"
)

// Rule is what a rule says, for whoever writes it in another form: the first whose path, methods and
// host a request meets makes its descriptors.
type Rule struct {
	Pos     strictyaml.Position
	Field   string // such as rules[0]
	Domain  string
	Path    string   // of the request, or above it; empty: all
	Methods []string // none: all
	Host    string   // in lower case; empty: all
	Costs   bool     // a header says what a request costs
	Made    []Descriptor
}

// Descriptor is what makes one descriptor of a request.
type Descriptor struct {
	Pos   strictyaml.Position
	Field string // such as rules[0].descriptors.account
	Name  string
	// Source is the field that says where the value comes from, such as header.
	Source string
	// Of is the name of the header, parameter or cookie, or the value itself.
	Of string
	// Known holds what stands for each value, sorted by value; nil: each value for itself.
	Known []Known
	// V4 and V6 are how many bits of an address are the value.
	V4, V6   int
	Default  string // empty: none
	Optional bool
}

// Known is a value of a request, and what stands for it.
type Known struct{ Value, Descriptor string }

// The sources that a Descriptor names and that are more than a word for an error.
const (
	Header        = string(fromHeader)
	Method        = string(fromMethod)
	ClientAddress = string(fromAddress)
	Fixed         = string(fixed)
)

// Describe returns the rules, in their order. What it returns is the caller's.
func (m *Mapping) Describe() (all []Rule) {
	for _, r := range m.rules {
		one := Rule{Pos: r.at.pos, Field: r.at.path, Domain: r.domain, Path: r.path,
			Methods: slices.Clone(r.methods), Host: r.host, Costs: r.cost != nil}
		for _, p := range r.parts {
			d := Descriptor{Pos: p.at.pos, Field: p.at.path, Name: p.name, Source: string(p.from),
				Of: p.of, V4: p.v4, V6: p.v6, Default: p.usual, Optional: p.optional}
			for _, value := range slices.Sorted(maps.Keys(p.known)) {
				d.Known = append(d.Known, Known{value, p.known[value]})
			}
			one.Made = append(one.Made, d)
		}
		all = append(all, one)
	}
	return all
}
