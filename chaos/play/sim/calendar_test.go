//go:build !race

package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// The judge's calendar, which reads dates, and the node's, which follows the zone's rules, agree
// around all moments at which runs begin. At each of them a period begins.
func TestTheJudgeReadsTheSameCalendar(t *testing.T) {
	for _, m := range moments {
		end, err := time.Parse(time.RFC3339, m.ends)
		if err != nil {
			t.Fatal(err)
		}
		for _, window := range m.windows {
			doc, err := policy.Parse("limits.yaml", fmt.Appendf(nil, "version: 1\nregions: {a: {weight: 1}}\n"+
				"limits:\n- {name: l, domain: api, key: [k], algorithm: fixed_window, limit: 1, window: %s, timezone: %s}",
				window, m.zone))
			if err != nil {
				t.Fatal(err)
			}
			c, _ := doc.Limits[0].Calendar()
			judge := judgedBy(&doc.Limits[0])
			rule := newLimit(&world{plan: &Plan{}}, (&Plan{}).entries([]*policy.Document{doc})[0]).rule
			if rule.Calendar == nil || *rule.Calendar != *judge {
				t.Errorf("%s in %s is judged as %+v", window, m.zone, rule)
			}
			at := end.Add(-3 * 24 * time.Hour)
			for ; at.Before(end.Add(3 * 24 * time.Hour)); at = at.Add(10 * time.Minute) {
				us := at.UnixMicro()
				if got, want := c.At(quantity.StoreTime(us)), rule.CellOf(us); int64(got) != want {
					t.Fatalf("%s in %s, at %s: cell %d, the judge says %d", window, m.zone, at, got, want)
				}
			}
			us := end.UnixMicro()
			if rule.CellOf(us-1) == rule.CellOf(us) {
				t.Errorf("%s in %s does not end at %s", window, m.zone, m.ends)
			}
		}
	}
}

// Runs with calendars begin before a period ends, and decide in it and in the one after.
func TestRunsCrossTheEndOfAPeriod(t *testing.T) {
	crossed := 0
	for seed := uint64(1); seed <= 10; seed++ {
		p := Draw(seed, Config{For: 40_000_000, Algorithm: "fixed_window", Calendar: true})
		if !strings.Contains(p.Document, "timezone: ") {
			t.Fatalf("seed %d has the document %s", seed, p.Document)
		}
		o, err := Run(p)
		if err != nil || o.Broken != nil {
			t.Fatalf("seed %d: %v, %v", seed, err, o.Broken)
		}
		doc, err := p.document(1)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := doc.Limits[0].Calendar()
		from, to := p.Began+p.Into, p.Began+p.Into+p.Heal
		if c.At(quantity.StoreTime(from)) != c.At(quantity.StoreTime(to)) {
			crossed++
		}
	}
	if crossed != 10 {
		t.Errorf("%d of 10 runs have the end of a period in them", crossed)
	}
}
