package limits

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
)

// fence returns a document of the next version that fences one region more.
func fence(before *policy.Document, region string) (*policy.Document, error) {
	if !before.Knows(region) {
		return nil, fmt.Errorf("the document that is open, %s, has no region %q; it has %s", before.Epoch(), region,
			strings.Join(before.RegionNames(), ", "))
	}
	if before.Fences(region) {
		return nil, fmt.Errorf("%s is fenced already, by %s", region, before.Epoch())
	}
	all := append(slices.Clone(before.Fenced), region)
	slices.Sort(all)
	return withRegions(before, all, before.Returned)
}

// unfence returns a document of the next version by which a region that is fenced has returned.
func unfence(before *policy.Document, region string) (*policy.Document, error) {
	if !before.Fences(region) {
		return nil, fmt.Errorf("the document that is open, %s, does not fence %q: it fences %s", before.Epoch(), region,
			show.OrNone(strings.Join(before.Fenced, ", ")))
	}
	fenced := slices.DeleteFunc(slices.Clone(before.Fenced), func(name string) bool { return name == region })
	returned := maps.Clone(before.Returned)
	if returned == nil {
		returned = map[string]int64{}
	}
	returned[region]++
	return withRegions(before, fenced, returned)
}

var (
	versionLine = regexp.MustCompile(`(?m)^version:[ \t]*[0-9]+[ \t]*(#.*)?\r?\n`)
	regionsLine = regexp.MustCompile(`(?m)^(fenced:[ \t]*\[.*\]|returned:[ \t]*\{.*\})[ \t]*(#.*)?\r?\n`)
)

// withRegions returns a document of the next version that fences other regions, or of which others
// have returned, with the comments and the order of the text that it was read from.
func withRegions(before *policy.Document, fenced []string, returned map[string]int64) (*policy.Document, error) {
	lines := regionLines(fenced, returned)
	what := strings.Join(lines, " and ")
	top := fmt.Sprintf("version: %d\n%s\n", before.Version+1, strings.Join(lines, "\n"))
	text := versionLine.ReplaceAllString(regionsLine.ReplaceAllString(string(before.Source()), ""), top)
	d, err := policy.Parse("the document with "+what, []byte(text))
	if err != nil || d.Version != before.Version+1 || !slices.Equal(d.Fenced, fenced) || !maps.Equal(d.Returned, returned) {
		return nil, errors.Join(fmt.Errorf("write %s and version: %d into the document by hand and use quotad limits apply: "+
			"they cannot be added to its text as it is", what, before.Version+1), err)
	}
	return d, nil
}

// regionLines returns the lines of a document that fence regions, and say which have returned.
func regionLines(fenced []string, returned map[string]int64) (lines []string) {
	if len(fenced) > 0 {
		lines = append(lines, "fenced: ["+strings.Join(fenced, ", ")+"]")
	}
	var times []string
	for _, region := range slices.Sorted(maps.Keys(returned)) {
		times = append(times, fmt.Sprintf("%s: %d", region, returned[region]))
	}
	if times != nil {
		lines = append(lines, "returned: {"+strings.Join(times, ", ")+"}")
	}
	return lines
}
