package policy

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/policy/strictyaml"
)

// Fences says whether the document fences a region: an operator's word that the region is stopped.
// It gets nothing of any limit, whatever its weight, and nobody waits for it.
func (d *Document) Fences(region string) bool { return slices.Contains(d.Fenced, region) }

// readFenced reads the names of fenced regions, sorted. At least one region is not fenced.
func readFenced(f strictyaml.Value, regions []Region) (fenced []string) {
	const mend = "name regions of the document that are stopped, such as [ap-south]"
	items, ok := f.List(mend)
	if !ok {
		return nil
	}
	for _, item := range items {
		name, ok := item.Text(mend)
		if !ok {
			continue
		}
		switch {
		case slices.Contains(fenced, name):
			item.Fail(fmt.Sprintf("%q is named twice", name), "remove one")
		case !slices.ContainsFunc(regions, func(r Region) bool { return r.Name == name }):
			item.Fail(fmt.Sprintf("the document has no region %q", name),
				"correct the name, or remove it")
		default:
			fenced = append(fenced, name)
		}
	}
	if len(fenced) > 0 && len(fenced) == len(regions) {
		f.Fail("all regions are fenced", "leave out those that run")
	}
	slices.Sort(fenced)
	return fenced
}

// passOverFenced gives fenced regions nothing of a limit, of which something must be left.
func passOverFenced(o strictyaml.Object, l *Limit, doc *Document) {
	if len(doc.Fenced) == 0 || len(l.Weights) == 0 {
		return
	}
	left := false
	for i, r := range doc.Regions {
		if doc.Fences(r.Name) {
			l.Weights[i] = 0
		}
		left = left || l.Weights[i] > 0
	}
	if !left {
		o.At("weights").Fail("every region with a weight is fenced",
			"give a region that runs a weight above 0")
	}
}
