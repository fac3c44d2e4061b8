package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
)

// OfDocument returns the act of opening a limits document where another was the newest. It is a
// Fence if the document fences regions that the other does not.
func OfDocument(before, d *policy.Document) Event {
	e := Event{Act: Document, Detail: fmt.Sprintf("epoch %s to %s", before.Epoch(), d.Epoch())}
	removed := slices.DeleteFunc(slices.Clone(d.Removed), before.Removes)
	if len(removed) > 0 {
		e.Detail += ", removes " + strings.Join(removed, ",")
	}
	fenced := slices.DeleteFunc(slices.Clone(d.Fenced), before.Fences)
	if len(fenced) > 0 {
		e.Act, e.Region = Fence, strings.Join(fenced, ",")
	}
	return e
}
