package queue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/store"
)

const (
	// underWay is how many round trips are made at a time. With one, a few callers would wait for
	// each other. With many, no requests would be left to group: four cost 16 callers 10 % more
	// processor time than two.
	underWay = 2
	// underWayInLane is how many are made at a time to each of several servers. With two, 64 callers
	// of three masters cost a sixth more.
	underWayInLane = 1
	// sortEvery is how often a node finds out which shards are on one server. Until it has, requests
	// go to another lane than they would, and are decided all the same.
	sortEvery = time.Second
)

// lanes carry requests to the servers of the store, those for each server in a lane of its own. So
// a server that is slow, or has much to do, makes only requests for its own shards wait. And a
// round trip carries all that waits for one server, instead of a little for each. Safe for
// concurrent use.
type lanes struct {
	store *store.Store
	wakes *wakes
	// all has a lane for each shard: that of the first shard on a server carries what is for the
	// server, and the others carry nothing. A store that is not divided has one.
	all []*batcher
	of  atomic.Pointer[map[store.Shard]*batcher] // nil: everything is for the first lane
}

func newLanes(common shared, deadline time.Duration) *lanes {
	l := &lanes{store: common.store, wakes: common.wakes}
	shards := common.store.Shards()
	if len(shards) == 1 {
		l.all = []*batcher{newBatcher(common, deadline, underWay)}
		return l
	}
	for range shards {
		l.all = append(l.all, newBatcher(common, deadline, underWayInLane))
	}
	return l
}

// lane returns the lane of a request.
func (l *lanes) lane(w *Ask) *batcher {
	of := l.of.Load()
	if of == nil {
		return l.all[0]
	}
	return (*of)[store.ShardOf(w.Applied[0].Target.Key)]
}

// enqueue is batcher.enqueue in the lane of a request.
func (l *lanes) enqueue(ctx context.Context, w Ask) error {
	return l.lane(&w).enqueue(ctx, w)
}

// enqueueAll hands over several requests, each as enqueue does. It calls refused for each request
// that may not wait, with its index.
func (l *lanes) enqueueAll(ctx context.Context, all []Ask, refused func(place int, err error)) {
	parts := map[*batcher][]int{}
	var lanes []*batcher // in the order of the requests
	for i := range all {
		lane := l.lane(&all[i])
		if parts[lane] == nil {
			lanes = append(lanes, lane)
		}
		parts[lane] = append(parts[lane], i)
	}
	for _, lane := range lanes {
		hurried, begins := lane.queueAll(all, parts[lane], refused)
		if begins { // one after the other the lanes would take too long
			lane.begins(ctx, hurried || len(parts) > 1)
		}
	}
}

// Sort finds out once which shards are on one server.
func (q *Queue) Sort(ctx context.Context) { q.lanes.sort(ctx) }

// run finds out which shards are on one server, until ctx ends.
func (l *lanes) run(ctx context.Context) {
	if len(l.all) > 1 {
		l.sort(ctx)
		repeat.Every(ctx, sortEvery, func(time.Time) { l.sort(ctx) })
	}
}

// sort gives each server a lane. What has queued in another is carried by that one.
func (l *lanes) sort(ctx context.Context) {
	lane, of := map[string]*batcher{}, make(map[store.Shard]*batcher, len(l.all))
	for i, server := range l.store.ServerNames(ctx) {
		if lane[server] == nil {
			lane[server] = l.all[i]
		}
		of[l.store.Shards()[i]] = lane[server]
	}
	l.of.Store(&of)
}

// busy reports whether so much of a caller's work waits in every lane that its batches wait unread.
// While one server is slow, the others still decide what a batch has for them.
func (l *lanes) busy(caller string, waits time.Duration) bool {
	for _, b := range l.used() {
		if !b.busy(caller, waits) {
			return false
		}
	}
	return true
}

// used returns the lanes that have a server.
func (l *lanes) used() (all []*batcher) {
	of := l.of.Load()
	if of == nil {
		return l.all[:1]
	}
	for i, shard := range l.store.Shards() {
		if lane := l.all[i]; (*of)[shard] == lane {
			all = append(all, lane)
		}
	}
	return all
}

// load returns the load of all lanes: what waits in any, and the pace of the slowest server.
func (l *lanes) load() (all Load) {
	for _, b := range l.all {
		one := b.load()
		all.Queued += one.Queued
		all.Refused.add(one.Refused)
	}
	for i, b := range l.used() {
		if one := b.load(); i == 0 || one.Script > all.Script {
			all.Script, all.Pipeline = one.Script, one.Pipeline
		}
	}
	return all
}
