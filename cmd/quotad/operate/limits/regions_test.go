package limits

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
)

const regionsAndLimits = "regions: {a: {weight: 1}, b: {weight: 1}, c: {weight: 1}}\n" +
	"limits:\n  - {name: l, domain: api, key: [account], algorithm: fixed_window, limit: 90, window: 1m}\n"

// TestFenceKeepsTheText: the document that fences a region has every other line of the one before.
func TestFenceKeepsTheText(t *testing.T) {
	for _, c := range []struct{ name, before, after string }{
		{"none yet", "# ours\nversion: 7   # of Monday\n" + regionsAndLimits, "# ours\nversion: 8\nfenced: [b]\n" + regionsAndLimits},
		{"the version last", regionsAndLimits + "version: 7\n", regionsAndLimits + "version: 8\nfenced: [b]\n"},
		{"another before", "version: 7\nfenced: [c] # since May\n" + regionsAndLimits, "version: 8\nfenced: [b, c]\n" + regionsAndLimits},
		{"lines that end as on Windows", "version: 7\r\n" + regionsAndLimits, "version: 8\nfenced: [b]\n" + regionsAndLimits},
		{"a block of names", "version: 7\nfenced:\n  - c\n" + regionsAndLimits, ""},
		{"one line", `{version: 7, regions: {a: {weight: 1}, b: {weight: 1}}, limits: [{name: l, domain: api, key: [k], algorithm: fixed_window, limit: 9, window: 1m}]}`, ""},
	} {
		before, err := policy.Parse("limits.yaml", []byte(c.before))
		suite.Must(t, err)
		d, err := fence(before, "b")
		switch {
		case c.after == "" && (err == nil || !strings.Contains(err.Error(), "by hand and use quotad limits apply")):
			t.Errorf("%s: %v, want that it is to be written by hand", c.name, err)
		case c.after != "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.after != "" && string(d.Source()) != c.after:
			t.Errorf("%s:\n%s\nwant\n%s", c.name, d.Source(), c.after)
		}
	}
}
