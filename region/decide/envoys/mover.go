package envoys

import (
	"context"
	"sync"
	"time"

	"github.com/quotad/quotad/allocator/assign"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
)

const (
	// together is how many holds, and how many charges, go to the store in one call, and movers how
	// many such calls are under way.
	together, movers = 32, 2
	// The next call waits for 1/restPart of the time that the store took for the last one. A call
	// takes the longer, the more others ask of the store.
	restPart = 4
	// restsLeast is the rest after a failure. With each further failure it doubles, up to
	// restsMost.
	restsLeast, restsMost = 100 * time.Millisecond, 5 * time.Second
)

// mover holds what the machine asks of the store until it is sent, in order, so that others keep
// their part of the store's time. Safe for concurrent use.
type mover struct {
	more chan struct{} // holds a value while something may wait

	mu      sync.Mutex
	holds   line[place, assign.Hold]
	charges line[string, assign.Charge]
}

// place is a cell of a bucket.
type place struct {
	bucket string
	cell   quantity.Cell
}

func newMover() mover {
	return mover{more: make(chan struct{}, 1),
		holds:   line[place, assign.Hold]{of: map[place]assign.Hold{}},
		charges: line[string, assign.Charge]{of: map[string]assign.Charge{}}}
}

// add puts work behind the other work. It replaces work on the same bucket and cell, which the
// machine has given up. So no more waits than the machine has buckets.
func (m *mover) add(out assign.Effects) {
	if len(out.Holds)+len(out.Charges) == 0 {
		return
	}
	m.mu.Lock()
	for _, h := range out.Holds {
		m.holds.add(place{h.Bucket, h.Cell}, h)
	}
	for _, c := range out.Charges {
		m.charges.add(c.Bucket, c)
	}
	m.mu.Unlock()
	repeat.Signal(m.more)
}

// waits returns how much work waits.
func (m *mover) waits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.holds.order) + len(m.charges.order)
}

// next takes the next work.
func (m *mover) next() (holds []assign.Hold, charges []assign.Charge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	holds, charges = m.holds.take(together), m.charges.take(together)
	if len(m.holds.order)+len(m.charges.order) > 0 {
		repeat.Signal(m.more) // for the others that move
	}
	return holds, charges
}

// drop forgets all that waits, because the machine has forgotten what it asked for.
func (m *mover) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds.take(len(m.holds.order))
	m.charges.take(len(m.charges.order))
}

// line is values in the order in which their keys came.
type line[K comparable, V any] struct {
	order []K
	of    map[K]V
}

func (l *line[K, V]) add(key K, value V) {
	if _, waits := l.of[key]; !waits {
		l.order = append(l.order, key)
	}
	l.of[key] = value
}

func (l *line[K, V]) take(most int) (all []V) {
	n := min(len(l.order), most)
	for _, key := range l.order[:n] {
		all = append(all, l.of[key])
		delete(l.of, key)
	}
	if l.order = l.order[n:]; len(l.order) == 0 {
		l.order = nil // which frees the array
	}
	return all
}

// move carries out work until ctx ends. Several do.
func (a *Assigner) move(ctx context.Context) {
	rest := time.NewTimer(0)
	defer rest.Stop()
	failing := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		holds, charges := a.mover.next()
		if len(holds)+len(charges) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-a.mover.more:
			}
			rest.Reset(0)
			continue
		}
		begun := time.Now()
		if a.carryOut(ctx, holds, charges) {
			failing = 0
			rest.Reset(time.Since(begun) / restPart)
			continue
		}
		failing = min(max(2*failing, restsLeast), restsMost)
		rest.Reset(failing)
	}
}

// carryOut carries out some work, and reports whether the store answered any of the holds.
func (a *Assigner) carryOut(ctx context.Context, holds []assign.Hold,
	charges []assign.Charge) (answered bool) {
	var charging sync.WaitGroup
	for _, c := range charges {
		charging.Go(func() { a.charge(ctx, c) })
	}
	if answered = len(holds) == 0; !answered {
		answered = a.hold(ctx, holds)
	}
	charging.Wait()
	a.soon()
	return answered
}
