package lab

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// Twin is a Redis server in memory. The twin of package algorithms answers its scripts at once. It
// has one shard, or several shards that fail together, except for single round trips and servers that
// are silent (SetServers). Any number of nodes may use it. Safe for concurrent use, except for its
// Ledgers.
type Twin struct {
	mu sync.Mutex // held during a round trip
	outage
	servers []service            // that hold the shards; until SetServers one that takes no time
	elapsed func() time.Duration // a clock that never goes back; nil until SetServers
	shards  store.Shards
	held    map[store.Shard]*ledger
	clock   func() quantity.StoreTime
	replid  string
	starts  int // number of restarts
	opened  int // number of secrets given out
}

// ledger is the content of one shard.
type ledger struct {
	twin *algorithms.Twin
	// by key of a Once or a receipt: the server time at which it is forgotten
	ends map[string]quantity.StoreTime
	left int // how many keys remained when all were last checked
}

// NewTwin returns an empty server of one shard. clock is its TIME, in µs, and replid its
// master_replid. If replid is empty its data has no identity, as with the embedded Redis.
func NewTwin(clock func() quantity.StoreTime, replid string) *Twin {
	return NewDividedTwin(clock, replid, store.Shards{store.Whole})
}

// NewDividedTwin returns an empty server that is divided into shards, as a Redis Cluster is.
func NewDividedTwin(clock func() quantity.StoreTime, replid string, shards store.Shards) *Twin {
	s := &Twin{shards: shards, held: map[store.Shard]*ledger{}, clock: clock, replid: replid,
		servers: make([]service, 1)}
	for _, shard := range shards {
		s.held[shard] = &ledger{twin: &algorithms.Twin{}, ends: map[string]quantity.StoreTime{}}
	}
	return s
}

// Ledger returns the content of a shard of the server.
func (s *Twin) Ledger(shard store.Shard) *algorithms.Twin { return s.held[shard].twin }

// of returns the ledger that holds a key.
func (s *Twin) of(key string) *ledger { return s.held[store.ShardOf(key)] }

// Replid returns the server's master_replid.
func (s *Twin) Replid() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replid
}

// Flush loses all data, as FLUSHALL does. The server keeps its master_replid.
func (s *Twin) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

func (s *Twin) flush() {
	for _, l := range s.held {
		l.twin.Flush()
		clear(l.ends)
	}
}

// Restart loses all data and gives the server another master_replid, as a Redis that saves nothing
// does.
func (s *Twin) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.starts++
	s.replid = fmt.Sprintf("%s.%d", s.replid, s.starts)
}

// Delete deletes a key, as DEL does. The key may be the token's.
func (s *Twin) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of(key)
	if key == store.TokenKey(store.ShardOf(key)) {
		l.twin.DeleteToken()
		return
	}
	l.twin.Delete(key)
	l.twin.Forget(key)
	delete(l.ends, key)
}

// Expire drops all keys that have expired by the server's clock. Calls of stores also drop expired
// keys, but only as far as the scripts believe that clock.
func (s *Twin) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.held {
		l.twin.Expire(s.clock())
	}
}

// Holds reports whether a key holds a bucket.
func (s *Twin) Holds(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(key).twin.Holds(key)
}

// Replica returns another server with a copy of this server's present data and with another
// master_replid. It can be promoted at any time. Its token still names the server on which the
// store was opened. Later changes of this server do not reach it.
func (s *Twin) Replica(replid string) *Twin {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := &Twin{shards: s.shards, held: map[store.Shard]*ledger{}, clock: s.clock,
		replid: replid, servers: make([]service, 1)}
	for shard, l := range s.held {
		copied.held[shard] = &ledger{twin: l.twin.Clone(), ends: maps.Clone(l.ends), left: l.left}
	}
	return copied
}

// newSecret returns a secret that is the same in every run of a simulation.
func (s *Twin) newSecret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return fmt.Sprintf("secret %d of %s", s.opened, s.replid)
}

// decide answers the decide script, and remembers the Once of an admitted request until its time is
// up.
func (l *ledger) decide(now quantity.StoreTime, c algorithms.Decide) algorithms.Decided {
	if c.Once == "" {
		return l.twin.Decide(now, c)
	}
	l.forget(c.Once, now)
	d := l.twin.Decide(now, c)
	if d.Status == algorithms.StatusOK && !d.Repeated && !d.TooOften && c.Commit &&
		d.Answers[0].Admitted {
		l.remember(c.Once, now, d.Now/1000+algorithms.RememberedFor)
	}
	return d
}

// settle answers the settle script, and remembers the receipt until its time is up.
func (l *ledger) settle(now quantity.StoreTime, c algorithms.Settle) algorithms.Settled {
	l.forget(c.Receipt, now)
	l.forget(c.Once, now)
	g := l.twin.Settle(now, c)
	if g.Status == algorithms.StatusOK && !g.Repeated {
		l.remember(c.Receipt, now, max(c.RememberedUntil(), (g.Now+algorithms.KeySlack)/1000))
	}
	return g
}

// fewestRemembered is the number of keys below which expired ones are not looked for.
const fewestRemembered = 1000

// remember keeps a key until a store time, in milliseconds. Whenever there are twice as many keys
// as remained at the last check, it forgets those whose time is up.
func (l *ledger) remember(key string, now, untilMillis quantity.StoreTime) {
	l.ends[key] = untilMillis * 1000
	if len(l.ends) < 2*l.left+fewestRemembered {
		return
	}
	for key := range l.ends {
		l.forget(key, now)
	}
	l.left = len(l.ends)
}

// forget forgets a key whose time is up.
func (l *ledger) forget(key string, now quantity.StoreTime) {
	if end, remembered := l.ends[key]; remembered && now >= end {
		l.twin.Forget(key)
		delete(l.ends, key)
	}
}
