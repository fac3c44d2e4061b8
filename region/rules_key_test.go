package region

import (
	"testing"

	"github.com/quotad/quotad/region/rules"
)

// TestAlgorithmAndWindowArePartOfAKey: a limit that is changed in one of them begins anew, beside what the old one holds; another
// amount goes on with what there is.
func TestAlgorithmAndWindowArePartOfAKey(t *testing.T) {
	key := func(limit string) string {
		r, err := rules.New(document(t, 1, hereAndThere, limit), "here", nil)
		if err != nil {
			t.Fatal(err)
		}
		found := r.Match(asked(request("a")))
		if len(found) != 1 {
			t.Fatalf("%d buckets for %q", len(found), limit)
		}
		return found[0].Target.Key
	}
	base := key("name: second, limit: 100, window: 1s")
	if other := key("name: second, limit: 200, window: 1s"); other != base {
		t.Errorf("another amount is another bucket: %q and %q", other, base)
	}
	for _, changed := range []string{"name: second, limit: 100, window: 2s", "name: second, limit: 100, window: 1s, algorithm: sliding_window_log"} {
		if key(changed) == base {
			t.Errorf("%q works on %q, too", changed, base)
		}
	}
}
