package lab

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/store"
)

// Twin is a Redis server in memory, whose scripts the twin of package algorithms answers at once: of one shard, or of several,
// which share its fate but for round trips that fail. Any number of nodes may have it as their server. Safe for concurrent use,
// but for its Ledgers.
type Twin struct {
	mu     sync.Mutex // held while a round trip is made
	outage outage
	service
	shards store.Shards
	held   map[store.Shard]*ledger
	clock  func() int64
	replid string
	starts int // how often it was restarted
	opened int // secrets given out
}

// ledger is what one shard holds.
type ledger struct {
	twin *algorithms.Twin
	ends map[string]int64 // server time at which a Once or a receipt is forgotten, by its key
	left int              // how many of them were left when all were last looked at
}

// NewTwin returns an empty server of one shard: clock is its TIME in us, replid its master_replid. With an empty replid its
// data has no identity, as that of the embedded Redis.
func NewTwin(clock func() int64, replid string) *Twin {
	return NewDividedTwin(clock, replid, store.Shards{store.Whole})
}

// NewDividedTwin is NewTwin of a server that is divided into shards, as a Redis Cluster is.
func NewDividedTwin(clock func() int64, replid string, shards store.Shards) *Twin {
	s := &Twin{shards: shards, held: map[store.Shard]*ledger{}, clock: clock, replid: replid}
	for _, shard := range shards {
		s.held[shard] = &ledger{twin: &algorithms.Twin{}, ends: map[string]int64{}}
	}
	return s
}

// Ledger returns what a shard of the server holds.
func (s *Twin) Ledger(shard store.Shard) *algorithms.Twin { return s.held[shard].twin }

// of returns the ledger that a key is in.
func (s *Twin) of(key string) *ledger { return s.held[store.ShardOf(key)] }

// Replid returns the server's master_replid.
func (s *Twin) Replid() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replid
}

// SetDown takes the server out of reach: no connection to it comes about.
func (s *Twin) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage.SetDown(down)
}

// FailNext has the next n round trips time out before they get to the server: their calls do not run, which their
// caller cannot know.
func (s *Twin) FailNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage.FailNext(n)
}

// LoseReply has the next n round trips time out after they got to the server: their calls run.
func (s *Twin) LoseReply(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage.LoseReply(n)
}

// SetService has each call take so long from now on, by a clock that never goes back. A round trip that is not done within
// the deadline times out, though its calls run: a node learns only that, as from a Redis under load.
func (s *Twin) SetService(each time.Duration, elapsed func() time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setService(each, elapsed)
}

// Flush loses all data, as FLUSHALL does: the server's master_replid stays.
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

// Restart loses all data and gives the server another master_replid, as a Redis does that saves nothing.
func (s *Twin) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.starts++
	s.replid = fmt.Sprintf("%s.%d", s.replid, s.starts)
}

// Delete deletes a key, the token's among them, as DEL does.
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

// Expire drops what the server's clock says is over. Calls of stores do so too, as far as they believe that clock.
func (s *Twin) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.held {
		l.twin.Expire(s.clock())
	}
}

// Holds says whether there is a bucket under a key.
func (s *Twin) Holds(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(key).twin.Holds(key)
}

// Replica returns another server with a copy of this one's data as it is now, to be promoted as it is at any time: with
// a master_replid of its own, while its token says on which server the store was opened. Nothing that this server does
// later reaches it.
func (s *Twin) Replica(replid string) *Twin {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := &Twin{shards: s.shards, held: map[store.Shard]*ledger{}, clock: s.clock, replid: replid}
	for shard, l := range s.held {
		copied.held[shard] = &ledger{twin: l.twin.Clone(), ends: maps.Clone(l.ends), left: l.left}
	}
	return copied
}

// newSecret returns one that is the same in every run of a simulation.
func (s *Twin) newSecret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return fmt.Sprintf("secret %d of %s", s.opened, s.replid)
}

// decide answers the decide script, and sees to it that what was admitted is remembered under its Once in time.
func (l *ledger) decide(now int64, c algorithms.Decide) algorithms.Decided {
	if c.Once == "" {
		return l.twin.Decide(now, c)
	}
	l.forget(c.Once, now)
	d := l.twin.Decide(now, c)
	if d.Status == algorithms.StatusOK && !d.Repeated && !d.TooOften && c.Commit && d.Answers[0].Admitted {
		l.remember(c.Once, now, d.Now/1000+algorithms.RememberedFor)
	}
	return d
}

// refund answers the refund script, and sees to it that the receipt is remembered in time.
func (l *ledger) refund(now int64, c algorithms.Refund) algorithms.Refunded {
	l.forget(c.Receipt, now)
	l.forget(c.Once, now)
	g := l.twin.Refund(now, c)
	if g.Status == algorithms.StatusOK && !g.Repeated {
		l.remember(c.Receipt, now, max(c.RememberedUntil(), (g.Now+algorithms.KeySlack)/1000))
	}
	return g
}

// fewestRemembered is how many keys are remembered before it is worth looking for those that need not be.
const fewestRemembered = 1000

// remember notes until which store time, in milliseconds, a key is remembered. Each time there are twice as many keys as the last look
// left, those whose time is up are forgotten.
func (l *ledger) remember(key string, now, untilMillis int64) {
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
func (l *ledger) forget(key string, now int64) {
	if end, remembered := l.ends[key]; remembered && now >= end {
		l.twin.Forget(key)
		delete(l.ends, key)
	}
}
