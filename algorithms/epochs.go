package algorithms

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A token's epoch names the limits documents that are open in a region, the oldest first, as in
// "3-1a2b3c4d5e6f+4-a1b2c3d4e5f6". Each name begins with the version of the document and a dash, or
// with a k before the dash, if it is what is kept of folded documents up to that version. A
// script is answered only for exactly the text that stands in the token, so nobody decides without
// a document that is open.

// epochSeparator stands between the names of documents in a token's epoch.
const epochSeparator = "+"

// JoinEpochs returns the text that names documents.
func JoinEpochs(names []string) string { return strings.Join(names, epochSeparator) }

// SplitEpochs returns the names of the documents in a token's epoch.
func SplitEpochs(epoch string) []string { return strings.Split(epoch, epochSeparator) }

// MergeEpochs returns what must stand in a token if one node of a region has one text and another
// node another: the documents of both, but none of a lower version than the higher of the two first
// ones. That document is in force whole, so nothing older binds any more. Where a text names what is
// kept of folded documents, its first document is not.
func MergeEpochs(a, b string) string {
	these, those := SplitEpochs(a), SplitEpochs(b)
	base := max(wholeFrom(these), wholeFrom(those))
	all := slices.DeleteFunc(slices.Concat(these, those),
		func(name string) bool { return epochVersion(name) < base })
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(keptFirst(a), keptFirst(b)), cmp.Compare(epochVersion(a), epochVersion(b)), cmp.Compare(a, b))
	})
	return JoinEpochs(slices.Compact(all))
}

// wholeFrom returns the version from which on documents bind, by their names; 0: not known.
func wholeFrom(names []string) int64 {
	if keptFirst(names[0]) == 0 {
		return 0
	}
	return epochVersion(names[0])
}

// epochVersion returns the number at the beginning of a document's name, 0 if it has none.
func epochVersion(name string) int64 {
	digits, _, _ := strings.Cut(name, "-")
	n, _ := strconv.ParseInt(strings.TrimSuffix(digits, "k"), 10, 64)
	return n
}

// keptFirst returns 0 for the name of what is kept of folded documents, which comes first, and 1 for
// others.
func keptFirst(name string) int {
	if digits, _, _ := strings.Cut(name, "-"); strings.HasSuffix(digits, "k") {
		return 0
	}
	return 1
}
