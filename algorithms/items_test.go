//go:build !race

package algorithms

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/quantity"
)

// plain is a decision on one bucket.
func plain(key string) Decide {
	return Decide{Fence: Fence{Epoch: "1-a"}, Commit: true, Costs: []quantity.Units{1},
		Buckets: []LimitTarget{{Target: Target{Key: key, Terms: fixed(10)}}}}
}

// TestWhatSharesACall: decisions share a script call unless one of them could be told something
// that is not so.
func TestWhatSharesACall(t *testing.T) {
	for name, tc := range map[string]struct {
		shares         bool
		first, another func(*Decide)
	}{
		"two buckets":         {true, nil, func(c *Decide) { c.Buckets[0].Key = "b" }},
		"the same bucket":     {true, nil, nil},
		"several costs":       {true, nil, func(c *Decide) { c.Costs = []quantity.Units{1, 2, 3} }},
		"known to exist":      {true, nil, func(c *Decide) { c.Buckets[0].ExistsUntil = 5 }},
		"remembered":          {true, nil, func(c *Decide) { c.Once = "o" }},
		"another epoch":       {false, nil, func(c *Decide) { c.Epoch = "2-b" }},
		"another generation":  {false, nil, func(c *Decide) { c.Generation = 2 }},
		"first only asks":     {false, func(c *Decide) { c.Commit = false }, nil},
		"other only asks":     {false, nil, func(c *Decide) { c.Commit = false }},
		"other terms":         {false, nil, func(c *Decide) { c.Buckets[0].Terms.Entitlement = 9 }},
		"shadow, and not":     {false, nil, func(c *Decide) { c.Buckets[0].Shadow = true }},
		"a shadow of its own": {true, nil, func(c *Decide) { c.Buckets[0].Key, c.Buckets[0].Shadow = "b", true }},
	} {
		first, another := plain("a"), plain("a")
		if tc.first != nil {
			tc.first(&first)
		}
		if tc.another != nil {
			tc.another(&another)
		}
		var c Items
		if !c.Add(first) || c.Add(another) != tc.shares {
			t.Errorf("%s: shares %v, want %v", name, !tc.shares, tc.shares)
		}
	}
}

// TestAReplyOfOneStatus: only that a store lets no script in can be said of a whole call at once.
// Any other status alone is no answer to two decisions.
func TestAReplyOfOneStatus(t *testing.T) {
	var c Items
	c.Add(plain("a"))
	c.Add(plain("b"))
	for status := StatusOK; status <= StatusLater+1; status++ {
		d, err := c.Parse([]any{int64(status)})
		whole := status == StatusUnknown || status == StatusClock
		if whole && (err != nil || d.Status != status || d.Each[1].Status != status) {
			t.Errorf("%v: %+v, %v", status, d, err)
		}
		for i := range d.Each {
			if err == nil && d.Each[i].Status == StatusOK {
				t.Errorf("%v: decision %d counts as decided", status, i)
			}
		}
	}
}

// TestACallIsBounded: a call takes no more than MaxItemsLoad, but always its first decision.
func TestACallIsBounded(t *testing.T) {
	var c Items
	for i := range MaxItemsLoad {
		if !c.Add(plain(fmt.Sprint(i))) {
			t.Errorf("decision %d was refused", i)
		}
	}
	if c.Add(plain("one more")) || len(c.Each) != MaxItemsLoad || len(c.Keys()) != MaxItemsLoad {
		t.Errorf("%d decisions and %d keys in a call", len(c.Each), len(c.Keys()))
	}
	large := plain("a")
	for len(large.Costs) < 2*8*MaxItemsLoad {
		large.Costs = append(large.Costs, 1)
	}
	var alone Items
	if !alone.Add(large) || alone.Add(plain("b")) {
		t.Error("a call takes a decision that is too large for it, and no other")
	}
}

// DecideItems answers the decide script at store time t, as its whole reply is compared.
func (w *Twin) DecideItems(t quantity.StoreTime, c Items) (all ItemsDecided) {
	w.AtOnce(func() {
		for _, l := range c.limits {
			if head := w.enter(t, c.Fence, l.terms); head.Status == StatusCalendar {
				all = c.With(func(Decide) Decided { return Decided{Head: head} })
				return
			}
		}
		all = c.With(func(d Decide) Decided { return w.Decide(t, d) })
	})
	return all
}
