//go:build !race

package exchange

import (
	"math"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// TestNewerUse: of two uses, the one of the later cell counts even if it is smaller. Of one cell,
// the larger use counts, with the later time.
func TestNewerUse(t *testing.T) {
	use := func(cell quantity.Cell, units quantity.Units, at quantity.StoreTime) algorithms.Use {
		return algorithms.Use{Cell: cell, Units: units, At: at}
	}
	for name, c := range map[string]struct{ a, b, want algorithms.Use }{
		"less in a later cell":            {use(7, 3, 70), use(6, 500, 69), use(7, 3, 70)},
		"more in a later cell":            {use(7, 500, 70), use(6, 3, 69), use(7, 500, 70)},
		"less in a later cell, earlier":   {use(7, 3, 60), use(6, 500, 69), use(7, 3, 60)},
		"more of one cell, and earlier":   {use(7, 500, 60), use(7, 3, 70), use(7, 500, 70)},
		"as much":                         {use(7, 3, 60), use(7, 3, 60), use(7, 3, 60)},
		"nothing is not more than little": {use(0, 0, 0), use(0, 1, 5), use(0, 1, 5)},
	} {
		if got := newer(c.a, c.b); got != c.want {
			t.Errorf("%s: newer(%v, %v) = %v, want %v", name, c.a, c.b, got, c.want)
		}
		if got := newer(c.b, c.a); got != c.want {
			t.Errorf("%s: newer(%v, %v) = %v, want %v", name, c.b, c.a, got, c.want)
		}
	}
}

// TestUseOfAnOlderCellRaisesNothing: a mate last decided in the cell before, and reports more use
// of that than there was in this cell. This cell's use stays as it was.
func TestUseOfAnOlderCellRaisesNothing(t *testing.T) {
	d := newDoubting(t)
	out := d.loses(d.bucket("b"))
	d.tells("eu", out.questions("eu")...)
	cell := quantity.Cell(d.store() / doubtDay)
	mine := algorithms.Use{Cell: cell, Units: 3, At: d.store() - 1}
	d.m.Step(d.now, Testified{Testimonies{From: "us", Node: "n9", ForGeneration: 7,
		All: []Testimony{
			{Bucket: "b", WholeSince: math.MaxInt64, Use: algorithms.Use{Cell: cell - 1, Units: 500,
				At: d.store() - doubtDay}}}}})
	restores := d.m.Step(d.now, Consulted{Consult: out.Consults[0],
		All: []Testimony{{Bucket: "b", WholeSince: math.MaxInt64, Use: mine}}}).Restores
	for range 50 {
		if len(restores) > 0 {
			break
		}
		restores = d.tick().Restores
	}
	if len(restores) != 1 || restores[0].Use != mine {
		t.Errorf("restored with %+v, want %+v", restores, mine)
	}
}

// TestExtremeTestimony: a mate's testimony names the smallest or the largest integers. It is
// refused as a whole and counted, and the rest is restored.
func TestExtremeTestimony(t *testing.T) {
	for _, n := range []quantity.Units{math.MinInt64, math.MaxInt64, -1, algorithms.MaxUnits + 1} {
		for what, of := range map[string]func(*Testimony){
			"units": func(x *Testimony) { x.Use.Units = n },
			"cell":  func(x *Testimony) { x.Use.Cell = quantity.Cell(n) },
			"time":  func(x *Testimony) { x.Use.At = quantity.StoreTime(n) },
			"lent": func(x *Testimony) {
				x.Rows = []algorithms.RememberedRow{{Peer: "eu", Cell: 20_000, Lent: n}}
			},
			"returned": func(x *Testimony) {
				x.Rows = []algorithms.RememberedRow{{Peer: "eu", Cell: 20_000, Returned: n}}
			},
			"now":  func(x *Testimony) { x.Now = quantity.StoreTime(n) },
			"loss": func(x *Testimony) { x.LostAt = quantity.StoreTime(n) },
		} {
			d := newDoubting(t)
			d.loses(d.bucket("b"))
			before := d.m.Stats().Implausible
			told := Testimony{Bucket: "b", WholeSince: math.MaxInt64}
			of(&told)
			d.m.Step(d.now, Testified{Testimonies{From: "us", Node: "n2", ForGeneration: 7,
				All: []Testimony{told}}})
			r := d.m.recoveries["b"]
			if d.m.Stats().Implausible != before+1 || len(r.rows) > 0 ||
				r.use != (algorithms.Use{}) || r.told["n2"] != nil {
				t.Errorf("%s of %d is believed: %+v", what, n, r)
			}
		}
	}
}
