package strictyaml

import "strings"

// suggest returns the known word that was probably meant by word, if one is
// near enough: a few letters away, or the long form of an abbreviation.
func suggest(word string, known []string) (string, bool) {
	folded := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	best, bestDistance := "", 1+max(1, min(3, len(folded)/3))
	for _, k := range known {
		target := strings.ReplaceAll(k, "-", "_")
		if len(folded) >= 3 && strings.HasPrefix(target, folded) {
			return k, true
		}
		if d := editDistance(folded, target); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best, best != ""
}

// DidYouMean returns how to mend a word that is none of the known ones.
func DidYouMean(word string, known []string) string {
	if k, ok := suggest(word, known); ok {
		return "did you mean " + k + "?"
	}
	return "use one of " + strings.Join(known, ", ")
}

// maxSuggestBytes bounds the work of editDistance on absurd input.
const maxSuggestBytes = 64

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment).
func editDistance(a, b string) int {
	if len(a) > maxSuggestBytes || len(b) > maxSuggestBytes {
		return len(a) + len(b)
	}
	var before []int
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(previous[j]+cost, previous[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(b)]
}
