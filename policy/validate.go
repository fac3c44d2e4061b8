package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy/strictyaml"
)

// source is an entry together with the fields it was read from, for positions.
type source struct {
	*Limit
	object strictyaml.Object
}

// String names the entry and its place.
func (s source) String() string { return fmt.Sprintf("limits[%d] (%s)", s.Index, s.Pos) }

// limitName identifies the entries that are one limit with several terms.
type limitName struct{ domain, name string }

// checkNames checks the entries of each name together. It leaves out entries with errors of their
// own, because their meaning is not known.
func checkNames(entries []source) {
	var order []limitName
	groups := make(map[limitName][]source)
	for _, e := range entries {
		if e.Entries != nil { // see checkPaths
			continue
		}
		id := limitName{e.Domain, e.Name}
		if _, ok := groups[id]; !ok {
			order = append(order, id)
		}
		groups[id] = append(groups[id], e)
	}
	for _, id := range order {
		checkAgreement(groups[id])
		checkTies(groups[id])
	}
}

// checkAgreement checks that entries of one name have the same key, algorithm and window. All else
// may differ from entry to entry.
func checkAgreement(group []source) {
	first := group[0]
	differ := func(e source, field, mine, theirs string) {
		e.object.At(field).Fail(
			fmt.Sprintf("%s differs from %s of %s, which has the same name", mine, theirs, first),
			fmt.Sprintf("give both the same %s, or one of them another name", field))
	}
	for _, e := range group[1:] {
		if !slices.Equal(e.Key, first.Key) {
			differ(e, "key", formatKey(e.Key), formatKey(first.Key))
		}
		if e.Algorithm != first.Algorithm {
			differ(e, "algorithm", string(e.Algorithm), string(first.Algorithm))
		}
		if e.Window != first.Window || e.Period != first.Period {
			differ(e, "window", e.windowWords(), first.windowWords())
		}
	}
}

// windowWords names the windows in an error.
func (s source) windowWords() string {
	if s.Period != "" {
		return s.Period.Words()
	}
	return FormatWindow(s.Window)
}

func formatKey(names []string) string { return "[" + strings.Join(names, ", ") + "]" }

// checkTies refuses two entries of one name that could both win a request: both have equally many
// conditions, and a request can meet them all. It refuses them even if a third entry always wins
// over both, because removing that entry would make the document invalid.
func checkTies(group []source) {
	for i, e := range group {
		for _, other := range group[:i] {
			if len(e.Match) != len(other.Match) || contradict(e.Match, other.Match) {
				continue
			}
			e.object.At("match").Fail(tieProblem(e, other),
				"make the conditions contradict each other, or give one entry a condition more")
			break
		}
	}
}

func tieProblem(e, other source) string {
	if len(e.Match) == 0 {
		return fmt.Sprintf("%s has the same name and no conditions either, so neither goes before the other", other)
	}
	return fmt.Sprintf("%s has the same name and as many conditions, and a request can meet both",
		other)
}

// contradict reports whether no request can meet both lists of conditions,
// which are sorted by name.
func contradict(a, b []Condition) bool {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch c := strings.Compare(a[i].Name, b[j].Name); {
		case c < 0:
			i++
		case c > 0:
			j++
		case a[i].Value != b[j].Value:
			return true
		default:
			i, j = i+1, j+1
		}
	}
	return false
}
