package rights

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/journal"
)

// uses holds, for buckets of long windows, what counted when this node last saw them. If there are
// more than most, it drops buckets that were not seen lately and whose use the journal has. It
// never drops a use that the journal does not have yet, so it exceeds the bound while the journal
// takes no checkpoints. It is not safe for concurrent use.
type uses struct {
	most  int
	all   map[string]*usage // by bucket id
	moved []*move           // of those that differ from the journal's, in no order that chance decides
	ring  []*usage          // all, in the order in which makeRoom looks at them
	hand  int               // the place in ring where makeRoom looked last
}

// usage is what counted in one bucket. There are many, most of them at rest, so what only a use that
// moves has is in a move.
type usage struct {
	id          string
	use         algorithms.Use
	until       quantity.StoreTime // store time after which it no longer counts
	entitlement quantity.Units
	moves       *move  // nil: the journal has the use
	generation  uint64 // if it is copied: in which that node saw it
	place       int32  // in the ring
	recent      bool   // seen since the hand last passed it
	copied      bool   // it is what another node saw, not this one
}

// move is a use that the journal may not have yet.
type move struct {
	of      *usage
	durable algorithms.Use // as the journal has it
	looked  algorithms.Use // as the last call of checkpoints found it
	place   int            // in moved
}

// maxLooked bounds how many buckets makeRoom looks at to find one to drop.
const maxLooked = 16

func newUses(most int) uses {
	return uses{most: most, all: map[string]*usage{}}
}

// note takes in what counted in a bucket.
func (u *uses) note(id string, t *algorithms.Terms, use algorithms.Use) {
	one := u.all[id]
	switch {
	case one == nil:
		one = u.add(id)
	case use.At < one.use.At:
		return
	}
	u.set(one, use)
	one.until, one.entitlement, one.recent, one.copied = t.Weighs(use.Cell), t.Entitlement, true, false
}

// add makes room for a bucket and adds it.
func (u *uses) add(id string) *usage {
	u.makeRoom()
	one := &usage{id: id, place: int32(len(u.ring))}
	u.all[id], u.ring = one, append(u.ring, one)
	return one
}

// learn takes in what another node saw of a bucket. Of two numbers seen in one microsecond it takes the
// larger.
func (u *uses) learn(c copies.Use) {
	one := u.all[c.Bucket]
	switch {
	case one == nil:
		one = u.add(c.Bucket)
	case c.At < one.use.At || c.At == one.use.At && c.Units <= one.use.Units:
		return
	}
	u.set(one, algorithms.Use{Cell: c.Cell, Units: c.Units, At: c.At})
	one.until, one.recent, one.copied, one.generation = max(one.until, c.Until), true, true, c.Generation
}

// set replaces a use. If it was at rest, the journal has it as it was.
func (u *uses) set(one *usage, use algorithms.Use) {
	before := one.use
	one.use = use
	if one.moves == nil && (use.Cell != before.Cell || use.Units != before.Units) {
		one.moves = &move{of: one, durable: before, place: len(u.moved)}
		u.moved = append(u.moved, one.moves)
	}
}

// rests notes that the journal has a use. The last of those that moved takes its place.
func (u *uses) rests(one *usage) {
	if one.moves == nil {
		return
	}
	last := len(u.moved) - 1
	u.moved[one.moves.place], u.moved[last].place = u.moved[last], one.moves.place
	u.moved[last], one.moves = nil, nil
	if u.moved = u.moved[:last]; last == 0 {
		u.moved = nil // there may have been many
	}
}

// makeRoom drops a bucket that was not seen lately and whose use the journal has, if there are too
// many buckets.
func (u *uses) makeRoom() {
	if len(u.all) < u.most {
		return
	}
	for range min(maxLooked, len(u.ring)) {
		u.hand = (u.hand + 1) % len(u.ring)
		one := u.ring[u.hand]
		if one.recent || one.moves != nil {
			one.recent = false
			continue
		}
		u.drop(one)
		if len(u.all) < u.most {
			return
		}
	}
}

// drop forgets a bucket. The last bucket of the ring takes its place.
func (u *uses) drop(one *usage) {
	last := len(u.ring) - 1
	u.ring[one.place] = u.ring[last]
	u.ring[one.place].place = one.place
	u.ring[last] = nil
	u.ring = u.ring[:last]
	delete(u.all, one.id)
	u.rests(one)
}

// checkpoints appends to all what is worth writing (see lastSeen.checkpoints), or with last
// everything that moved. It appends to own those of them that this node saw itself.
func (u *uses) checkpoints(all []journal.Checkpoint, own []copies.Use, generation uint64,
	last bool) ([]journal.Checkpoint, []copies.Use) {
	for _, m := range u.moved {
		one := m.of
		by := max(one.use.Units-m.durable.Units, m.durable.Units-one.use.Units)
		far := one.use.Cell != m.durable.Cell || by*checkpointPart > one.entitlement
		rests := m.looked == one.use
		m.looked = one.use
		if far || rests || last {
			seen := copies.Use{Bucket: one.id, Cell: one.use.Cell, Units: one.use.Units, At: one.use.At, Until: one.until, Generation: generation}
			if one.copied {
				seen.Generation = one.generation
			} else {
				own = append(own, seen)
			}
			all = append(all, journal.Checkpoint{Bucket: seen.Bucket, Cell: seen.Cell, Used: seen.Units, At: seen.At,
				Until: seen.Until, Generation: seen.Generation})
		}
	}
	return all, own
}

// written notes that a checkpoint is durable.
func (u *uses) written(c journal.Checkpoint) {
	one := u.all[c.Bucket]
	if one == nil || one.moves == nil || c.At < one.moves.durable.At {
		return
	}
	one.moves.durable = algorithms.Use{Cell: c.Cell, Units: c.Used, At: c.At}
	if one.use.Cell == c.Cell && one.use.Units == c.Used {
		u.rests(one)
	}
}

// forget drops what no longer counts at a store time.
func (u *uses) forget(now quantity.StoreTime) {
	for i := 0; i < len(u.ring); {
		if one := u.ring[i]; one.until <= now {
			u.drop(one) // another bucket now has place i
			continue
		}
		i++
	}
}
