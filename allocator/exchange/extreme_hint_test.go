//go:build !race

package exchange

import (
	"math"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// TestHintsOfExtremeNumbers: a hint of a peer or a mate names the smallest or the largest integers.
// The machine cuts them to numbers that it can compute with, and goes on.
func TestHintsOfExtremeNumbers(t *testing.T) {
	for _, n := range []quantity.Units{math.MinInt64, math.MinInt64 + 1, -1,
		algorithms.MaxUnits + 1, math.MaxInt64} {
		for _, region := range []string{"us", "eu"} {
			d := newDoubting(t)
			b := d.bucket("b")
			d.m.Step(d.now, Report{{Bucket: b,
				State: algorithms.State{Cell: quantity.Cell(d.store() / doubtDay), Entitlement: 100,
					Share: 100, Free: 100}, Now: d.store(), Denied: 1}})
			d.m.Step(d.now, Heard{Hint: Hint{Region: region, Node: "n9", Bucket: "b",
				Cell: quantity.Cell(d.store() / doubtDay), Used: n, Total: n,
				Rate: quantity.MilliRate(n), Share: n, Spare: n, SpareBurst: n}})
			v := d.m.views["b"]
			if v == nil {
				t.Fatal("the bucket is not in view: the test shows nothing")
			}
			var all nodes
			if said := d.m.mates["b"]; region == "us" && said != nil {
				all = said.nodes
			}
			if region == "eu" {
				all = v.dealing("eu").nodes
			}
			for _, h := range all {
				for _, x := range []quantity.Units{h.Used, h.Total, quantity.Units(h.Rate), h.Share,
					h.Spare, h.SpareBurst} {
					if x < 0 || x > algorithms.MaxUnits {
						t.Errorf("%d is believed of %s: %+v", n, region, h.Hint)
					}
				}
			}
			if len(all) != 1 {
				t.Errorf("%d hints of %s are kept, want one", len(all), region)
			}
			for range 10 {
				d.tick()
			}
		}
	}
}
