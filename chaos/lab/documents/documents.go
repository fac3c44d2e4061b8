// Package documents writes limits documents for the tests of several packages.
package documents

import (
	"fmt"
	"strings"

	"github.com/quotad/quotad/policy"
)

// Parse parses a limits document of some regions, each such as "us: {weight: 1}", and of limits
// given by their fields. Defaults for fields left out: domain api, key [account], algorithm
// fixed_window. t is a test.
func Parse(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, version int, regions []string, limits ...string) *policy.Document {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "version: %d\nregions: {%s}\nlimits:\n", version, strings.Join(regions, ", "))
	for _, l := range limits {
		for _, usual := range []string{"domain: api", "key: [account]", "algorithm: fixed_window"} {
			if name, _, _ := strings.Cut(usual, " "); !strings.Contains(l, name) {
				l += ", " + usual
			}
		}
		fmt.Fprintf(&b, "  - {%s}\n", l)
	}
	d, err := policy.Parse("limits.yaml", []byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	return d
}
