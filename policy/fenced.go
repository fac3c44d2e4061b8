package policy

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/policy/strictyaml"
)

// Fences reports whether the document fences a region: an operator's word that the region is stopped.
// It gets nothing of any limit, whatever its weight, and nobody waits for it. A region that is
// removed can be fenced, too.
func (d *Document) Fences(region string) bool { return slices.Contains(d.Fenced, region) }

// Life says how often a region has returned after it was fenced. A fence ends the life that its
// document names, and all before. No newer document may name a lower one.
func (d *Document) Life(region string) int64 { return d.Returned[region] }

// Removes reports whether the document says of a region that an older document has, in Regions or in
// Removed, that it goes for good. A newer document must have each region of older ones in one of
// the two, so that none goes by a slip.
func (d *Document) Removes(region string) bool { return slices.Contains(d.Removed, region) }

// Knows reports whether a document has a region, or says that it removes it.
func (d *Document) Knows(region string) bool {
	_, has := d.RegionIndex(region)
	return has || d.Removes(region)
}

// readFenced reads the names of fenced regions, sorted. At least one region is not fenced.
func readFenced(f strictyaml.Value, d *Document) []string {
	fenced := readRegionNames(f, "name regions of the document that are stopped, such as [ap-south]",
		func(item strictyaml.Value, name string) { known(item, name, d) })
	if len(fenced) > 0 && !slices.ContainsFunc(d.Regions, func(r Region) bool { return !slices.Contains(fenced, r.Name) }) {
		f.Fail("all regions are fenced", "leave out those that run")
	}
	return fenced
}

// readReturned reads how often regions have returned.
func readReturned(f strictyaml.Value, d *Document) map[string]int64 {
	entries, ok := f.Entries("give each region that was fenced how often it has returned: {ap-south: 1}")
	if !ok {
		return nil
	}
	returned := map[string]int64{}
	for _, entry := range entries {
		known(entry.Key, entry.Name, d)
		returned[entry.Name] = entry.Value.Integer(1, MaxReturned)
	}
	return returned
}

// known fails if a document has no region of a name, nor removes one.
func known(at strictyaml.Value, name string, d *Document) {
	if !has(d.Regions, name) && !d.Removes(name) {
		at.Fail(fmt.Sprintf("the document has no region %q", name), "correct the name, or remove it")
	}
}

// readRemoved reads the names of removed regions, sorted.
func readRemoved(f strictyaml.Value, regions []Region) []string {
	removed := readRegionNames(f, "name regions that go for good, such as [ap-south]",
		func(item strictyaml.Value, name string) {
			if has(regions, name) {
				item.Fail(fmt.Sprintf("%q is one of the regions, too", name),
					"take it out of regions, or out of removed")
			}
		})
	if len(removed) > MaxRemoved {
		f.Fail(fmt.Sprintf("%d regions", len(removed)), fmt.Sprintf("name at most %d", MaxRemoved))
	}
	return removed
}

// readRegionNames reads a list of names of regions, sorted, each of which check looks at.
func readRegionNames(f strictyaml.Value, mend string, check func(item strictyaml.Value, name string)) (names []string) {
	items, _ := f.List(mend)
	for _, item := range items {
		switch name, ok := readName(item, regionNames); {
		case !ok:
		case slices.Contains(names, name):
			item.Fail(fmt.Sprintf("%q is named twice", name), "remove one")
		default:
			check(item, name)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func has(regions []Region, name string) bool {
	return slices.ContainsFunc(regions, func(r Region) bool { return r.Name == name })
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
