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
	moved []*usage          // those that differ from the journal's, in no order that chance decides
	ring  []*usage          // all, in the order in which makeRoom looks at them
	hand  int               // the place in ring where makeRoom looked last
}

// usage is what counted in one bucket.
type usage struct {
	id          string
	use         algorithms.Use
	durable     algorithms.Use     // as the journal has it
	looked      algorithms.Use     // as the last call of checkpoints found it
	until       quantity.StoreTime // store time after which it no longer counts
	entitlement quantity.Units
	recent      bool // seen since the hand last passed it
	copied      bool // it is what another node saw, not this one, in
	generation  uint64
	place       int // in the ring
	moves       int // its place in moved, from 1; 0: it is not there
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
		u.makeRoom()
		one = &usage{id: id, place: len(u.ring)}
		u.all[id], u.ring = one, append(u.ring, one)
	case use.At < one.use.At:
		return
	}
	one.use, one.until, one.entitlement, one.recent, one.copied = use, t.Weighs(use.Cell), t.Entitlement, true, false
	u.move(one)
}

// learn takes in what another node saw of a bucket. Of two numbers seen in one microsecond it takes the
// larger.
func (u *uses) learn(c copies.Use) {
	one := u.all[c.Bucket]
	switch {
	case one == nil:
		u.makeRoom()
		one = &usage{id: c.Bucket, place: len(u.ring), copied: true}
		u.all[c.Bucket], u.ring = one, append(u.ring, one)
	case c.At < one.use.At || c.At == one.use.At && c.Units <= one.use.Units:
		return
	}
	one.use, one.until, one.recent, one.copied = algorithms.Use{Cell: c.Cell, Units: c.Units, At: c.At}, max(one.until, c.Until), true, true
	one.generation = c.Generation
	u.move(one)
}

// move notes that the journal may not have a use yet.
func (u *uses) move(one *usage) {
	if one.moves == 0 && (one.use.Cell != one.durable.Cell || one.use.Units != one.durable.Units) {
		u.moved = append(u.moved, one)
		one.moves = len(u.moved)
	}
}

// rests notes that the journal has a use. The last of those that moved takes its place.
func (u *uses) rests(one *usage) {
	if one.moves == 0 {
		return
	}
	last := len(u.moved) - 1
	u.moved[one.moves-1], u.moved[last].moves = u.moved[last], one.moves
	u.moved[last], one.moves = nil, 0
	u.moved = u.moved[:last]
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
		if one.recent || one.moves > 0 {
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
	for _, one := range u.moved {
		by := max(one.use.Units-one.durable.Units, one.durable.Units-one.use.Units)
		far := one.use.Cell != one.durable.Cell || by*checkpointPart > one.entitlement
		rests := one.looked == one.use
		one.looked = one.use
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
	if one == nil || c.At < one.durable.At {
		return
	}
	one.durable = algorithms.Use{Cell: c.Cell, Units: c.Used, At: c.At}
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
