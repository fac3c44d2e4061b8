package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// What a typo, a template or a tool may leave where something else should be.
var (
	insteadOfWord   = []string{"", "~", "[]", "account"}
	insteadOfNumber = []string{"0", "-1", "1.5", "4503599627370497", "account"}
	insteadOfGroup  = []string{"", "[]", "{}", "account"}
)

var (
	word   = regexp.MustCompile(`[\w./*-]+`)
	number = regexp.MustCompile(`^[\d.]+$`)
)

// TestChangedDocuments: a document of the project in which one word, number, list or line is
// changed is refused with errors at places that exist, or keeps every promise of its type, and then
// the schema accepts it too. See FuzzParse and FuzzSchema, which change more than one thing.
func TestChangedDocuments(t *testing.T) {
	suite.OneGoroutine(t)
	schema := compileSchema(t)
	tried, accepted := 0, 0
	for _, pattern := range []string{"testdata/limits.yaml", "testdata/warned/*.txtar",
		"envoyimport/testdata/made/*.txtar", "../deploy/*/*limits.yaml", "../cmd/quotad/serve/dev/*.yaml",
		"../region/front/console/browser/limits.yaml"} {
		all := samples(t, pattern)
		for _, title := range slices.Sorted(maps.Keys(all)) {
			for _, src := range changed(all[title]) {
				tried++
				if checkParse(t, []byte(src)) == nil {
					continue
				}
				accepted++
				if err, _ := judgedBySchema(schema, []byte(src)); err != nil {
					t.Errorf("%s: Parse accepts it, and the schema does not: %v\n%s", title, err, src)
				}
			}
		}
	}
	t.Logf("%d documents, of which %d were accepted", tried, accepted)
	if tried < 12_000 || accepted < tried/20 || accepted > tried/2 {
		t.Errorf("tried %d documents, of which %d were accepted", tried, accepted)
	}
}

// changed returns all documents that differ from one in a word, a number, a whole list or mapping
// that is written in brackets, or a line. A word also has its last letter left out.
func changed(src string) (all []string) {
	replace := func(at []int, by ...string) {
		for _, other := range by {
			if old := src[at[0]:at[1]]; other != old {
				all = append(all, src[:at[0]]+other+src[at[1]:])
			}
		}
	}
	for _, at := range word.FindAllStringIndex(src, -1) {
		if old := src[at[0]:at[1]]; number.MatchString(old) {
			replace(at, insteadOfNumber...)
		} else {
			replace(at, append(insteadOfWord, old[:len(old)-1])...)
		}
	}
	for _, at := range bracketed(src) {
		replace(at, insteadOfGroup...)
	}
	lines := strings.SplitAfter(src, "\n")
	for i := range lines {
		all = append(all, strings.Join(slices.Concat(lines[:i], lines[i+1:]), ""),
			strings.Join(slices.Concat(lines[:i+1], lines[i:]), ""))
	}
	return all
}

// bracketed returns where the lists and mappings begin and end that are written in brackets.
func bracketed(src string) (all [][]int) {
	var open []int
	for i, c := range src {
		switch c {
		case '[', '{':
			open = append(open, i)
		case ']', '}':
			if last := len(open) - 1; last >= 0 {
				all, open = append(all, []int{open[last], i + 1}), open[:last]
			}
		}
	}
	return all
}
