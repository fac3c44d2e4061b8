package local

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
)

// maxBooked bounds what one call of Book charges.
const maxBooked = 1024

// Book charges in the store what this node admitted without it, under the document in force.
// A spend whose bucket is no longer in that document counts nowhere and is dropped.
func (p *Part) Book(ctx context.Context) {
	all := p.unsettled(maxBooked)
	if len(all) == 0 || p.tenure.Generation() == 0 {
		return
	}
	current := p.tenure.Rules()
	var calls []algorithms.Book
	var charged []unbooked
	var buckets []*exchange.Bucket
	for _, one := range all {
		b := current.Find(one.bucket)
		if b == nil {
			p.settled(one)
			continue
		}
		charged, buckets = append(charged, one), append(buckets, b)
		calls = append(calls, algorithms.Book{Fence: algorithms.Fence{Epoch: b.Epoch},
			Target: current.Target(b, p.rights.Exists(b)),
			Node:   p.node, Window: one.window, Units: one.units})
	}
	for i, res := range p.store.Book(ctx, calls) {
		switch {
		case res.Err != nil:
			p.rights.Lose(ctx, buckets[i], res.Err)
		case res.Value.Done:
			p.booked.Add(float64(p.settled(charged[i])))
		}
	}
}

// BookAll charges in the store everything that this node admitted without it, before the node
// ends. The error says how many units could not be charged.
func (p *Part) BookAll(ctx context.Context) error {
	left := p.Status().Unbooked
	// One call of Book charges a bounded number of spends.
	for before := left + 1; left > 0 && left < before; {
		p.Book(ctx)
		before, left = left, p.Status().Unbooked
	}
	if left > 0 {
		return fmt.Errorf("units that node %s admitted without the store are not charged there: %d; what others admit in their windows comes on top",
			p.node, left)
	}
	return nil
}

// unbooked is a spend that the store is to charge: all units admitted of a bucket in a window,
// without those out of a reserve.
type unbooked struct {
	bucket string // id
	window quantity.Cell
	units  quantity.Units
	of     windowKey
}

// unsettled returns spends that the store has not charged yet, at most the given number. A spend
// that could not be charged comes again after all others.
func (p *Part) unsettled(most int) (all []unbooked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Each call begins with another window, so that none keeps the others waiting.
	for i := range p.order {
		k := p.order[(p.turn+i)%len(p.order)]
		all = p.windows[k].unsettled(k, all, most)
	}
	p.turn++
	return all
}

// settled notes that the store has charged a spend. It returns how many of its units are charged
// for the first time.
func (p *Part) settled(b unbooked) (units quantity.Units) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, i := p.find(b.of, b.bucket)
	if w == nil {
		return 0
	}
	s := *w.record(i)
	units = max(b.units-s.settled, 0)
	s.settled = max(s.settled, b.units)
	w.put(i, s)
	return units
}

// BookAnew has all spends charged once more, because the store may have lost what it charged. A
// store that lost nothing charges nothing twice.
func (p *Part) BookAnew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.windows {
		for i := range uint32(len(w.index)) {
			s := *w.record(i)
			s.settled = 0
			w.put(i, s)
		}
	}
}
