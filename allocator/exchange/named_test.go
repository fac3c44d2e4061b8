package exchange

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestWhoMustTell: as many nodes as the region has, and who used the store in the time that counts. Who
// was heard of after the loss, or was answered last before what counts, need not.
func TestWhoMustTell(t *testing.T) {
	const s = allocator.Second
	at := func(seconds int64) quantity.StoreTime { return quantity.StoreTime(seconds * s) }
	m := New("us", "n1", Options{Nodes: 2})
	m.onNamed(Named{At: map[string]quantity.StoreTime{"n1": at(1000), "n2": at(1000), "gone": at(900), "long gone": at(500)}})
	m.onNamed(Named{At: map[string]quantity.StoreTime{"n1": at(1013), "n2": at(1012)}})
	m.onNamed(Named{At: map[string]quantity.StoreTime{"n1": at(1100), "n2": at(1100), "new": at(1100)}})
	for _, c := range []struct {
		answered []string
		counts   int64
		told     bool
	}{
		{[]string{"n1"}, 950, false},
		{[]string{"n1", "n2"}, 950, true},
		{[]string{"n1", "new"}, 950, false},
		{[]string{"n1", "n2"}, 901, false}, // it may have been answered once more before it was gone
		{[]string{"n1", "n2"}, 800, false},
		{[]string{"n1", "n2", "gone"}, 800, true},
	} {
		if got := m.allTold(c.answered, at(c.counts), at(1010)); got != c.told {
			t.Errorf("%v tell all since %d: %t", c.answered, c.counts, got)
		}
	}
	m.onNamed(Named{At: map[string]quantity.StoreTime{"gone": at(960)}, Perhaps: true})
	if m.allTold([]string{"n1", "n2"}, at(950), at(1010)) || m.named["gone"].last != at(900) {
		t.Errorf("a node that may have been answered later is not waited for; it was last answered at %d", m.named["gone"].last)
	}
	crowd := map[string]quantity.StoreTime{}
	for i := range MaxNamed + 10 {
		crowd[fmt.Sprint("x", i)] = at(2000 + int64(i))
	}
	m.onNamed(Named{At: crowd})
	if len(m.named) != MaxNamed || m.stats.NamesDropped != 15 || m.named["x0"].last != 0 {
		t.Errorf("%d remembered, %d dropped", len(m.named), m.stats.NamesDropped)
	}
	m.onNamed(Named{At: map[string]quantity.StoreTime{"later": at(2000).Add(2 * NamedFor)}})
	if len(m.named) != 1 {
		t.Errorf("%d are remembered two years later", len(m.named))
	}
}

// TestTheJournalKnowsWhoWasThere: a node that starts hears of the others from its store, and takes it
// that they first came after the loss. Its journal knows better, whichever tells first.
func TestTheJournalKnowsWhoWasThere(t *testing.T) {
	store := Named{At: map[string]quantity.StoreTime{"n1": 1020, "n2": 1020, "n3": 1020}, LostAt: 1010}
	kept := Named{At: map[string]quantity.StoreTime{"n2": 1015}, First: map[string]quantity.StoreTime{"n2": 100}, LostAt: 1010}
	for name, events := range map[string][]Named{"store": {store, kept}, "journal": {kept, store}} {
		m := New("us", "n1", Options{Nodes: 1})
		for _, e := range events {
			m.onNamed(e)
		}
		if all, _ := m.Named(); all["n2"].First != 100 || all["n3"].First < 1010 || m.alone() {
			t.Errorf("%s first: n2 was first answered at %d, n3 at %d", name, all["n2"].First, all["n3"].First)
		}
	}
}

// TestACopyTellsForItsNode: a copy counts as its node's own word if it is complete since before what
// counts, and is at most a second older than the store's last answer to that node.
func TestACopyTellsForItsNode(t *testing.T) {
	const s = allocator.Second
	at := func(seconds int64) quantity.StoreTime { return quantity.StoreTime(seconds * s) }
	for name, c := range map[string]struct {
		copied Copied
		told   bool
	}{
		"as late as the node":           {Copied{Node: "n2", Since: 0, Until: at(1000)}, true},
		"a second older":                {Copied{Node: "n2", Since: 0, Until: at(999)}, true},
		"older":                         {Copied{Node: "n2", Since: 0, Until: at(999) - 1}, false},
		"since the use that may count":  {Copied{Node: "n2", Since: at(960), Until: at(1000)}, true},
		"of a part of what may count":   {Copied{Node: "n2", Since: at(960) + 1, Until: at(1000)}, false},
		"of a node that nobody answers": {Copied{Node: "n3", Since: 0, Until: at(1000)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := New("us", "n1", Options{Nodes: 2})
			m.onNamed(Named{At: map[string]quantity.StoreTime{"n1": at(1010), "n2": at(1000)}})
			b := &Bucket{ID: "b", Kind: algorithms.FixedWindow, Window: 60 * s, Cell: 60 * s, Limit: 100, Recovered: true,
				Entitlements: map[string]quantity.Units{"us": 100}}
			r := &recovery{bucket: b, lostAt: at(1010), told: map[string]*nodeUse{"n1": {itself: true}}}
			if m.usesFrom(r) != at(960) {
				t.Fatalf("what was used counts since %d", m.usesFrom(r))
			}
			b.Recovered = false
			if m.addCopies(r, []Copied{c.copied}); len(r.told) > 1 {
				t.Errorf("%v tell of a bucket whose use nobody copies", r.told)
			}
			b.Recovered = true
			m.addCopies(r, []Copied{c.copied, c.copied})
			if m.toldUse(r) != c.told || len(r.told) > 2 || len(r.nodesWhole) > 0 {
				t.Errorf("told %t by %v, rows by %v", m.toldUse(r), r.told, r.nodesWhole)
			}
		})
	}
}

// TestWhoHasReadTellsOfRows: a node that has read the store since another one was gone knows its rows, too,
// but none that the store has answered that node with later.
func TestWhoHasReadTellsOfRows(t *testing.T) {
	const s = allocator.Second
	at := func(seconds int64) quantity.StoreTime { return quantity.StoreTime(seconds * s) }
	for name, c := range map[string]struct {
		copied Copied
		whole  bool
	}{
		"read later":                    {Copied{Node: "n2", Since: at(840), Until: at(1000) + 1, Rows: true}, true},
		"at the node's last answer":     {Copied{Node: "n2", Until: at(1000), Rows: true}, false},
		"only use":                      {Copied{Node: "n2", Until: at(1001)}, false},
		"not since rows that may weigh": {Copied{Node: "n2", Since: at(840) + 1, Until: at(1001), Rows: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := New("us", "n1", Options{Nodes: 2})
			m.onNamed(Named{At: map[string]quantity.StoreTime{"n1": at(1010), "n2": at(1000)}})
			r := &recovery{bucket: &Bucket{ID: "b", Kind: algorithms.FixedWindow, Window: 60 * s, Cell: 60 * s, Limit: 100, Recovered: true,
				Entitlements: map[string]quantity.Units{"us": 100}}, lostAt: at(1010), from: 15, nodesWhole: []string{"n1"}}
			m.addCopies(r, []Copied{c.copied, c.copied})
			if m.toldRows(r) != c.whole || len(r.nodesWhole) > 2 {
				t.Errorf("rows told: %t by %v", m.toldRows(r), r.nodesWhole)
			}
		})
	}
}

// TestWhatWasReadTellsOfWhatWasThere: who read the store before a loss knows what the store had. Of a bucket that
// was deleted it does if somebody saw the bucket later than that.
func TestWhatWasReadTellsOfWhatWasThere(t *testing.T) {
	for _, c := range []struct {
		read, lostAt, seen quantity.StoreTime
		deleted, tells     bool
	}{
		{0, 5, 0, true, true},
		{7, 7, 0, false, true}, {8, 7, 0, false, false},
		{7, 9, 6, true, false}, {7, 9, 7, true, true}, {10, 9, 11, true, false},
	} {
		r := recovery{lostAt: c.lostAt, deleted: c.deleted, use: algorithms.Use{At: c.seen}}
		if got := r.tells(c.read); got != c.tells {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
