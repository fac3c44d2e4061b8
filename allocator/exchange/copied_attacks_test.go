package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

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
