// Package documents writes limits documents for the tests of several packages.
package documents

import (
	"fmt"
	"strings"

	"github.com/quotad/quotad/policy"
)

// T is a test.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Parse parses a limits document of some regions, each such as "us: {weight: 1}", and of limits
// given by their fields. Defaults for fields left out: domain api, key [account], algorithm
// fixed_window.
func Parse(t T, version int, regions []string, limits ...string) *policy.Document {
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
	return parse(t, b.String())
}

// With returns a document that has one more line, such as "fenced: [us]".
func With(t T, line string, d *policy.Document) *policy.Document {
	t.Helper()
	return parse(t, line+"\n"+string(d.Source()))
}

func parse(t T, text string) *policy.Document {
	t.Helper()
	d, err := policy.Parse("limits.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return d
}
