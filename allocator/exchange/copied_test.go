package exchange

import (
	"fmt"
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
	copied := func(since, until quantity.StoreTime) Testimonies {
		return Testimonies{From: "eu", Heard: []HeardOf{{At: at(999)}}, Copies: []Copied{{Node: "n1", Since: since, Until: until}}}
	}
	ap := func(heard ...HeardOf) Testimonies { return Testimonies{From: "ap", Heard: heard} }
	good := copied(0, at(1000))
	for name, c := range map[string]struct {
		all     []Testimonies
		deleted bool
		partly  bool               // not all nodes of ap answered
		named   quantity.StoreTime // of another node of ours
		own     quantity.StoreTime // since when this node tells itself
		told    bool
	}{
		"one has a copy, and all have heard":     {all: []Testimonies{good, ap(HeardOf{At: at(1001)})}, told: true},
		"one has heard a second and more later":  {all: []Testimonies{good, ap(HeardOf{At: at(1001) + 1})}},
		"so has another node of a region":        {all: []Testimonies{good, ap(HeardOf{At: at(1000)}), {From: "eu", Heard: []HeardOf{{At: at(1002)}}}}},
		"one has heard it last long before":      {all: []Testimonies{good, ap(HeardOf{At: at(997) - 1})}},
		"one of its nodes has, another later":    {all: []Testimonies{good, ap(HeardOf{At: at(900)}), ap(HeardOf{At: at(997)})}, told: true},
		"not all of its nodes have answered":     {all: []Testimonies{good, ap(HeardOf{At: at(1000)})}, partly: true},
		"one does not know what it has heard":    {all: []Testimonies{good, ap()}},
		"one heard later, and of no time":        {all: []Testimonies{good, ap(HeardOf{At: at(1000), Unsure: true})}},
		"one heard of it since the loss":         {all: []Testimonies{good, ap(HeardOf{At: at(1000)}, HeardOf{At: at(1020)})}, told: true},
		"one has not answered":                   {all: []Testimonies{good}},
		"nobody has a copy":                      {all: []Testimonies{{From: "eu", Heard: []HeardOf{{At: at(999)}}}, ap(HeardOf{At: at(999)})}},
		"the copy of a later life alone":         {all: []Testimonies{copied(at(961), at(1000)), ap(HeardOf{At: at(1000)})}},
		"that of a later life beside it":         {all: []Testimonies{good, copied(at(1009), at(1020)), ap(HeardOf{At: at(1000)})}, told: true},
		"an older and a later copy":              {all: []Testimonies{copied(0, at(900)), good, ap(HeardOf{At: at(1000)})}, told: true},
		"it was read after the loss":             {all: []Testimonies{{From: "eu", Heard: good.Heard, Copies: []Copied{{Node: "n1", Until: at(1000), Read: at(1011)}}}, ap(HeardOf{At: at(1000)})}},
		"the bucket alone was deleted":           {all: []Testimonies{good, ap(HeardOf{At: at(1001)})}, deleted: true},
		"a node of ours was answered in between": {all: []Testimonies{good, ap(HeardOf{At: at(1000)})}, named: at(1001) + 1},
		"and one not much later":                 {all: []Testimonies{good, ap(HeardOf{At: at(1000)})}, named: at(1001), told: true},
		"until a loss before, and this node since": {all: []Testimonies{copied(0, at(980)), {From: "eu", Heard: []HeardOf{{At: at(979)}, {At: at(1009)}}},
			ap(HeardOf{At: at(980)}, HeardOf{At: at(1009)})}, own: at(985), told: true},
		"not until that": {all: []Testimonies{copied(0, at(980)), ap(HeardOf{At: at(984)})}, own: at(985)},
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
			if r.elsewhere.whole = []string{"eu", "ap"}; c.partly {
				r.elsewhere.whole = []string{"eu"}
			}
			if c.own > 0 {
				*r.of("n2") = nodeUse{itself: true, since: c.own}
			}
			for _, one := range c.all {
				m.addElsewhere(r, one, algorithms.Use{})
			}
			if got := m.toldUse(r); got != c.told {
				t.Errorf("told %t, want %t: %+v", got, c.told, r.elsewhere)
			}
		})
	}
}

// TestWhenAPeerWasHeard: what a peer says of its store's time counts for the generation under which it says so. One
// that says none goes on for nobody knows how long.
func TestWhenAPeerWasHeard(t *testing.T) {
	var p peer
	for _, says := range []struct {
		generation uint64
		at         quantity.StoreTime
	}{{5, 100}, {5, 90}, {4, 50}, {6, 120}, {6, 0}, {7, 130}, {7, maxTime + 1}, {7, 125}, {7, 140}, {8, -1}, {9, 150}, {9, 0}, {9, 150 + CopyLag}} {
		p.noteShown(says.generation, says.at)
	}
	want := "[{100 false} {50 false} {120 true} {130 true} {0 true} {1000150 false}]"
	if got := fmt.Sprint(p.heardOf()); got != want {
		t.Errorf("heard %s, want %s", got, want)
	}
	for g := range uint64(maxShown) {
		p.noteShown(10+g, 200)
	}
	if all := p.heardOf(); len(all) != maxShown || all[0].At != 200 {
		t.Errorf("of more generations %v", all)
	}
}

// TestADelayedMessageIsNoLaterTime: a peer says that it goes on, and not until when. A message that was sent
// before that, with a time, comes late or twice. It does not say when the peer was heard last.
func TestADelayedMessageIsNoLaterTime(t *testing.T) {
	for _, late := range []quantity.StoreTime{90, 100, 101} {
		var p peer
		for _, at := range []quantity.StoreTime{100, 0, late} { // sent: late (<= 101), then 0
			p.noteShown(5, at)
		}
		if h := p.heardOf()[0]; !h.Unsure {
			t.Errorf("%d came late: %+v", late, h)
		}
	}
}

// TestOthersKnowWhoWasAnswered: this node, n1, was cut off from the store. n3 tells a use that is later than
// n1 last heard of n2, and that the store answered n2 much later still, when n2 used more. Nobody has copies.
func TestOthersKnowWhoWasAnswered(t *testing.T) {
	at := func(seconds int64) quantity.StoreTime { return quantity.StoreTime(seconds * allocator.Second) }
	m := New("us", "n1", Options{Nodes: 2})
	m.onNamed(Named{At: map[string]quantity.StoreTime{"n1": at(100), "n2": at(100), "n3": at(100)}})
	b := &Bucket{ID: "b", Kind: algorithms.FixedWindow, Window: 600 * allocator.Second, Cell: 600 * allocator.Second, Limit: 100, Recovered: true,
		Entitlements: map[string]quantity.Units{"us": 100}}
	r := &recovery{bucket: b, lostAt: at(150)}
	for _, one := range []string{"n1", "n3"} {
		m.addUse(r, one, Testimony{Bucket: "b", Use: algorithms.Use{Units: 1, At: at(110)}})
	}
	m.addCopies(r, []Copied{{Node: "n2", Answered: at(140)}})
	if m.toldUse(r) {
		t.Errorf("n2 is not waited for: %+v", m.named["n2"])
	}
}
