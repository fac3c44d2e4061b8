package envoyimport

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/policy"
)

// domain is a domain with what becomes of its descriptors.
type domain struct {
	name        string
	descriptors []*descriptor
	limits      []*row
	exempt      []*row
	// reached holds, for each descriptor, the place of the first row whose path leads through it:
	// rows of limits first, as documents are matched.
	reached map[*descriptor]int
}

// row is a limit or an exemption of a document.
type row struct {
	path []*descriptor
	name string // of a limit
}

// end returns the last descriptor of the path, which has the limit.
func (r *row) end() *descriptor { return r.path[len(r.path)-1] }

// collect puts the domains of all files together, in the order in which they appear. It reports
// domains and descriptors that are there twice.
func collect(all []*configuration, merge bool) (domains []*domain) {
	first := map[string]*configuration{}
	byName := map[string]*domain{}
	for _, c := range all {
		if c.domain == "" {
			continue
		}
		if first[c.domain] == nil {
			first[c.domain], byName[c.domain] = c, &domain{name: c.domain}
			domains = append(domains, byName[c.domain])
		} else if !merge {
			c.named.Fail(fmt.Sprintf("another file has this domain, at %s", first[c.domain].named.Pos()),
				"give the domain one file, or import with --merge-domains")
		}
		d := byName[c.domain]
		d.descriptors = append(d.descriptors, c.descriptors...)
	}
	for _, d := range domains {
		checkSiblings(d.descriptors)
	}
	return domains
}

// checkSiblings reports descriptors that envoyproxy/ratelimit takes for the same, at any depth.
func checkSiblings(all []*descriptor) {
	first := map[string]*descriptor{}
	for _, d := range all {
		if other := first[d.composite()]; other != nil {
			problem := fmt.Sprintf("%s stands here twice, first at %s", show(d), other.at.Pos())
			if d.key != other.key {
				problem = fmt.Sprintf("to envoyproxy/ratelimit, %s is the same as %s at %s",
					show(d), show(other), other.at.Pos())
			}
			d.at.Fail(problem, "keep one of the two")
		} else {
			first[d.composite()] = d
		}
		checkSiblings(d.below)
	}
}

// show names a descriptor in an error.
func show(d *descriptor) string {
	if d.value == "" {
		return d.key
	}
	return fmt.Sprintf("%s=%q", d.key, d.value)
}

// flatten makes the rows of a domain, in the order of the files.
func (d *domain) flatten() {
	d.flattenBelow(nil, d.descriptors)
	d.reached = map[*descriptor]int{}
	for i, r := range slices.Concat(d.limits, d.exempt) {
		for _, step := range r.path {
			if _, ok := d.reached[step]; !ok {
				d.reached[step] = i
			}
		}
	}
	d.checkOrder(d.descriptors)
}

func (d *domain) flattenBelow(path []*descriptor, below []*descriptor) {
	for _, step := range below {
		r := &row{path: append(slices.Clone(path), step)}
		switch {
		case step.limit == nil && len(step.below) == 0, step.limit != nil && step.limit.countless():
			d.exempt = append(d.exempt, r)
		case step.limit != nil:
			d.limits = append(d.limits, r)
		}
		checkRepeated(r.path)
		d.flattenBelow(r.path, step.below)
	}
}

// checkRepeated reports the key of a path's last entry if documents have another use for it: the
// second entry a of a path is a/2 there.
func checkRepeated(path []*descriptor) {
	names, count := map[string]bool{}, map[string]int{}
	for i, step := range path {
		count[step.key]++
		name := policy.Occurrence(step.key, count[step.key])
		if names[name] && i == len(path)-1 {
			step.at.Fail(name+" is also what quotad calls a repeated key of this path",
				"use another key, here and in Envoy")
		}
		names[name] = true
	}
}

// checkOrder reports descriptors with a * whose order a document cannot keep. The first that fits a
// value applies, and a document has all exemptions behind all limits.
func (d *domain) checkOrder(siblings []*descriptor) {
	var before []*descriptor // those with a * that only lead to exemptions
	for _, step := range siblings {
		own := step.entry()
		if own.Pattern && d.reached[step] >= len(d.limits) {
			before = append(before, step)
		} else if own.Pattern {
			for _, other := range before {
				if other.entry().Meets(own) {
					step.at.Fail(fmt.Sprintf("%s before it, at %s, has no limit and fits the same values", show(other), other.at.Pos()),
						"let no value fit both, or put this one first if it is to apply")
				}
			}
		}
		d.checkOrder(step.below)
	}
}
