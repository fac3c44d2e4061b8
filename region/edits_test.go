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
	started(t, edit(1, 99, 1), []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us, eu := c.running["us/n1"], c.running["eu/n1"]
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
