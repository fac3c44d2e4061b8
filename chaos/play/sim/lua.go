package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/region/memory/store"
)

// luaServer is an embedded Redis that runs the production scripts and shows the world's time.
type luaServer struct {
	r     *region
	redis *lab.Driven
	ways  []*store.Store
	ids   int
	looks int
}

func newLuaServer(r *region) (*luaServer, error) {
	s := &luaServer{r: r}
	var err error
	s.redis, err = lab.StartDriven(s.clock(), s.replid())
	return s, err
}

func (s *luaServer) replid() string { s.ids++; return fmt.Sprintf("%s-%d", s.r.name, s.ids) }
func (s *luaServer) clock() time.Time {
	return time.UnixMicro(int64(s.r.clock().Add(s.r.storeAhead)))
}

// connect returns a store on the server. Whenever the node reads its own clock, which it does
// before every script, the server's clock is set.
func (s *luaServer) connect(n *node) *store.Store {
	way, err := s.redis.Connect(func() time.Time {
		s.redis.Set(s.clock())
		return n.time()
	})
	n.w.must(err)
	s.ways = append(s.ways, way)
	return way
}

func (s *luaServer) flush()   { s.redis.Flush() }
func (s *luaServer) restart() { s.redis.Restart() }
func (s *luaServer) replica() replica {
	return &luaReplica{s, s.redis.Copy(), s.redis.Replid()}
}
func (s *luaServer) remove(key string)     { s.redis.Delete(key) }
func (s *luaServer) expire()               { s.redis.Set(s.clock()); s.redis.Expire() }
func (s *luaServer) holds(key string) bool { return s.redis.Holds(key) }
func (s *luaServer) setDown(down bool)     { s.redis.SetDown(down) }
func (s *luaServer) loseReply()            { s.redis.LoseReply(1) }
func (s *luaServer) unheard() int          { return s.redis.Unheard() }

// luaReplica is a replica of a luaServer.
type luaReplica struct {
	of     *luaServer
	data   *servers.DrivenCopy
	replid string // the server's master_replid when it was copied
}

func (c *luaReplica) promote() { c.of.redis.Promote(c.data, c.of.replid()) }
func (c *luaReplica) putBack() { c.of.redis.Promote(c.data, c.replid) }

// setServers does nothing: the embedded Redis cannot simulate slow calls.
func (s *luaServer) setServers([]lab.Server) {}

// looksAt says that only every looksAt-th call of inspect inspects, because an inspection costs as
// much as a decision.
const looksAt = 16

func (s *luaServer) inspect(b *bucket) (algorithms.Inspected, bool) {
	if s.looks++; s.looks%looksAt != 0 || s.r.down > 0 {
		return algorithms.Inspected{}, false
	}
	for _, n := range s.r.nodes {
		if n.live == nil || n.way.Generation() == 0 {
			continue
		}
		terms, known := b.terms(s.r, n.live.Epoch())
		if !known {
			continue
		}
		i, err := n.way.Inspect(context.Background(),
			algorithms.Inspect{Fence: algorithms.Fence{Epoch: n.live.Epoch()},
				Target: algorithms.Target{Key: n.live.Key(b.id), Terms: terms}})
		if err == nil {
			return i, true
		}
	}
	return algorithms.Inspected{}, false
}

func (s *luaServer) close() {
	for _, way := range s.ways {
		_ = way.Close() // no data is lost by an error here
	}
	_ = s.redis.Close()
}
