package store

import (
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// look is what was found of one shard.
type look struct {
	algorithms.Opened
	shard  Shard
	at     string             // host:port of its server
	server string             // master_replid of its server
	apart  time.Duration      // how far its clock is ahead of the node's
	seen   quantity.StoreTime // the latest time that this node knows the shard to have shown
	// confirmed: the other nodes confirm that the shard knows all that they had from it.
	confirmed bool
	broken    bool // this node has confirmed other data of this generation: see Confirm
}

// looks are the looks at all shards, in order.
type looks []look

// belong returns an error if a shard belongs to another region.
func (all looks) belong(region string) error {
	for _, l := range all {
		if l.Generation != 0 && l.Region != region {
			return fmt.Errorf("the Redis at %s belongs to region %q, this node is of %q: give each region a Redis of its own", l.at, l.Region, region)
		}
	}
	return nil
}

// givenUp returns an error if a version of another layout opened a shard after this node had worked
// under the generation worked; 0: this node has not worked yet. An older copy of a shard does not
// count, because it was opened before.
func (all looks) givenUp(worked uint64) error {
	for _, l := range all {
		if worked != 0 && l.isForeign() && l.Generation > worked {
			return fmt.Errorf(
				"another version of quotad has opened the Redis at %s: it writes layout %d, this node %d: end one of them; this node takes the Redis back, as after a loss, when it is started again",
				l.at, l.Layout, algorithms.Layout)
		}
	}
	return nil
}

// foreignLayout returns the layout of a shard that a version of another layout wrote, if there is
// one.
func (all looks) foreignLayout() (layout int64, found bool) {
	for _, l := range all {
		if l.isForeign() {
			return l.Layout, true
		}
	}
	return 0, false
}

// latest returns the highest generation of any shard.
func (all looks) latest() uint64 {
	return highest(all, func(l look) uint64 { return l.Generation })
}

// isWhole reports whether all shards stand under one generation, in the layout of this version, with
// nothing lost that this node knows of.
func (all looks) isWhole(known uint64) bool {
	for _, l := range all {
		if l.Generation == 0 || l.Generation != all[0].Generation || l.isForeign() ||
			l.hidesLoss(known) {
			return false
		}
	}
	return true
}

// begun returns the generation that another node has begun and not finished, 0 if there is none. It
// is unfinished if the first shard still stands under an earlier one. If the first shard was lost,
// it is unfinished if it was not there at our first look.
func (all looks) begun(known, before uint64) uint64 {
	g := all.latest()
	first := &all[0]
	whole := first.Generation != 0 && !first.hidesLoss(known)
	if first.Generation == g || g <= known || !whole && g <= before {
		return 0
	}
	for i := range all {
		if l := &all[i]; l.Generation == g && (l.isForeign() || l.hidesLoss(known)) {
			return 0
		}
	}
	return g
}

// lost reports whether a shard may have lost what it promised and spent. An empty shard has lost
// nothing if the region never served. If the first shard stands, the region has served, because
// that shard was opened last.
func (all looks) lost(l *look, o Opening) bool {
	if l.Generation == 0 {
		return o.LastGeneration > 0 || !o.Bootstrap || all[0].Generation != 0
	}
	return l.isForeign() || l.hidesLoss(o.LastGeneration)
}

// hidesLoss reports whether a shard that stands has lost something that this node knows of. The
// signs of that are: it is an older copy, as this node or another one has found; another node opened
// it as if it had never held anything; it has forgotten a time that it showed this node; or its
// server holds other data than those that it was opened on, and nobody confirms them.
func (l *look) hidesLoss(known uint64) bool {
	return l.broken || l.Older || l.Generation < known || known > 0 && l.Since > known && l.LostAt == 0 ||
		l.Answered < l.seen || l.Replid != l.server && !l.confirmed
}

// isForeign reports whether another version of quotad wrote what a shard holds, in another layout.
func (l *look) isForeign() bool { return l.Generation != 0 && l.Layout != algorithms.Layout }

// replids returns the master_replid of each shard's server.
func (all looks) replids() (ids []string) {
	for _, l := range all {
		ids = append(ids, l.server)
	}
	return ids
}

// lostAt returns the store time of the last loss that any shard knows of.
func (all looks) lostAt() quantity.StoreTime {
	return highest(all, func(l look) quantity.StoreTime { return l.LostAt })
}

// mark returns the latest time that any shard has shown.
func (all looks) mark() quantity.StoreTime {
	return highest(all, func(l look) quantity.StoreTime { return l.Mark })
}

// lastSeen returns the latest time that this node knows any shard to have shown.
func (all looks) lastSeen() quantity.StoreTime {
	return highest(all, func(l look) quantity.StoreTime { return l.seen })
}

// since returns the generation since which no shard has lost data.
func (all looks) since() uint64 { return highest(all, func(l look) uint64 { return l.Since }) }

// highest returns the highest number that was found in a shard, 0 if there is none.
func highest[N ~int64 | ~uint64](all looks, number func(look) N) (n N) {
	for _, l := range all {
		n = max(n, number(l))
	}
	return n
}
