//go:build !race

package region_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
)

// TestManyDocumentsWhileARegionIsCutOff: eu takes far more documents than stay open, and is started
// again. us hears of all at once. Nobody ever uses more than one document gives, and in the end the
// newest is in force alone.
func TestManyDocumentsWhileARegionIsCutOff(t *testing.T) {
	edit := func(version, us, eu int) *policy.Document {
		return documents.Parse(t, version, halves, fmt.Sprintf("name: l, limit: 1000, window: 2m, lending_limit: 0, weights: {us: %d, eu: %d}", us, eu),
			fmt.Sprintf("name: other, domain: elsewhere, limit: %d, window: 1s", version))
	}
	twoRegions(t, edit(1, 99, 1), func(t *testing.T, c *cluster, us, eu *running) {
		c.Network.Isolate("us/n1", time.Hour)
		last := 3 * barrier.MaxOpen
		for version := 2; version <= last; version++ {
			suite.Must(t, eu.Adopt(t.Context(), edit(version, 100-version, version)))
		}
		if open := eu.Status().Epoch; !strings.Contains(open, "k-") || strings.Count(open, "+") > barrier.MaxOpen {
			t.Errorf("open in eu: %s", open)
		}
		c.stop("eu/n1")
		eu = c.start("eu/n1", edit(1, 99, 1))
		both := func(when string, here, there int) {
			t.Helper()
			nextCell(2 * time.Minute)
			gotUS, _ := us.drain(t, request("a"), 1100)
			gotEU, _ := eu.drain(t, request("a"), 1100)
			if gotUS != here || gotEU != there {
				t.Errorf("%s: us admitted %d, eu %d of 1,000, want %d and %d", when, gotUS, gotEU, here, there)
			}
		}
		both("cut off", 990, 10)
		c.Network.HealAll()
		time.Sleep(5 * time.Second)
		if us, eu := us.Status().Epoch, eu.Status().Epoch; us != eu {
			t.Errorf("open in us: %s; in eu: %s", us, eu)
		}
		both("in force", 10*(100-last), 10*last)
		for _, n := range []*running{us, eu} {
			if open, want := n.Status().Epoch, edit(last, 100-last, last).Epoch().String(); open != want {
				t.Errorf("open in %s: %s, want %s", n.name, open, want)
			}
		}
	})
}

// TestTwoNodesFold: the nodes of a region are given documents by turns, and fold for themselves. They
// work under the same ones afterwards, and decide.
func TestTwoNodesFold(t *testing.T) {
	edit := func(version int) *policy.Document {
		return documents.Parse(t, version, halves, fmt.Sprintf("name: l, limit: 1000, window: 1h, lending_limit: 0, weights: {us: %d, eu: %d}", 100-version, version))
	}
	started(t, edit(1), []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		c.Network.Isolate("eu/n1", time.Hour)
		nodes := []*running{c.running["us/n1"], c.running["us/n2"]}
		last := 3 * barrier.MaxOpen
		for version := 2; version <= last; version++ {
			if err := nodes[version%2].Adopt(t.Context(), edit(version)); err != nil {
				t.Fatal(version, err)
			}
		}
		time.Sleep(2 * time.Second)
		if one, two := nodes[0].Status().Epoch, nodes[1].Status().Epoch; one != two || !strings.Contains(one, "k-") {
			t.Errorf("open at n1: %s; at n2: %s", one, two)
		}
		admitted, reason := 0, ""
		for i := range 200 {
			d := nodes[i%2].check(t, request("a"))
			if d.Allowed {
				admitted++
			} else {
				reason = string(d.Reason)
			}
		}
		if want := 10 * (100 - last); admitted != want || reason != "over_limit" {
			t.Errorf("%d admitted, want %d; then %s", admitted, want, reason)
		}
	})
}

// putBack returns three documents: a limit nearly all of which is us's, none of that name in the
// domain, and the limit again, nearly all of which is eu's.
func putBack(t *testing.T, window string, between ...string) (all [3]*policy.Document) {
	limit := func(us, eu int) string {
		return fmt.Sprintf("name: l, limit: 1000, window: %s, lending_limit: 0, weights: {us: %d, eu: %d}", window, us, eu)
	}
	const other = "name: other, domain: elsewhere, limit: 5, window: 1s"
	all[0] = documents.Parse(t, 1, halves, limit(99, 1), other)
	all[1] = documents.Parse(t, 2, halves, append(between, other)...)
	all[2] = documents.Parse(t, 3, halves, limit(1, 99), other)
	return all
}

// TestALimitPutBackWhileARegionIsCutOff: us knows only the document in which it has nearly all.
func TestALimitPutBackWhileARegionIsCutOff(t *testing.T) {
	for name, between := range map[string][]string{"out": nil, "to another domain": {"name: l, domain: moved, limit: 1000, window: 2s"}} {
		t.Run(name, func(t *testing.T) {
			all := putBack(t, "2s", between...)
			twoRegions(t, all[0], func(t *testing.T, c *cluster, us, eu *running) {
				c.Network.Isolate("us/n1", time.Hour)
				for _, d := range all[1:] {
					suite.Must(t, eu.Adopt(t.Context(), d))
					time.Sleep(5 * time.Second)
				}
				for range 3 {
					nextCell(2 * time.Second)
					here, _ := us.drain(t, request("a"), 1100)
					there, last := eu.drain(t, request("a"), 1100)
					if here != 990 || there != 10 {
						t.Errorf("us admitted %d, eu %d of 1,000, want 990 and 10; then %+v", here, there, last)
					}
				}
				c.Network.HealAll()
				time.Sleep(8 * time.Second)
				nextCell(2 * time.Second)
				here, _ := us.drain(t, request("a"), 1100)
				there, _ := eu.drain(t, request("a"), 1100)
				if here != 10 || there != 990 {
					t.Errorf("later us admitted %d, eu %d, want 10 and 990", here, there)
				}
			})
		})
	}
}

// TestALimitPutBackAtOnce: both regions hear of everything, within one window.
func TestALimitPutBackAtOnce(t *testing.T) {
	all := putBack(t, "10m")
	twoRegions(t, all[0], func(t *testing.T, c *cluster, us, eu *running) {
		before, _ := us.drain(t, request("a"), 1100)
		for _, d := range all[1:] {
			suite.Must(t, us.Adopt(t.Context(), d))
			time.Sleep(5 * time.Second)
		}
		after, _ := us.drain(t, request("a"), 1100)
		there, last := eu.drain(t, request("a"), 1100)
		if before != 990 || after != 0 || there != 10 {
			t.Errorf("us admitted %d and %d, eu %d of 1,000, want 990, 0 and 10; then %+v", before, after, there, last)
		}
	})
}
