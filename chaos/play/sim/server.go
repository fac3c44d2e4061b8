package sim

import (
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// server is a region's Redis, whose faults the simulation controls.
type server interface {
	// connect returns a store on this server for a node.
	connect(n *node) *store.Store
	flush()            // as FLUSHALL: all data is gone, scripts stay
	restart()          // it ends and starts again, empty
	replica() replica  // makes a replica, which receives nothing from now on
	remove(key string) // DEL
	expire()           // its clock has stepped forward: expired keys are dropped
	holds(key string) bool
	setDown(down bool)
	loseReply()   // the next reply is lost
	unheard() int // how many replies were lost so far
	// setServers says how the servers behave that hold its shards, of which it may have several. Each runs
	// one call after the other, so that answers come too late when calls are made too fast.
	setServers(all []lab.Server)
	close()
	// inspect reads the ledger of a bucket. It returns false if there is nothing that a node works
	// with.
	inspect(b *bucket) (algorithms.Inspected, bool)
}

// replica is a copy of a server's data that may take the server's place.
type replica interface {
	promote() // under another identity, as after a failover
	putBack() // under the identity that the server had when it was copied
}

// twinServer is a server in memory, on the Go twin of the scripts.
type twinServer struct {
	r       *region
	primary *lab.Twin
	ways    []*lab.Way
	ids     int
}

func (w *world) newServer(r *region) (server, error) {
	if w.plan.Lua {
		return newLuaServer(r)
	}
	s := &twinServer{r: r}
	s.primary = lab.NewDividedTwin(s.clock, s.replid(), w.shards)
	s.setServers(r.servers())
	return s, nil
}

// clock returns the time that the server shows, µs since 1970.
func (s *twinServer) clock() quantity.StoreTime { return s.r.clock().Add(s.r.storeAhead) }

func (s *twinServer) replid() string { s.ids++; return fmt.Sprintf("%s-%d", s.r.name, s.ids) }

func (s *twinServer) connect(n *node) *store.Store {
	to, way := s.primary.Connect(n.time)
	if n.takesTime() {
		way.Takes(n.waits)
	}
	s.ways = append(s.ways, way)
	return to
}

func (s *twinServer) flush()   { s.primary.Flush() }
func (s *twinServer) restart() { s.primary.Restart() }
func (s *twinServer) replica() replica {
	return &twinReplica{s, s.primary.Replica(s.replid()), s.primary.Replid()}
}
func (s *twinServer) remove(key string)     { s.primary.Delete(key) }
func (s *twinServer) expire()               { s.primary.Expire() }
func (s *twinServer) holds(key string) bool { return s.primary.Holds(key) }
func (s *twinServer) setDown(down bool)     { s.primary.SetDown(down) }
func (s *twinServer) loseReply()            { s.primary.LoseReply(1) }
func (s *twinServer) unheard() int          { return s.primary.Unheard() }
func (s *twinServer) close()                {}
func (s *twinServer) setServers(all []lab.Server) {
	s.primary.SetServers(s.elapsed, all...)
}

// elapsed returns how long the run has taken in virtual time.
func (s *twinServer) elapsed() time.Duration { return time.Duration(s.r.w.now) * time.Microsecond }

// twinReplica is a replica of a twinServer.
type twinReplica struct {
	of     *twinServer
	twin   *lab.Twin
	replid string // the server's master_replid when it was copied
}

func (c *twinReplica) promote() { c.of.runOn(c.twin) }
func (c *twinReplica) putBack() { c.of.runOn(c.twin.Replica(c.replid)) }

// runOn has the server go on with other data.
func (s *twinServer) runOn(t *lab.Twin) {
	t.SetDown(s.r.down > 0)
	t.SetServers(s.elapsed, s.r.servers()...)
	s.primary = t
	for _, way := range s.ways {
		way.SetServer(s.primary)
	}
}

func (s *twinServer) inspect(b *bucket) (algorithms.Inspected, bool) {
	shard := s.r.w.shards.Of(policy.BucketID(b.id).Entity())
	t := s.primary.Ledger(shard)
	// This Open opens nothing and only looks. A copy that no node has opened yet admits nothing,
	// whatever it holds.
	const none = 1<<64 - 1
	if o := t.Open(0, algorithms.Open{Expected: none, Generation: none}); o.Generation == 0 ||
		o.Replid != s.primary.Replid() {
		return algorithms.Inspected{}, false
	}
	terms, known := b.terms(s.r, t.Epoch)
	if !known {
		return algorithms.Inspected{}, false
	}
	// A node's clock too far from the store's is refused. Such a node must not find anything out.
	i := t.Watch(s.clock(), algorithms.Inspect{Fence: algorithms.Fence{Generation: t.Generation,
		Epoch: t.Epoch, Clock: s.r.clock()},
		Target: algorithms.Target{Key: store.BucketKey(shard, b.id),
			Terms: terms}})
	return i, i.Status == algorithms.StatusOK
}
