package audit

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
)

// TestOfDocument: the event names the epochs, and the regions that are fenced or removed anew.
func TestOfDocument(t *testing.T) {
	const limit = "name: l, limit: 10, window: 1s"
	both, one := []string{"us: {weight: 1}", "eu: {weight: 1}"}, []string{"us: {weight: 1}"}
	before := documents.Parse(t, 1, both, limit)
	fenced := documents.With(t, "fenced: [eu]", documents.Parse(t, 2, both, limit))
	removed := documents.With(t, "removed: [eu, ap]", documents.Parse(t, 3, one, limit))
	again := documents.With(t, "removed: [eu, ap]", documents.Parse(t, 4, one, limit))
	more := documents.With(t, "fenced: [eu]", documents.Parse(t, 5, both, limit))
	for name, c := range map[string]struct {
		got     Event
		act     Act
		region  string
		removes string
	}{
		"fences":         {OfDocument(before, fenced), Fence, "eu", ""},
		"fences no more": {OfDocument(fenced, more), Document, "", ""},
		"removes":        {OfDocument(fenced, removed), Document, "", "ap,eu"},
		"removed before": {OfDocument(removed, again), Document, "", ""},
	} {
		_, removes, _ := strings.Cut(c.got.Detail, ", removes ")
		if c.got.Act != c.act || c.got.Region != c.region || removes != c.removes ||
			!strings.HasPrefix(c.got.Detail, "epoch ") {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
}
