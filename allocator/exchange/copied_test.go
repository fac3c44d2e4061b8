package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestOtherRegionsTellForOurs: a copy in another region tells what ours used if every other region says when it
// last heard a time of our store before the loss, and none of these is over a second later than the copy. Nor
// was a node of ours answered so late.
func TestOtherRegionsTellForOurs(t *testing.T) {
	at := func(seconds int64) quantity.StoreTime { return quantity.StoreTime(seconds * allocator.Second) }
	good := Testimonies{From: "eu", Heard: at(999), Copies: []Copied{{Node: "n1", Until: at(1000)}}}
	with := func(change func(*Testimonies)) Testimonies {
		t := good
		change(&t)
		return t
	}
	for name, c := range map[string]struct {
		all     []Testimonies
		deleted bool
		named   quantity.StoreTime
		told    bool
	}{
		"one has a copy, and all have heard":     {all: []Testimonies{good, {From: "ap", Heard: at(1001)}}, told: true},
		"one has heard a second and more later":  {all: []Testimonies{good, {From: "ap", Heard: at(1001) + 1}}},
		"so has another node of a region":        {all: []Testimonies{good, {From: "ap", Heard: at(900)}, {From: "eu", Heard: at(1002)}, {From: "eu", Heard: at(7)}}},
		"one does not know what it has heard":    {all: []Testimonies{good, {From: "ap"}}},
		"one has not answered":                   {all: []Testimonies{good}},
		"nobody has a copy":                      {all: []Testimonies{{From: "eu", Heard: at(900)}, {From: "ap", Heard: at(900)}}},
		"the copy of a later life alone":         {all: []Testimonies{with(func(t *Testimonies) { t.Copies = []Copied{{Node: "n1", Since: at(961), Until: at(1000)}} }), {From: "ap", Heard: at(900)}}},
		"that of a later life beside it":         {all: []Testimonies{good, {From: "ap", Heard: at(900), Copies: []Copied{{Node: "n1", Since: at(1009), Until: at(1020)}}}}, told: true},
		"an older and a later copy":              {all: []Testimonies{with(func(t *Testimonies) { t.Copies = []Copied{{Node: "n1", Until: at(900)}} }), {From: "ap", Heard: at(1000), Copies: good.Copies}}, told: true},
		"it was read after the loss":             {all: []Testimonies{with(func(t *Testimonies) { t.Copies = []Copied{{Node: "n1", Until: at(1000), Read: at(1011)}} }), {From: "ap", Heard: at(900)}}},
		"the bucket alone was deleted":           {all: []Testimonies{good, {From: "ap", Heard: at(1001)}}, deleted: true},
		"a node of ours was answered in between": {all: []Testimonies{good, {From: "ap", Heard: at(900)}}, named: at(1001) + 1},
		"and one not much later":                 {all: []Testimonies{good, {From: "ap", Heard: at(900)}}, named: at(1001), told: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := New("us", "n2", Options{})
			m.peers = []*peer{{name: "eu"}, {name: "ap"}}
			m.onNamed(Named{At: map[string]quantity.StoreTime{"n2": at(1010)}, LostAt: at(1010)})
			if c.named > 0 {
				m.named["n1"] = named{first: at(1), last: c.named}
			}
			b := &Bucket{ID: "b", Kind: algorithms.FixedWindow, Window: 60 * allocator.Second, Cell: 60 * allocator.Second, Limit: 100, Recovered: true,
				Entitlements: map[string]quantity.Units{"us": 100}}
			r := &recovery{bucket: b, lostAt: at(1010), deleted: c.deleted}
			for _, one := range c.all {
				m.addElsewhere(r, one, algorithms.Use{})
			}
			if got := m.toldUse(r); got != c.told {
				t.Errorf("told %t, want %t: %+v", got, c.told, r.elsewhere)
			}
		})
	}
}

// TestWhenAPeerWasHeard: what a peer says of its store's time counts for the generation under which it says so.
func TestWhenAPeerWasHeard(t *testing.T) {
	var p peer
	p.lastGeneration = 5
	for _, says := range []struct {
		generation uint64
		at         quantity.StoreTime
	}{{5, 100}, {5, 90}, {4, 50}, {5, -1}, {5, maxTime + 1}} {
		p.noteShown(says.generation, says.at)
	}
	want := func(when string, generation uint64, at quantity.StoreTime) {
		t.Helper()
		if got := p.shownUnder(generation); got != at {
			t.Errorf("%s: under generations before %d it was heard at %d, want %d", when, generation, got, at)
		}
	}
	want("at first", 6, 100)
	want("at first", 5, 50)
	m := New("eu", "n1", Options{})
	m.noteClock(0, 1<<50)
	if !p.believes(m, 0, 7) {
		t.Fatal("generation 7 is not believed")
	}
	p.noteShown(7, 200)
	p.noteShown(5, 110)
	want("a generation later", 7, 110)
	want("a generation later", 8, 200)
}
